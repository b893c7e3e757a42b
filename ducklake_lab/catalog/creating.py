"""Makes new lakes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.errors import UsageError
from ducklake_lab.model.changes import Change, format_changes
from ducklake_lab.model.entries import Schema
from ducklake_lab.version import __version__


def folder(path: str) -> str:
    """A folder as the catalog stores it: with one slash at its end."""
    return path.rstrip("/") + "/"


def absolute(path: str) -> str:
    return folder(path if "://" in path else str(Path(path).expanduser().absolute()))


def create(connection: sa.Connection, database: CatalogDatabase, options: AttachOptions, wanted: str | None) -> str:
    """Writes the metadata tables and snapshot 0 with schema main, in one transaction."""
    location = database.location
    chosen = options.data_path or location.default_data_path
    if chosen is None:
        raise UsageError(f"{location.display} holds no lake yet; give data_path to say where its data shall be kept.")
    stored = absolute(chosen) if chosen.startswith("~") else folder(chosen)
    # on MySQL every CREATE TABLE counts at once: some may be there from an attempt that was interrupted
    version = versions.written(wanted) if wanted is not None else versions.DEFAULT
    versions.tables(version).create_all(connection, checkfirst=database.backend == "mysql")
    connection.execute(
        t.lake_metadata.insert(),
        [
            {"key": "version", "value": version.name},
            {"key": "created_by", "value": f"DuckLake Lab {__version__}"},
            {"key": "data_path", "value": stored},
            {"key": "encrypted", "value": str(options.encrypted).casefold()},
        ],
    )
    main = Schema(0, new_uuid(), "main", "main/")
    connection.execute(
        t.schema.insert(),
        {
            "schema_id": 0,
            "schema_uuid": main.uuid,
            "begin_snapshot": 0,
            "schema_name": main.name,
            "path": main.path,
            "path_is_relative": True,
        },
    )
    connection.execute(
        t.snapshot.insert(),
        {
            "snapshot_id": 0,
            "snapshot_time": datetime.now(UTC),
            "schema_version": 0,
            "next_catalog_id": 1,
            "next_file_id": 0,
        },
    )
    connection.execute(
        t.snapshot_changes.insert(),
        {"snapshot_id": 0, "changes_made": format_changes([Change("created_schema", ("main",))])},
    )
    connection.commit()
    database.version = version
    versions.begin(connection, version)
    return stored
