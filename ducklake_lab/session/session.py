"""The session, the main object of the public API."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.placement import Engine, Limits, Placing, check_engine
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.engine.turn import Turn
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.session.appender import Appender
from ducklake_lab.session.autopilot import Autopilot
from ducklake_lab.session.branching import Branching
from ducklake_lab.session.completion import Completion, SqlCompleter
from ducklake_lab.session.depth import room_for_depth
from ducklake_lab.session.doctoring import Doctoring
from ducklake_lab.session.foreign_tables import ForeignTables
from ducklake_lab.session.functions.restore import restore_table
from ducklake_lab.session.lake_info import LakeInfo
from ducklake_lab.session.live import Live
from ducklake_lab.session.merging import Merging
from ducklake_lab.session.names.argument_types import texts
from ducklake_lab.session.names.attached_lakes import Lakes, split_name
from ducklake_lab.session.names.attaching import attach, attach_statement
from ducklake_lab.session.names.explaining import at_once, works_on_lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.names.secrets import Secrets
from ducklake_lab.session.open_transaction import OpenTransaction, Preview, run_preview, run_transaction
from ducklake_lab.session.plots import Plots
from ducklake_lab.session.redacting import redacts
from ducklake_lab.session.reverting import Reverting
from ducklake_lab.session.rows.handed_in import HandedIn
from ducklake_lab.session.rows.result import Result, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.settings import Settings
from ducklake_lab.session.spark_tables.catalog import Catalogs
from ducklake_lab.session.spark_tables.parts import Parts
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.statements.runner import Statements
from ducklake_lab.session.statements.syntax import check, placing
from ducklake_lab.session.table import TableHandle
from ducklake_lab.session.tracing import Tracing
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.session.uploads.form import UploadOptions
from ducklake_lab.session.uploads.upload import Upload, UploadMode, upload
from ducklake_lab.session.writing import WriteMode, write_rows
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession


@works_on_lakes
class Session(Settings, LakeInfo, Autopilot, Branching, Doctoring, ForeignTables, Live, Merging, Reverting, Tracing):
    """A session: attached lakes, and a Spark session that starts when it is needed.

    Threads take turns: one at a time runs a statement or a `transaction()` block. All threads share an open BEGIN.

    Args:
        spark: a SparkSession to use; None takes the active one or starts one, when it is needed.
        engine: the engine for rows: "auto" chooses by size, "spark" is always Spark, "duckdb" is always in process.
        limits: the largest sizes that `auto` processes without Spark.
    """

    def __init__(
        self, spark: SparkSession | None = None, engine: Engine = "auto", limits: Limits | None = None
    ) -> None:
        check_engine(engine)
        turn = Turn()
        self._database = SessionDatabase(turn)
        self._secrets = Secrets()
        self._lakes = Lakes(self._database, turn)
        self._transactions = Transactions(self._lakes, self._database)
        self._placing = Placing(engine, limits or Limits())
        self._engine = SparkEngine(spark, self._lakes.release, self._database.time_zone, self._placing, turn)
        self._catalogs = Catalogs(self._lakes, self._parts)
        self._sources = Sources(self._transactions, self._engine, self._database)
        self._completer = SqlCompleter(self._lakes)
        attaching = partial(attach_statement, self._lakes, self._secrets, self._sources.names.value)
        self._statements = Statements(
            self._transactions, self._sources, self._engine, attaching, self._database, self._secrets
        )
        if spark is not None:
            self._catalogs.use(spark)

    def _parts(self, alias: str) -> Parts:
        return Parts(self._lakes, self._sources, self._statements, self._engine, self._transactions, alias)

    @property
    def spark(self) -> SparkSession:
        """The SparkSession, with `format("ducklake")` and the lakes as catalogs; starts it if necessary."""
        from ducklake_lab import datasource

        spark = datasource.register(self._engine.users_session())
        self._catalogs.use(spark)
        return spark

    @property
    @at_once
    def spark_started(self) -> bool:
        """Whether Spark is running for this session."""
        return self._engine.session is not None

    @property
    @at_once
    def spark_starting(self) -> bool:
        """Whether Spark is starting."""
        return self._engine.starting

    def expect(self, size: int) -> None:
        """Starts Spark in the background if a lake with that many bytes is too large for this process."""
        if self._placing.expects_spark(size):
            self._engine.start_soon()

    # Lakes

    @redacts
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
        create_folders: bool = False,
        automatic_migration: bool = False,
        ducklake_version: str | None = None,
        storage_version: str | None = None,
        override_data_path: bool = False,
        exclusive: bool = False,
        metadata_catalog: str | None = None,
        metadata_schema: str | None = None,
        data_inlining_row_limit: int | None = None,
        write_deletion_vectors: bool | Literal["plain"] | None = None,
    ) -> Lake:
        """Attaches a lake and creates it if necessary; it becomes the current lake if there is none.

        Args:
            uri: `ducklake:metadata.ducklake`, `ducklake:sqlite:…`, `ducklake:postgres:…`, or a SQLAlchemy URL. A word
                without dots and slashes, `ducklake:my_lake`, names a secret.
            alias: its name in SQL; by default the file's stem or the database's name.
            data_path: folder or URL of the data files; required to create a lake in PostgreSQL.
            read_only: refuse to write.
            snapshot_version: read the lake at this snapshot, without writing.
            snapshot_time: read the lake at this time, without writing. Without a zone it is in the session's TimeZone.
            encrypted: encrypt the files of a new lake; an encrypted lake always encrypts its files.
            create_if_not_exists: create the lake if it does not exist.
            create_folders: create the folder of a new catalog file; otherwise a missing folder is an error.
            automatic_migration: migrate a catalog of an older version to `ducklake_version`, by default 1.0 with DuckDB
                1.5 and 1.1 with 2.0; one of 1.1-dev1 always to 1.1. A failed migration changes nothing.
            ducklake_version: the version of a new lake: by default `1.0` with DuckDB 1.5, `1.1` with 2.0. A
                lake with another version is an error, or is migrated.
            storage_version: DuckDB's storage version of a new catalog file, `latest` or e.g. `v2.0.0`; by
                default one that DuckDB 1.5 reads.
            override_data_path: use `data_path` even if the lake has another one.
            exclusive: keep a DuckDB catalog file open until it is detached: statements do not reopen it, and no
                other process can use it.
            metadata_catalog: the name of its catalog database in SQL; `__ducklake_metadata_<alias>` by default.
            metadata_schema: the schema of the metadata tables in the catalog database.
            data_inlining_row_limit: largest number of rows that an insert inlines, unless the lake sets it.
            write_deletion_vectors: whether to write deletion vectors, unless the lake sets it. They are never encrypted, so
                that an encrypted lake takes them only where it is "plain".

        Raises:
            CatalogNotFoundError: the lake does not exist and may not be created, or its folder does not exist.
            CatalogVersionError: the lake's spec version is not supported.
            EntryExistsError: another lake has the alias.
        """
        options = AttachOptions(
            data_path=data_path,
            read_only=read_only,
            snapshot_version=snapshot_version,
            snapshot_time=snapshot_time,
            encrypted=encrypted,
            create_if_not_exists=create_if_not_exists,
            create_folders=create_folders,
            automatic_migration=automatic_migration,
            ducklake_version=ducklake_version,
            storage_version=storage_version,
            override_data_path=override_data_path,
            exclusive=exclusive,
            metadata_catalog=metadata_catalog,
            metadata_schema=metadata_schema,
            data_inlining_row_limit=data_inlining_row_limit,
            write_deletion_vectors=write_deletion_vectors,
        )
        return attach(self._lakes, self._secrets, uri, alias, options)

    def detach(self, alias: str) -> None:
        """Detaches a lake."""
        self._lakes.remove(self._lakes.get(alias))

    def use(self, name: str) -> None:
        """Makes `lake`, `schema` or `lake.schema` the default for unqualified names."""
        self._lakes.use(split_name(name))

    # Statements

    @redacts
    def sql(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        engine: Engine | None = None,
        dialect: Literal["duckdb", "spark"] = "duckdb",
        at: At = None,
        message: str | None = None,
        variables: Mapping[str, object] | None = None,
        **tables: object,
    ) -> Result:
        """Runs one or more statements; returns the last one's result.

        Args:
            text: SQL in DuckDB's dialect.
            params: values of `:name` and `$name` parameters; bound, never inserted into the text.
            engine: the engine for rows, instead of the session's.
            dialect: "spark" for one query in Spark SQL. It may name tables of lakes, also at a snapshot with
                VERSION AS OF or TIMESTAMP AS OF.
            at: the default snapshot id or time for reads of the current lake; nothing can be written then.
            message: the message of the commits.
            variables: values by name; the text can read a DataFrame among them if no table has its name.
            **tables: rows by their name in the text, e.g. `updates=df`: a Spark, pandas or Polars
                DataFrame, an Arrow table, a result. They hide tables of lakes.

        Raises:
            SqlSyntaxError, BindError: the text is wrong; the wrong statement and later ones do not run.
            UnsupportedFeatureError: a statement is not supported.
        """
        if dialect not in ("duckdb", "spark"):
            raise UsageError(f'"{dialect}" is not a dialect; use "duckdb" or "spark".')
        if engine is not None:
            check_engine(engine)
        started = time.monotonic()
        result = nothing()
        with (
            self._lakes.working(),
            room_for_depth(),
            self._placing.asking(engine),
            self._engine.statement(),
            self._transactions.notes.saying(message),
            self._sources.names.handing_in(HandedIn(tables, variables)),
            placing(text),
        ):
            if dialect == "spark":
                with self._lakes.statement(at):
                    result = self._sources.run_spark_text(text, params)
            else:
                statements = parse(
                    text, params, keep_refused=True, keep_literals=True, variables=self._database.variables
                )
                check(statements, text)
                wrote = False
                for number, statement in enumerate(statements, 1):
                    with (
                        self._transactions.one_of(number, len(statements)),
                        self._lakes.statement(at),
                        self._transactions.notes.running(statement),
                    ):
                        result = self._statements.run_statement(statement)
                    wrote = result.info.wrote = wrote or result.info.wrote or not statement.only_reads
                    # the text alone would read another snapshot
                    if isinstance(statement.operation, op.Query) and at is None:
                        result.text = statement.text.strip()
        result.info.seconds += time.monotonic() - started
        return result

    @at_once
    def interrupt(self) -> None:
        """Stops the query in process that another thread runs, which raises an error; does nothing where none runs."""
        self._database.interrupt()

    def check(self, table: str | None = None, since: At = None) -> Result:
        """Checks the expectations of a table and returns one row for each, with violations and the first violating rows.

        Counts of a whole table are kept in the lake, without a snapshot; `check_history` returns them, and a notebook charts them.

        Args:
            table: all tables of the current lake that have expectations if left out.
            since: a snapshot id or time; rows that were there then are not checked, only compared with.

        Raises:
            CatalogError: an expectation names a column or table that another client dropped.
        """
        with self._lakes.working(), self._engine.statement(), self._lakes.statement():
            checking = self._statements.checking
            return checking.check_all(since) if table is None else checking.check(self._lakes.parse(table), since)

    def check_history(self, table: str | None = None) -> Result:
        """Returns the violations that earlier checks of whole tables counted: a row for each expectation and check, oldest first.

        Args:
            table: all tables of the current lake that have expectations if left out.
        """
        with self._lakes.working(), self._lakes.statement():
            return self._statements.checking.history(None if table is None else self._lakes.parse(table))

    def table(self, name: str, at: At = None) -> TableHandle:
        """Returns a handle for `table`, `schema.table` or `lake.schema.table` at a snapshot id or time."""
        return TableHandle(self._lakes, self._sources, self._engine, name, at)

    def write(self, rows: object, table: str, mode: WriteMode = "append") -> Result:
        """Writes rows to a table; matches columns by name.

        Args:
            rows: a Spark or pandas DataFrame, or an Arrow table.
            mode: `append` to an existing table, `overwrite` its rows, `create` a table, or `create_or_replace` it.

        Returns:
            The number of written rows.
        """
        return write_rows(self._lakes, self._statements, rows, table, mode, self.transaction)

    def upload(
        self,
        source: str,
        table: str | None = None,
        mode: UploadMode = "create",
        **options: Unpack[UploadOptions],
    ) -> Upload:
        """Prepares the upload of files to a table. Its `apply` writes the rows; nothing is written before.

        Every line of a CSV file becomes a row or is counted; none is skipped unless an option asks for it. Numbers with
        leading zeros, and numbers that would lose digits in any type, stay text.

        Args:
            source: a file, a pattern, a folder or a URL, with CSV, Parquet, JSON or Excel files (needs openpyxl).
            table: the table's name; by default the file's name.
            mode: `create` a table, `append` to one by column names, or `replace` it.
            options: see `UploadOptions`: `types`, `date_format`, `nulls`, `thousands`, `decimal`, `delimiter`, `quote`,
                `escape`, `header`, `skip`, `encoding`, `sheet`, `round`, `clean_names`.

        Raises:
            UsageError: the file does not exist, or cannot be uploaded.
            SqlError: a line differs from the others, or a value would lose digits or parts in its type.
            EntryExistsError: the mode is `create`, and the table exists.
        """
        return upload(self._lakes, self.sql, source, table, mode, options)

    def appender(
        self, table: str, columns: Sequence[str] | None = None, *, rows: int = 1_000, seconds: float | None = None
    ) -> Appender:
        """Returns an appender, which collects rows for a table and commits them in batches.

        Args:
            columns: the column, or columns, that rows have values for; all by default.
            rows: number of held rows at which they are flushed.
            seconds: age of the oldest held row, in seconds, at which the next row flushes; None for no limit.
        """
        dml = Dml(self._lakes, self._sources, self._engine)
        return Appender(
            self._transactions, self._sources, dml, table, None if columns is None else texts(columns), rows, seconds
        )

    def restore(self, table: str, to: int | datetime | str) -> Snapshot | None:
        """Restores a table as it was at an earlier snapshot, as a new snapshot, and returns that.

        Columns and rows are as they were then; a dropped table comes back. It reads and writes no rows.

        Raises:
            SnapshotNotFoundError: the snapshot does not exist; it may have expired.
            DataFileError: a necessary data file has been deleted.
        """
        entry = self._lakes.parse(table)
        with self._lakes.statement(), self._transactions.writing(entry.lake) as transaction:
            restore_table(self._transactions, self._engine, entry.lake, entry.schema, entry.name, to)
        return transaction.snapshot

    def complete(
        self, text: str, cursor: int, variables: Iterable[str] = (), tables: Iterable[str] = ()
    ) -> list[Completion]:
        """Returns candidates for a position in incomplete SQL, from the catalog; needs no Spark.

        Args:
            variables: names of possible parameters.
            tables: names of variables that hold tables.
        """
        return self._completer.complete(text, cursor, variables, tables)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._lakes.in_transaction

    @contextmanager
    def transaction(
        self, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Iterator[OpenTransaction]:
        """Runs the statements of the block as one transaction: commits at the end, rolls back on an error.

        Raises:
            TransactionConflictError: another commit conflicts; nothing is written.
        """
        with run_transaction(self._transactions, self._engine, author, message, extra_info) as handle:
            yield handle

    def preview(self, text: str, params: Mapping[str, object] | None = None, **given: Any) -> Preview:
        """Runs statements in a transaction that stays open, and shows their changes. It takes the arguments of `sql`.

        The lake does not change before `commit()` of the preview, or COMMIT.

        Raises:
            TransactionError: a transaction is open already.
            UsageError: the statements change no lake, commit, or have effects that no rollback takes back, such as files.
        """
        return run_preview(self._transactions, self._engine, lambda: self.sql(text, params, **given))

    @property
    def plot(self) -> Plots:
        """Figures of the current lake: `session.plot.history()`, `.files(table)`, `.diff(table, a, b)`."""
        return Plots(self.snapshots, self.table)

    # End

    def close(self) -> None:
        """Rolls back an open transaction and detaches all lakes. Spark keeps running: other code may use it."""
        if self._lakes.in_transaction:
            self._transactions.rollback()
        for lake in list(self._lakes):
            self._lakes.remove(lake)
        self._engine.close()
        self._secrets.close()
        self._database.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session: {', '.join(lake.alias for lake in self._lakes) or 'no lake attached'}>"
