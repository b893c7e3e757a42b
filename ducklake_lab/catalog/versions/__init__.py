"""Spec versions: those that can be read and written, and migrations of older ones (spec: migrations).

Each version has a module with its additions. Code that works on catalogs of several versions asks `of(connection)`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.duckdb_files import FileConnection
from ducklake_lab.catalog.quack import QuackConnection
from ducklake_lab.catalog.versions import v0_2, v0_3, v0_4, v1_0, v1_1, v1_1_dev1
from ducklake_lab.catalog.versions.version import Version, without
from ducklake_lab.errors import CatalogVersionError, UnsupportedFeatureError, UsageError
from ducklake_lab.version import SINCE_DUCKDB_2

#: Oldest first.
VERSIONS = (
    Version("0.1"),
    v0_2.VERSION,
    v0_3.VERSION,
    v0_4.VERSION,
    v1_0.VERSION,
    v1_1_dev1.VERSION,
    v1_1.VERSION,
)
_BY_NAME = {version.name: version for version in VERSIONS}
#: Version under which views show catalogs that cannot be read as they are.
SHOWN = v1_0.VERSION
#: The version of new catalogs: that of the reference for the installed DuckDB.
DEFAULT = v1_1.VERSION if SINCE_DUCKDB_2 else v1_0.VERSION
#: Names of the versions that are written.
WRITTEN = tuple(version.name for version in VERSIONS if version.is_written)
_KEY, _NAME, _SHOWN_IN = "ducklake_version", "ducklake_version_name", "ducklake_shown_in"


def written(name: str) -> Version:
    """The version of that name.

    Raises:
        UsageError: there is none, or catalogs of it are not written.
    """
    if name not in WRITTEN:
        raise UsageError(f"{name} is no version of DuckLake that is written; use {' or '.join(WRITTEN)}.")
    return _BY_NAME[name]


def readable(name: str | None, display: str) -> Version:
    """The version of that name.

    Raises:
        CatalogVersionError: catalogs of this version cannot be read.
    """
    if name is None or name not in _BY_NAME:
        raise CatalogVersionError(
            f"{display} is a DuckLake catalog of version {name}; this release reads versions "
            f"{', '.join(_BY_NAME)}. Use a newer release, or the client that made it."
        )
    return _BY_NAME[name]


def read_version(connection: sa.Connection) -> str | None:
    """Read the spec version of the catalog."""
    # 0.1 has no scopes, so none is asked for
    version: str | None = connection.scalar(
        sa.select(t.lake_metadata.c.value).where(t.lake_metadata.c.key == "version")
    )
    return version


def begin(connection: sa.Connection, version: Version) -> None:
    """Make the catalog readable for the connection's transaction: as it is, or by views as a native version."""
    connection.info[_NAME] = version.name
    connection.info[_KEY] = version if version.is_native else SHOWN
    if not version.is_native:
        _show(connection, version, SHOWN)


def of(connection: sa.Connection) -> Version:
    """Return the version in which the connection's transaction sees the catalog."""
    version: Version = connection.info[_KEY]
    return version


def check_unchanged(connection: sa.Connection, present: str | None) -> None:
    """Raises CatalogVersionError where the catalog has another version now than when it was attached."""
    attached = connection.info[_NAME]
    if present != attached:
        raise CatalogVersionError(
            f"The catalog was of version {attached} when it was attached and has been migrated since; attach it again."
        )


@cache
def tables(version: Version) -> sa.MetaData:
    """The metadata tables of a native version."""
    return without(t.metadata, VERSIONS[VERSIONS.index(version) + 1 :])


def column(connection: sa.Connection, wanted: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """A column of a metadata table, to be selected; NULL where the catalog's version lacks it."""
    table = tables(of(connection)).tables.get(wanted.table.name)
    return wanted if table is not None and wanted.name in table.c else sa.null().label(wanted.name)


def has(connection: sa.Connection, table: sa.Table) -> bool:
    """Return whether the catalog's version has a metadata table."""
    return table.name in tables(of(connection)).tables


def is_since(version: Version, name: str) -> bool:
    """Return whether a version has the features of the version of that name."""
    return VERSIONS.index(version) >= VERSIONS.index(_BY_NAME[name])


def path(version: Version, target: Version) -> tuple[Version, ...]:
    """The versions that a migration to the target goes through; none where there is no such migration."""
    steps = [target]
    while version.name not in steps[0].after:
        if not steps[0].after:
            return ()
        steps.insert(0, _BY_NAME[steps[0].after[0]])
    return tuple(steps)


def check_migratable(connection: sa.Connection, display: str) -> None:
    """Raises UnsupportedFeatureError where a migration that fails half way could not be undone."""
    if connection.dialect.name == "mysql":
        raise UnsupportedFeatureError(
            f"{display} cannot be migrated: MySQL cannot undo a migration that fails half way. "
            "Attach a new lake and copy the tables with COPY FROM DATABASE."
        )


def _show(connection: sa.Connection, version: Version, target: Version) -> None:
    """Puts temporary views with the tables of the target before the catalog's own tables.

    They last as long as a connection to a DuckDB, and elsewhere as long as the transaction.
    """
    if connection.dialect.name == "mysql":
        raise UnsupportedFeatureError(
            f"MySQL catalogs can be read from version {target.name} on only, not {version.name}."
        )
    known: str | None = connection.info.get(_SHOWN_IN)
    schema = known or _schema(connection)
    # views from before a migration are wrong: the query names the table itself
    version_row = run_text(connection, f"SELECT value FROM {schema}.ducklake_metadata WHERE key = 'version'")
    check_unchanged(connection, version_row.scalar())
    if known is not None:
        return
    statements = _views(connection.dialect, version, target, schema)
    driver = connection.connection.driver_connection
    if statements and isinstance(driver, FileConnection | QuackConnection):
        connection.rollback()
        driver.prepare("; ".join(statements))
        connection.begin()
        connection.info[_SHOWN_IN] = schema
        _show(connection, version, target)  # somebody else may have migrated it in between
        return
    for statement in statements:
        run_text(connection, statement)


@lru_cache(maxsize=32)
def _views(dialect: sa.Dialect, version: Version, target: Version, schema: str) -> tuple[str, ...]:
    """Statements that make the views, over tables in a schema that is given as SQL."""
    steps = path(version, target)
    sources = {name: f"{schema}.{name}" for name in t.metadata.tables}
    sources |= {old: f"{schema}.{old}" for step in steps for old in step.renamed.values()}
    views: dict[str, str] = {}
    for step in steps:
        for name, select in step.define(dialect, sources).items():
            views[name] = select
            sources[name] = f"({select})"
    return tuple(f"CREATE TEMPORARY VIEW {name} AS {select}" for name, select in views.items())


def _schema(connection: sa.Connection) -> str:
    """The schema that holds the catalog's own tables: views must name it, or they would mean themselves."""
    if connection.dialect.name == "sqlite":
        return "main"
    functions = "current_database(), current_schema()" if connection.dialect.name == "duckdb" else "current_schema()"
    quote = connection.dialect.identifier_preparer.quote_identifier
    return ".".join(quote(name) for name in connection.exec_driver_sql(f"SELECT {functions}").one())
