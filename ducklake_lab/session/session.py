"""The session: the one object users talk to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake, open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.diff.compute import diff_states
from ducklake_lab.diff.diff import Diff
from ducklake_lab.errors import EntryExistsError, TransactionError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.scan.counts import TableCounts, table_counts
from ducklake_lab.scan.history import lake_history
from ducklake_lab.session.engine import SparkEngine
from ducklake_lab.session.lakes import At, Lakes
from ducklake_lab.session.listings import History
from ducklake_lab.session.result import Result, nothing
from ducklake_lab.session.sources import Sources
from ducklake_lab.session.statements import Statements
from ducklake_lab.session.table import TableHandle
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ducklake_lab.spark.progress import Progress

Engine = Literal["spark", "duckdb"]
WriteMode = Literal["append", "overwrite", "create", "create_or_replace"]

_ATTACH_OPTIONS = (
    "data_path",
    "read_only",
    "snapshot_version",
    "snapshot_time",
    "encrypted",
    "create_if_not_exists",
)


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table as a listing shows it.

    Attributes:
        record_count: rows that are not deleted.
        file_size_bytes: size of the data files.
    """

    lake: str
    schema: str
    table: Table
    record_count: int
    file_size_bytes: int


class Session:
    """Attached lakes and a Spark session that is started when rows are first read or written.

    Args:
        spark: a SparkSession to use; None starts one, or takes the active one, when it is needed.
        engine: what runs queries: "spark", or "duckdb" for reading in process.
    """

    def __init__(self, spark: SparkSession | None = None, engine: Engine = "spark") -> None:
        if engine not in ("spark", "duckdb"):
            raise UsageError(f'"{engine}" is not an engine; use "spark" or "duckdb".')
        self.engine: Engine = engine
        self._lakes = Lakes()
        self._engine = SparkEngine(spark, before_jobs=self._lakes.release)
        self._sources = Sources(self._lakes, self._engine)
        self._statements = Statements(self._lakes, self._sources, self._engine, self._attach_statement)

    @property
    def spark(self) -> SparkSession:
        """The SparkSession; starts it if need be."""
        return self._engine()

    @property
    def spark_started(self) -> bool:
        """Whether Spark is running for this session."""
        return self._engine.session is not None

    @property
    def spark_starting(self) -> bool:
        """Whether Spark is being started at this moment."""
        return self._engine.starting

    @property
    def on_progress(self) -> Callable[[Progress], None] | None:
        """Called while Spark works, from another thread."""
        return self._engine.on_progress

    @on_progress.setter
    def on_progress(self, listener: Callable[[Progress], None] | None) -> None:
        self._engine.on_progress = listener

    # Lakes

    def attach(
        self,
        uri: str,
        alias: str | None = None,
        data_path: str | None = None,
        *,
        read_only: bool = False,
        snapshot_version: int | None = None,
        snapshot_time: datetime | str | None = None,
        encrypted: bool = False,
        create_if_not_exists: bool = True,
    ) -> Lake:
        """Attaches a lake, creating it where there is none.

        Args:
            uri: `ducklake:metadata.ducklake`, `ducklake:sqlite:…`, `ducklake:postgres:…`, or a SQLAlchemy URL.
            alias: its name in SQL; the file's stem, or the database's name, by default.
            data_path: folder or URL of the data; needed to create a lake in PostgreSQL.
            read_only: refuse to write.
            snapshot_version: read the lake as of this snapshot, without writing.
            snapshot_time: likewise as of this time; naive times are UTC.

        Raises:
            CatalogNotFoundError: there is no lake and none shall be created.
            CatalogVersionError: the lake's spec version is not supported.
            EntryExistsError: the alias is taken.
        """
        location = parse_uri(uri)
        name = alias or location.default_alias
        if self._lakes.find(name) is not None:
            raise EntryExistsError(f"A lake is attached as {name} already; choose another alias, or detach it first.")
        if snapshot_version is not None and snapshot_time is not None:
            raise UsageError("Give snapshot_version or snapshot_time, not both.")
        at: At = snapshot_version
        if isinstance(snapshot_time, str):
            at = _time(snapshot_time)
        elif snapshot_time is not None:
            at = snapshot_time
        lake = open_lake(
            location,
            name,
            data_path=data_path,
            read_only=read_only,
            at=at,
            encrypted=encrypted,
            create_if_not_exists=create_if_not_exists,
        )
        self._lakes.add(lake)
        return lake

    def detach(self, alias: str) -> None:
        """Forgets an attached lake."""
        self._lakes.remove(self._lakes.get(alias))

    def use(self, name: str) -> None:
        """Makes `lake`, `schema` or `lake.schema` the place of unqualified names."""
        self._lakes.use(tuple(name.split(".")))

    @property
    def lakes(self) -> list[Lake]:
        """The attached lakes."""
        return list(self._lakes)

    @property
    def current_lake(self) -> Lake:
        return self._lakes.get()

    @property
    def current_schema(self) -> str:
        """The schema of unqualified names."""
        return self._lakes.current_schema

    def _attach_statement(self, statement: op.Attach) -> None:
        options = {key.casefold(): self._sources.value(value) for key, value in statement.options.items()}
        options.pop("type", None)
        for key in options:
            if key not in _ATTACH_OPTIONS:
                raise UnsupportedFeatureError(
                    f"The ATTACH option {key.upper()} is not supported.{did_you_mean(key, _ATTACH_OPTIONS)}"
                )
        alias = statement.alias or parse_uri(statement.uri).default_alias
        attached = self._lakes.find(alias)
        if attached is not None:
            if statement.if_not_exists:
                return
            if statement.replace:
                self._lakes.remove(attached)
        self.attach(statement.uri, statement.alias, **options)

    # Statements

    def sql(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        engine: Engine | None = None,
        dialect: Literal["duckdb", "spark"] = "duckdb",
    ) -> Result:
        """Runs one or more statements; gives the last one's result.

        Args:
            text: SQL in DuckDB's dialect.
            params: values of `:name` and `$name` parameters; bound, never pasted into the text.
            engine: what runs a query, instead of the session's.

        Raises:
            SqlSyntaxError, BindError: the text is wrong; nothing of it ran that comes after the wrong statement.
            UnsupportedFeatureError: a statement is not supported.
        """
        if dialect != "duckdb":
            raise UnsupportedFeatureError(f'dialect="{dialect}" is not supported yet; write DuckDB SQL.')
        started = time.monotonic()
        result = nothing()
        for statement in parse(text, params):
            with self._lakes.statement():
                result = self._statements.run(statement.operation, engine or self.engine)
        result.info.seconds += time.monotonic() - started
        return result

    def table(self, name: str, at: At = None) -> TableHandle:
        """A table by `table`, `schema.table` or `lake.schema.table`, as of `at` (snapshot id or time)."""
        return TableHandle(self._lakes, self._sources, self._engine, name, at)

    def write(self, rows: Any, table: str, mode: WriteMode = "append") -> Result:
        """Writes rows to a table, columns matched by name.

        Args:
            rows: a Spark or pandas DataFrame, or an Arrow table.
            mode: `append` to a table that exists; `overwrite` its rows; `create` a table; `create_or_replace` it.

        Returns:
            The count of rows written.
        """
        if mode not in ("append", "overwrite", "create", "create_or_replace"):
            modes = ("append", "overwrite", "create", "create_or_replace")
            raise UsageError(f'"{mode}" is not a write mode; use one of {", ".join(modes)}.{did_you_mean(mode, modes)}')
        place = self._lakes.parse(table)
        name = op.TableName(place.lake.alias, place.schema, place.name)
        view = self._sources.register(_as_frame(rows))
        query = _query(f"SELECT * FROM {view}")
        try:
            if mode in ("create", "create_or_replace"):
                statement = op.CreateTable(name, query=query, replace=mode == "create_or_replace")
                return self._statements.run(statement)
            insert = op.Insert(name, columns=None, query=query.tree, by_name=True)
            if mode == "append" or self._lakes.in_transaction:
                if mode == "overwrite":
                    self._statements.run(op.Truncate(name))
                return self._statements.run(insert)
            with self.transaction():
                self._statements.run(op.Truncate(name))
                return self._statements.run(insert)
        finally:
            del self._sources.frames[view]

    def restore(self, table: str, to: int | datetime) -> Snapshot | None:
        """Makes a table's contents those of an earlier snapshot again, as a new snapshot."""
        raise UnsupportedFeatureError(f"Restoring {table} (to {to}) is not supported yet.")

    # Transactions

    @contextmanager
    def transaction(
        self, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Iterator[OpenTransaction]:
        """Many statements, one snapshot: commits at the end, rolls back on an error.

        Raises:
            TransactionConflictError: another commit excludes this one; nothing was written.
        """
        self._lakes.begin()
        handle = OpenTransaction(self._lakes, self._sources)
        try:
            yield handle
        except BaseException:
            if self._lakes.in_transaction:
                self._lakes.rollback()
            raise
        if not self._lakes.in_transaction:
            return  # ended by hand
        transaction = self._lakes.transaction
        if transaction is not None:
            transaction.author = author if author is not None else transaction.author
            transaction.message = message if message is not None else transaction.message
            transaction.extra_info = extra_info if extra_info is not None else transaction.extra_info
        handle.snapshot = self._lakes.commit()

    # Listings

    def snapshots(self, table: str | None = None, last: int | None = None) -> History:
        """The snapshots of the current lake, oldest first, with what each changed."""
        lake, table_id = self._lakes.get(), None
        if table is not None:
            place = self._lakes.parse(table)
            lake, table_id = place.lake, place.table().table_id
        with lake.connect() as connection:
            entries = lake_history(lake, connection, table_id=table_id, last=last)
        return History(table or lake.alias, entries)

    def history(self, table: str | None = None) -> History:
        """The same as `snapshots`."""
        return self.snapshots(table)

    def current_snapshot(self) -> Snapshot:
        """The snapshot that statements read now."""
        return self._lakes.state(self._lakes.get()).snapshot

    def tables(self, at: At = None) -> list[TableInfo]:
        """The tables of all attached lakes, by lake, schema and name, with their sizes."""
        found = []
        for lake in self._lakes:
            state = self._lakes.state(lake, at if lake is self._lakes.get() else None)
            with lake.connect() as connection:
                counts = table_counts(lake, connection, state.snapshot.snapshot_id)
            for table in state.tables.values():
                known = counts.get(table.table_id, TableCounts())
                found.append(TableInfo(lake.alias, state.schema_of(table).name, table, known.rows, known.bytes))
        return sorted(found, key=lambda info: (info.lake, info.schema, info.table.name))

    # End

    def close(self) -> None:
        """Rolls back what is open and forgets the lakes. Spark is left running: others may use it."""
        if self._lakes.in_transaction:
            self._lakes.rollback()
        for lake in list(self._lakes):
            self._lakes.remove(lake)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session: {', '.join(lake.alias for lake in self._lakes) or 'no lake attached'}>"


class OpenTransaction:
    """The transaction of a `with session.transaction()` block.

    Attributes:
        snapshot: the snapshot it became, once committed; None where nothing was changed.
    """

    def __init__(self, lakes: Lakes, sources: Sources) -> None:
        self._lakes = lakes
        self._sources = sources
        self.snapshot: Snapshot | None = None

    def diff(self, table: str | None = None) -> Diff:
        """What the transaction has changed so far in a table; the name can be left out if it changed one only."""
        transaction = self._lakes.transaction
        if transaction is None or not transaction.has_changes:
            raise TransactionError("The transaction has changed nothing yet.")
        if table is None:
            touched = {i for i, staged in transaction.data.items() if staged}
            touched |= {i for i, entry in transaction.state.tables.items() if transaction.base.tables.get(i) != entry}
            names = sorted(transaction.state.qualified_name(transaction.state.tables[i]) for i in touched)
            if len(names) != 1:
                raise UsageError(f"The transaction changed {', '.join(names)}; say which with diff(table).")
            table = names[0]
        after = self._lakes.parse(table)
        entry = after.table()
        before = transaction.base.tables.get(entry.table_id)
        if before is None:
            raise UnsupportedFeatureError(f"{table} was made by this transaction; there is nothing to compare it with.")
        return diff_states(
            after.lake, transaction.base, after.state, before, entry, table, staged=transaction.peek(entry)
        )

    def rollback(self) -> None:
        """Undoes everything; the block may go on, in no transaction."""
        self._lakes.rollback()

    def commit(self) -> None:
        """Commits now."""
        self.snapshot = self._lakes.commit()


def connect(
    uri: str, alias: str | None = None, *, spark: SparkSession | None = None, engine: Engine = "spark", **options: Any
) -> Session:
    """A session with one lake attached; the options are those of `Session.attach`."""
    session = Session(spark=spark, engine=engine)
    session.attach(uri, alias, **options)
    return session


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f'"{text}" is not a time; write e.g. 2024-01-15 12:30:00.') from None


def _query(text: str) -> op.Query:
    operation = parse(text)[0].operation
    assert isinstance(operation, op.Query)
    return operation


def _as_frame(rows: Any) -> Any:
    """An Arrow table for what is in memory, else the Spark DataFrame itself."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Result):
        return rows.arrow() if rows.in_process else rows.spark()
    module = type(rows).__module__
    if module.startswith("pandas"):
        return pa.Table.from_pandas(rows, preserve_index=False)
    if module.startswith("pyspark"):
        return rows
    raise UsageError(f"Rows to write are a Spark or pandas DataFrame or an Arrow table, not {type(rows).__name__}.")
