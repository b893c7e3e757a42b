"""Spec versions: which can be read, how an older one is shown as 1.0, and how it is migrated (spec: migrations)."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.migrations import v0_1, v0_2, v0_3, v0_4, v1_1_dev1
from ducklake_lab.catalog.migrations.step import Step
from ducklake_lab.errors import CatalogError, CatalogVersionError, UnsupportedFeatureError

#: The version that is created and written.
SPEC_VERSION = "1.0"
STEPS: tuple[Step, ...] = (v0_1.STEP, v0_2.STEP, v0_3.STEP, v0_4.STEP)
READABLE = (*(step.old for step in STEPS), SPEC_VERSION, v1_1_dev1.VERSION)


def check_readable(version: str | None, display: str) -> None:
    """Raises CatalogVersionError where catalogs of this version cannot be read."""
    if version not in READABLE:
        raise CatalogVersionError(
            f"{display} is a DuckLake catalog of version {version}; this release reads versions "
            f"{', '.join(READABLE)}. Use a newer release, or the client that made it."
        )


def read_version(connection: sa.Connection) -> str | None:
    """The spec version that the catalog says it has."""
    # 0.1 has no scopes, so none is asked for
    version: str | None = connection.scalar(
        sa.select(t.lake_metadata.c.value).where(t.lake_metadata.c.key == "version")
    )
    return version


def steps_from(version: str) -> tuple[Step, ...]:
    """The steps that lead from a version to 1.0; none for those that are not older."""
    olds = [step.old for step in STEPS]
    return STEPS[olds.index(version) :] if version in olds else ()


def migrate(connection: sa.Connection, version: str, display: str) -> None:
    """Brings the catalog to 1.0 in the connection's transaction; the caller commits.

    Raises:
        CatalogError: a step failed; the transaction must be rolled back.
    """
    if connection.dialect.name == "mysql":
        raise UnsupportedFeatureError(
            f"{display} cannot be migrated: MySQL cannot undo a migration that fails half way."
        )
    for step in steps_from(version):
        try:
            step.apply(connection)
        except sa.exc.DBAPIError as error:
            reason = str(error.orig or error).strip().splitlines()[0]
            raise CatalogError(
                f"{display} could not be migrated from version {step.old} to {step.new}; it was left as it was: {reason}"
            ) from error


def show_as_current(connection: sa.Connection, version: str) -> None:
    """Puts temporary views with the tables of 1.0 before the catalog's own tables, for this transaction only."""
    if connection.dialect.name == "mysql":
        raise UnsupportedFeatureError(f"MySQL catalogs can be read from version {SPEC_VERSION} only, not {version}.")
    schema = _schema(connection)
    if version == v1_1_dev1.VERSION:
        _create_views(connection, v1_1_dev1.views(connection, schema))
        return
    sources = {name: f"{schema}.{name}" for name in t.metadata.tables}
    sources |= {old: f"{schema}.{old}" for step in STEPS for old in step.renamed.values()}
    views: dict[str, str] = {}
    for step in steps_from(version):
        for name, select in step.define(connection, sources).items():
            views[name] = select
            sources[name] = f"({select})"
    _create_views(connection, views)


def _create_views(connection: sa.Connection, views: Mapping[str, str]) -> None:
    for name, select in views.items():
        statement = f"CREATE TEMPORARY VIEW {name} AS {select}"
        # psycopg would take a `%` for a parameter
        connection.exec_driver_sql(
            statement.replace("%", "%%") if connection.dialect.name == "postgresql" else statement
        )


def _schema(connection: sa.Connection) -> str:
    """The schema that holds the catalog's own tables: views must name it, or they would mean themselves."""
    if connection.dialect.name == "sqlite":
        return "main"
    functions = "current_database(), current_schema()" if connection.dialect.name == "duckdb" else "current_schema()"
    quote = connection.dialect.identifier_preparer.quote_identifier
    return ".".join(quote(name) for name in connection.exec_driver_sql(f"SELECT {functions}").one())
