"""Migrates catalogs to later spec versions, one commit for each version that is read as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from ducklake_lab.catalog import quack, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import CatalogError, CatalogVersionError


def migrate(database: CatalogDatabase, connection: sa.Connection, version: Version, target: Version) -> None:
    """Brings a catalog to another version, and commits.

    DuckDB cannot alter a table in one transaction as often as the way from the oldest versions asks for. So each version that
    is read as it is has a commit of its own; what one of them refuses is found before the first.

    Raises:
        UnsupportedFeatureError: the catalog is in MySQL.
        CatalogVersionError: another client has migrated it meanwhile.
        CatalogError: a step failed; the catalog has the version before that step.
    """
    display = database.location.display
    steps = [step for step in versions.path(version, target) if step.is_native]
    if not steps:
        return
    versions.check_migratable(connection, display)
    if len(steps) > 1 and database.has_table(connection, t.inlined_data_tables.name):
        with _explaining(connection, version, target, display):
            for later in steps[1:]:
                later.prepare(Writes(connection))
    for native in steps:
        _migrate(connection, version, native, display)
        version = native


def _migrate(connection: sa.Connection, version: Version, target: Version, display: str) -> None:
    lock_for_commit(connection)
    if versions.read_version(connection) != version.name:
        raise CatalogVersionError(f"{display} has been migrated by another client meanwhile; attach it again.")
    writes = Writes(connection)
    m, s = t.lake_metadata.c, t.snapshot.c
    named = sa.select(sa.func.count()).where(m.key == "version", m.value == version.name)
    newest = sa.select(sa.func.max(s.snapshot_id))
    writes.expect(named, connection.scalar(named) or 0)
    writes.expect(newest, connection.scalar(newest) or 0)
    with _explaining(connection, version, target, display):
        for following in versions.path(version, target):
            following.apply(writes)
        writes.flush()
        connection.commit()
    connection.begin()


@contextmanager
def _explaining(connection: sa.Connection, version: Version, target: Version, display: str) -> Iterator[None]:
    """Say of an error what became of the catalog."""
    try:
        yield
    except (sa.exc.DBAPIError, duckdb.Error, CatalogError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        left = "it was left as it was"
        if quack.is_lost(connection):
            left = "whether it was is not known, so attach it again"
        raise CatalogError(
            f"{display} could not be migrated from version {version.name} to {target.name}; {left}: {reason}"
        ) from error
