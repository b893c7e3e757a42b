"""One attached lake: its catalog, its data path, its entries at a snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import TypeVar
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from ducklake_lab.catalog import as_of, paths, versions
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.cache import CachedCatalog, CatalogCache
from ducklake_lab.catalog.columns import read_column_versions
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.observing import observe
from ducklake_lab.catalog.options import OptionRow, Options, SessionOptions, options_of, read_options
from ducklake_lab.catalog.snapshot_tags import tagged
from ducklake_lab.catalog.snapshots import read_snapshot
from ducklake_lab.catalog.state import read_state
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.zones import instant
from ducklake_lab.errors import (
    CatalogError,
    CatalogVersionError,
    DataFileError,
    SnapshotNotFoundError,
    TransactionError,
    UnsupportedFeatureError,
)
from ducklake_lab.file_paths import is_local
from ducklake_lab.model.entries import ColumnVersion, Snapshot, Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.storage import Storage

_storage = Storage()
_Answer = TypeVar("_Answer")


class Lake:
    """An attached lake. It holds no connection; every use opens one for as long as it lasts.

    Attributes:
        alias: the name it is attached under.
        data_path: absolute path or URL of the data, ending in `/`.
        at: the snapshot it is pinned at, or the snapshot or aware time it was attached at, or None for the newest.
        pinned: the name of the snapshot it is pinned at, as messages say it; None where it is not pinned.
        cache: rows read from the catalog.
        last_committed: the newest snapshot committed since it was attached, or None.
        metadata_name: the name its catalog database goes by in SQL.
        session: options of the session it is attached to.
        created: whether attaching it made it.
        branch: the name of the branch that it is; None for a lake itself.
    """

    def __init__(
        self,
        alias: str,
        database: CatalogDatabase,
        data_path: str,
        options: AttachOptions,
        session: SessionOptions | None = None,
        *,
        created: bool = False,
    ) -> None:
        self.alias = alias
        self.created = created
        self.branch: str | None = None
        self.session = session or SessionOptions()
        self._options = options
        self._attached = options.lake_options()
        self.metadata_name = options.metadata_catalog or f"__ducklake_metadata_{alias}"
        #: Whether listings of databases show the catalog's: it was given a name.
        self.metadata_is_listed = options.metadata_catalog is not None
        self.database = database
        self.data_path = data_path
        self._is_read_only = options.read_only
        self._attached_at = (
            options.at if options.at is None or isinstance(options.at, int) else self.instant(options.at)
        )
        self.at: int | datetime | None = self._attached_at
        self.pinned: str | None = None
        self._held: str | None = None
        self._shared = threading.local()
        self.last_committed: int | None = None
        self.cache = CatalogCache(lambda: self.session.report is not None)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written: it is attached read-only, or read as of a snapshot."""
        return self._is_read_only or self.at is not None

    def pin(self, at: int | datetime | date | str | None) -> Snapshot | None:
        """Pins the lake at a snapshot, which all reads without a snapshot of their own see; None takes the pin away.

        Args:
            at: the snapshot's id, a time at which it was the newest, or its tag; resolved once, now.

        Raises:
            SnapshotNotFoundError: the snapshot does not exist.
        """
        if at is None:
            self.at, self.pinned = self._attached_at, self._held
            return None
        with self.connect() as connection:
            return self._pin(connection, at)

    def hold(self, connection: sa.Connection, at: int | datetime | date | str) -> Snapshot:
        """Pins the lake at a snapshot for good: unpinning it leads back to there. See `pin`."""
        snapshot = self._pin(connection, at)
        self._attached_at, self._held = self.at, self.pinned
        return snapshot

    def _pin(self, connection: sa.Connection, at: int | datetime | date | str) -> Snapshot:
        snapshot = self.snapshot(connection, at)
        self.at = snapshot.snapshot_id
        self.pinned = (
            f"{at} (snapshot {snapshot.snapshot_id})" if isinstance(at, str) else f"snapshot {snapshot.snapshot_id}"
        )
        return snapshot

    def check_not_read_only(self) -> None:
        """Raises TransactionError where the lake is attached read-only, as of a snapshot, or pinned at one."""
        if self.pinned is not None and self.pinned == self._held:
            raise TransactionError(
                f"The lake {self.alias} is read as of {self.pinned} in this process, and cannot be written; "
                f"{as_of.AS_OF} says so."
            )
        if self.pinned is not None:
            raise TransactionError(
                f"The lake {self.alias} is pinned at {self.pinned} and can only be read; session.pin(None) or "
                "%ducklake pin --off unpins it."
            )
        if self.read_only:
            how = f"at snapshot {self.at}" if self.at is not None else "read-only"
            raise TransactionError(f"The lake {self.alias} is attached {how}; attach it again for writing.")

    def check_writable(self) -> None:
        """Raises where nothing can be committed to the lake.

        Raises:
            TransactionError: it is attached read-only, or read as of a snapshot.
            CatalogVersionError: its catalog is not of the version that is written.
        """
        self.check_not_read_only()
        version = self.database.version
        if version is not None and not version.is_written:
            raise CatalogVersionError(
                f"The catalog of {self.alias} is of version {version.name} and can only be read; to write, attach it "
                "with automatic_migration=True."
            )

    @property
    def version(self) -> Version:
        """The spec version as which its catalog is seen."""
        return self.database.shown_version

    def check_has(self, feature: str, since: str) -> None:
        """Raise UnsupportedFeatureError where its version lacks a feature of a later one."""
        if not versions.is_since(self.version, since):
            raise UnsupportedFeatureError(
                f"DuckLake {self.version.name} has no {feature}; attach the lake with DUCKLAKE_VERSION '{since}' and "
                "AUTOMATIC_MIGRATION to bring it to a version that has."
            )

    @property
    def location(self) -> CatalogLocation:
        return self.database.location

    @property
    def title(self) -> str:
        """Its alias, with the branch if it is one: `flights#fix`."""
        return self.alias if self.branch is None else f"{self.alias}#{self.branch}"

    @property
    def attach_options(self) -> AttachOptions:
        """Options that attach another catalog as this one is attached."""
        return self._options

    @contextmanager
    def connect(self, *, fresh: bool = False) -> Iterator[sa.Connection]:
        """A catalog connection in a transaction that is rolled back unless committed.

        Nested uses in one thread share the outermost connection, unless a fresh one is wanted: only such a one is written
        with.
        """
        shared: sa.Connection | None = getattr(self._shared, "connection", None)
        if shared is not None and not fresh:
            yield shared
            return
        with self.database.connect(reads=not fresh) as connection:
            if self.session.report is not None:
                observe(connection, partial(self.session.report, self.alias))
            if fresh:
                yield connection
                return
            self._shared.connection = connection
            try:
                yield connection
            finally:
                self._shared.connection = None

    @contextmanager
    def sharing(self, connection: sa.Connection) -> Iterator[None]:
        """Let reads of this thread see what a connection has written and not committed yet."""
        before: sa.Connection | None = getattr(self._shared, "connection", None)
        self._shared.connection = connection
        try:
            yield
        finally:
            self._shared.connection = before

    def snapshot(self, connection: sa.Connection, at: int | datetime | date | str | None = None) -> Snapshot:
        """The snapshot to read: `at`, an id, a time or a tag, else the one attached at, else the newest."""
        at = self.at if at is None else at
        at = tagged(connection, at) if isinstance(at, str) else at
        if at is None:
            snapshot = self.newest_in(connection)
        else:
            snapshot = read_snapshot(connection, at if isinstance(at, int) else self.instant(at))
        return replace(snapshot, snapshot_time=self.local(snapshot.snapshot_time))

    def holds(self, snapshot_id: int, moment: datetime) -> bool:
        """Return whether the catalog has a snapshot of an id and a time; False proves nothing, as a server may still commit it."""
        try:
            with self.connect(fresh=True) as connection:
                return read_snapshot(connection, snapshot_id).snapshot_time == moment
        except (CatalogError, SnapshotNotFoundError, sa.exc.DBAPIError, duckdb.Error):
            return False

    def newest_in(self, connection: sa.Connection) -> Snapshot:
        """The newest snapshot that the connection's transaction sees, its time in UTC."""
        cached = self.cached(connection)
        if cached is not None:
            return cached.snapshot
        snapshot, content = read_snapshot(connection), self.database.content(connection)
        if content is not None:
            self.cache.store(CachedCatalog(content, snapshot))
        return snapshot

    def cached(self, connection: sa.Connection) -> CachedCatalog | None:
        """Rows read before, where the connection's transaction would read the same."""
        return self.cache.by_content(self.database.content(connection))

    def newest_unopened(self) -> Snapshot | None:
        """Return the newest snapshot, where the catalog's files prove that it is the one read last; opens nothing."""
        path = self.location.path
        newest = self.cache.newest_by_files(path) if path is not None and self.at is None else None
        return replace(newest, snapshot_time=self.local(newest.snapshot_time)) if newest is not None else None

    def read_newest(self) -> CatalogState:
        """The entries at the newest snapshot, or at the one attached at, read from the catalog."""
        nested = getattr(self._shared, "connection", None) is not None  # its transaction may be an older one
        with self.connect() as connection:
            snapshot = self.snapshot(connection)
            mark = self.database.mark(connection)
            if not nested and mark is not None and self.at is None:
                self.cache.mark(mark, snapshot)
            return self.state(connection, snapshot)

    def instant(self, value: datetime | date | str) -> datetime:
        """The aware time that a value means in the session's time zone, as DuckDB casts it.

        Raises:
            UsageError: a text is not a time.
        """
        return instant(value, self.session.time_zone())

    def local(self, moment: datetime) -> datetime:
        """An aware time in the session's time zone."""
        return moment.astimezone(ZoneInfo(self.session.time_zone()))

    def state(self, connection: sa.Connection, snapshot: Snapshot) -> CatalogState:
        """The entries at the snapshot; snapshots of one schema version share them."""
        state = self.cache.entries(snapshot)
        if state is None:
            state = read_state(connection, snapshot, self.connect)
            self.cache.add_entries(state)
        return state

    def check_data_path(self, files: Iterable[str]) -> None:
        """Raise where the data path is missing and one of the files is below it.

        Raises:
            DataFileError: names the data path.
        """
        if (
            is_local(self.data_path)
            and any(path.startswith(self.data_path) for path in files)
            and not _storage.exists(self.data_path)
        ):
            raise DataFileError(
                f"The lake {self.alias} has files, and its data path {self.data_path} does not exist; "
                "if it was moved, attach with data_path=… and override_data_path."
            )

    def options(self, connection: sa.Connection) -> Options:
        """The options set in the lake, of all scopes."""
        return self.options_of(self.option_rows(connection))

    def options_of(self, rows: Sequence[OptionRow]) -> Options:
        """All options, where these are set in the lake."""
        return options_of(rows, self.session, self._attached)

    def option_rows(self, connection: sa.Connection) -> Sequence[OptionRow]:
        """The rows of `ducklake_metadata`."""
        cached = self.cached(connection)
        rows = cached.options if cached is not None else None
        if rows is None:
            rows = read_options(connection)
            if cached is not None:
                self.cache.store_more(cached, replace(cached, options=rows))
        return rows

    def column_versions(self, connection: sa.Connection, table_id: int) -> Sequence[ColumnVersion]:
        """All versions of every column that a table ever had; see `read_column_versions`."""
        cached = self.cached(connection)
        column_versions = cached.columns.get(table_id) if cached is not None else None
        if column_versions is None:
            column_versions = read_column_versions(connection, table_id)
            if cached is not None:
                self.cache.store_more(cached, replace(cached, columns={**cached.columns, table_id: column_versions}))
        return column_versions

    def answer(
        self,
        connection: sa.Connection,
        asked: Hashable,
        read: Callable[[], _Answer],
        is_small: Callable[[_Answer], bool] = lambda _: True,
    ) -> _Answer:
        """Return what `read` reads from the catalog; where the catalog is proven to be the same, what it read before.

        Args:
            asked: names the question with all that the answer depends on, but the catalog.
            is_small: whether an answer is kept.
        """
        cached = self.cached(connection)
        if cached is not None and asked in cached.answers:
            known: _Answer = cached.answers[asked]
            return known
        found = read()
        if cached is not None and is_small(found):
            self.cache.store_more(cached, cached.answered(asked, found))
        return found

    def __repr__(self) -> str:
        return f"<Lake {self.alias}: {self.location.display}>"

    def folder(self, state: CatalogState, table: Table) -> str:
        """Absolute path or URL of a table's folder, ending in `/`."""
        return paths.table_folder(self.data_path, state.schemas[table.schema_id], table)
