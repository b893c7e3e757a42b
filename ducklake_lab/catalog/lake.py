"""One attached lake: its catalog, its data path, its entries at a snapshot."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from ducklake_lab.catalog import paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.options import Options, read_options
from ducklake_lab.catalog.reader import read_snapshot, read_state
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import (
    CatalogError,
    CatalogNotFoundError,
    CatalogVersionError,
    UnsupportedFeatureError,
    UsageError,
)
from ducklake_lab.model.changes import Change, format_changes
from ducklake_lab.model.entries import Schema, Snapshot, Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.version import __version__

SPEC_VERSION = "1.0"
_READABLE = (SPEC_VERSION,)
_CACHED_STATES = 32


class Lake:
    """An attached lake. It holds no connection; every use opens one for as long as it lasts.

    Attributes:
        alias: the name it is attached under.
        data_path: absolute path or URL of the data, ending in `/`.
        at: the snapshot the lake was attached at, or None for the newest.
    """

    def __init__(
        self,
        alias: str,
        database: CatalogDatabase,
        data_path: str,
        *,
        read_only: bool = False,
        at: int | datetime | None = None,
    ) -> None:
        self.alias = alias
        self.database = database
        self.data_path = data_path
        self.read_only = read_only or at is not None
        self.at = at
        self._shared = threading.local()
        self._states: OrderedDict[int, CatalogState] = OrderedDict()

    @property
    def location(self) -> CatalogLocation:
        return self.database.location

    @contextmanager
    def connect(self, *, fresh: bool = False) -> Iterator[sa.Connection]:
        """A catalog connection in a transaction that is rolled back unless committed.

        Nested uses in one thread share the outermost connection, unless a fresh one is wanted.
        """
        shared: sa.Connection | None = getattr(self._shared, "connection", None)
        if shared is not None and not fresh:
            yield shared
            return
        with self.database.connect() as connection:
            if fresh:
                yield connection
                return
            self._shared.connection = connection
            try:
                yield connection
            finally:
                self._shared.connection = None

    def snapshot(self, connection: sa.Connection, at: int | datetime | None = None) -> Snapshot:
        """The snapshot to read: `at`, else the one attached at, else the newest."""
        return read_snapshot(connection, at if at is not None else self.at)

    def state(self, connection: sa.Connection, snapshot: Snapshot) -> CatalogState:
        """The entries at the snapshot; snapshots of one schema version share them."""
        cached = self._states.get(snapshot.schema_version)
        if cached is None:
            cached = read_state(connection, snapshot)
            self._states[snapshot.schema_version] = cached
            if len(self._states) > _CACHED_STATES:
                self._states.popitem(last=False)
        self._states.move_to_end(snapshot.schema_version)
        return replace(cached, snapshot=snapshot)

    def options(self, connection: sa.Connection) -> Options:
        """The options set in the lake, of all scopes."""
        return read_options(connection)

    def folder(self, state: CatalogState, table: Table) -> str:
        """Absolute path or URL of a table's folder, ending in `/`."""
        return paths.table_folder(self.data_path, state.schemas[table.schema_id], table)


def open_lake(
    location: CatalogLocation,
    alias: str,
    *,
    data_path: str | None = None,
    read_only: bool = False,
    at: int | datetime | None = None,
    encrypted: bool = False,
    create_if_not_exists: bool = True,
) -> Lake:
    """Opens a lake, creating it where there is none and that is wanted.

    Raises:
        CatalogNotFoundError: there is no lake, and `create_if_not_exists` is false or `read_only` is true.
        CatalogVersionError: the lake's spec version is not supported.
        UsageError: the given data path is not the lake's.
        UnsupportedFeatureError: `encrypted`.
    """
    if encrypted:
        raise UnsupportedFeatureError("Encrypted lakes are not supported yet; attach without ENCRYPTED.")
    create = create_if_not_exists and not read_only and at is None
    database = CatalogDatabase(location)
    if location.path is not None and create:
        location.path.parent.mkdir(parents=True, exist_ok=True)
    with database.connect(create=create) as connection:
        if database.has_table(connection, "ducklake_metadata"):
            stored = _check(connection, location)
        elif create:
            stored = _create(connection, location, data_path)
        else:
            raise CatalogNotFoundError(
                f"{location.display} holds no DuckLake catalog; check the path, or attach with create_if_not_exists."
            )
        chosen = _chosen_data_path(location, stored, data_path)
        lake = Lake(alias, database, chosen, read_only=read_only, at=at)
        if at is not None:
            lake.snapshot(connection)
        return lake


def _check(connection: sa.Connection, location: CatalogLocation) -> str:
    """Checks the version and gives the stored data path."""
    m = t.lake_metadata
    rows = dict(connection.execute(sa.select(m.c.key, m.c.value).where(m.c.scope.is_(None))).all())
    version = rows.get("version")
    if version not in _READABLE:
        raise CatalogVersionError(
            f"{location.display} is a DuckLake catalog of version {version}; this release reads version "
            f"{' and '.join(_READABLE)}. Migrate it with DuckDB (AUTOMATIC_MIGRATION) or use a newer release."
        )
    if rows.get("encrypted", "false").casefold() == "true":
        raise UnsupportedFeatureError(f"{location.display} is an encrypted lake; these are not supported yet.")
    stored: str | None = rows.get("data_path")
    if stored is None:
        raise CatalogError(f"{location.display} has no data_path in ducklake_metadata.")
    return stored


def _chosen_data_path(location: CatalogLocation, stored: str, given: str | None) -> str:
    base = str(location.path.parent) + "/" if location.path is not None else str(Path.cwd()) + "/"
    resolved = stored if paths.is_absolute(stored) else base + stored
    if given is not None and _absolute(given) != resolved:
        raise UsageError(
            f"The lake keeps its data in {stored}, not in {given}; leave data_path out to use it as it is."
        )
    return resolved


def _absolute(path: str) -> str:
    absolute = path if "://" in path else str(Path(path).expanduser().absolute())
    return absolute if absolute.endswith("/") else absolute + "/"


def _create(connection: sa.Connection, location: CatalogLocation, data_path: str | None) -> str:
    """Writes the metadata tables and snapshot 0 with schema main, in one transaction."""
    chosen = data_path or location.default_data_path
    if chosen is None:
        raise UsageError(f"{location.display} holds no lake yet; give data_path to say where its data shall be kept.")
    stored = _absolute(chosen)
    t.metadata.create_all(connection, checkfirst=False)
    connection.execute(
        t.lake_metadata.insert(),
        [
            {"key": "version", "value": SPEC_VERSION},
            {"key": "created_by", "value": f"DuckLake Lab {__version__}"},
            {"key": "data_path", "value": stored},
            {"key": "encrypted", "value": "false"},
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
    return stored
