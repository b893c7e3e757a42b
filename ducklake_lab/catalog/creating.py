"""Makes new lakes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.errors import UsageError
from ducklake_lab.model.changes import Change, format_changes
from ducklake_lab.version import __version__


def folder(path: str) -> str:
    """A folder as the catalog stores it: with one slash at its end."""
    return path.rstrip("/") + "/"


def absolute(path: str) -> str:
    return folder(path if "://" in path else str(Path(path).expanduser().absolute()))


#: Statements that create the metadata tables, by version and database: spelling them takes longer than running them.
_DEFINITIONS: dict[tuple[str, str], tuple[str, ...]] = {}


def _definitions(version: Version, dialect: sa.Dialect) -> tuple[str, ...]:
    key = version.name, dialect.name
    if key not in _DEFINITIONS:
        # on MySQL every CREATE TABLE counts at once: some may be there from an attempt that was interrupted
        again = dialect.name == "mysql"
        ordered = versions.tables(version).sorted_tables
        _DEFINITIONS[key] = tuple(
            str(CreateTable(table, if_not_exists=again).compile(dialect=dialect)) for table in ordered
        )
    return _DEFINITIONS[key]


def define_tables(connection: sa.Connection, version: Version) -> None:
    """Creates the metadata tables of a version, empty."""
    for definition in _definitions(version, connection.dialect):
        connection.exec_driver_sql(definition, execution_options=UNREAD)


def create(connection: sa.Connection, database: CatalogDatabase, options: AttachOptions, wanted: str | None) -> str:
    """Writes the metadata tables and snapshot 0 with schema main, in one transaction."""
    location = database.location
    chosen = options.data_path or location.default_data_path
    if chosen is None:
        raise UsageError(f"{location.display} holds no lake yet; give data_path to say where its data shall be kept.")
    stored = absolute(chosen) if chosen.startswith("~") else folder(chosen)
    version = versions.written(wanted) if wanted is not None else versions.DEFAULT
    first = Change("created_schema", ("main",))
    rows: tuple[tuple[sa.Table, list[dict[str, object]]], ...] = (
        (
            t.lake_metadata,
            [
                {"key": "version", "value": version.name},
                {"key": "created_by", "value": f"DuckLake Lab {__version__}"},
                {"key": "data_path", "value": stored},
                {"key": "encrypted", "value": str(options.encrypted).casefold()},
            ],
        ),
        (
            t.schema,
            [
                {
                    "schema_id": 0,
                    "schema_uuid": new_uuid(),
                    "begin_snapshot": 0,
                    "schema_name": "main",
                    "path": "main/",
                    "path_is_relative": True,
                }
            ],
        ),
        (
            t.snapshot,
            [
                {
                    "snapshot_id": 0,
                    "snapshot_time": datetime.now(UTC),
                    "schema_version": 0,
                    "next_catalog_id": 1,
                    "next_file_id": 0,
                }
            ],
        ),
        (t.snapshot_changes, [{"snapshot_id": 0, "changes_made": format_changes([first])}]),
    )
    define_tables(connection, version)
    for table, values in rows:
        connection.execute(table.insert(), values, execution_options=UNREAD)
    connection.commit()
    database.version = version
    versions.begin(connection, version)
    return stored
