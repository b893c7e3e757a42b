"""The session's own database, in memory: tables, views, macros and variables outside of lakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.connections import in_memory
from ducklake_lab.duckdb.stopping import Stoppable
from ducklake_lab.duckdb.zones import process_time_zone, zone_of
from ducklake_lab.engine.in_process.engine import Readable, Shown, fetch_with_types, translated
from ducklake_lab.engine.in_process.row_by_row import is_row_by_row
from ducklake_lab.engine.turn import Turn
from ducklake_lab.errors import SqlError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier

#: Names of the session's own databases.
OWN_DATABASES = ("memory", "temp", "system")


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a statement.

    Attributes:
        types: DuckDB's type names of the columns.
    """

    table: pa.Table
    types: tuple[str, ...]


class SessionDatabase:
    """An in-memory DuckDB, opened on first use.

    Unlike `in_process.engine`, it may read and write files: it runs the user's own statements.

    Attributes:
        on_progress: called with the finished share of a statement; None without a listener.
        is_aborted: a statement of the open transaction failed here; only ROLLBACK is possible.

    Args:
        turn: the turn of the session.
    """

    def __init__(self, turn: Turn | None = None) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._turn = turn or Turn()
        self._stoppable = Stoppable()
        self.on_progress: Callable[[float], None] | None = None
        self.is_aborted = False
        self._in_transaction = False
        self._holds_entries = False
        self._has_settings = False
        self._place: tuple[str, ...] = ("memory",)
        self._time_zone: str | None = None
        self._global_time_zone: str | None = None

    def run(
        self,
        sql: str,
        tables: Mapping[str, Readable] | None = None,
        types: Sequence[str] | None = None,
        macros: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Runs one statement.

        Args:
            tables: rows by their name in the statement.
            types: the column types of a query, if `describe` has returned them.
            macros: macros that the statement calls, see `QueryPlan`.

        Raises:
            BindError: a name does not exist.
            ConstraintError: a value does not fit a type, or breaks a constraint.
            KeyboardInterrupt: the user interrupted.
            SqlError: DuckDB refuses the statement for another reason.
        """
        with self._reading(sql, tables, macros) as (connection, text):
            if self.on_progress is not None:
                # DuckDB only counts progress for a bar, which it need not print
                connection.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")
            return Fetched(
                *self._stoppable.run(connection, lambda: fetch_with_types(connection, text, types), self.on_progress)
            )

    def check_default(self, expression: str) -> None:
        """Checks the default of a column, without running it.

        Raises:
            BindError: DuckDB refuses it.
            SqlError: DuckDB refuses it for another reason.
        """
        with self._turn.taken(), self._open().cursor() as other:
            try:
                other.execute(f"CREATE TEMP TABLE ducklake_default (v VARCHAR DEFAULT ({expression}))")
            except duckdb.Error as error:
                raise translated(error) from error

    def interrupt(self) -> None:
        """Stops the statement that another thread runs; does nothing where none runs."""
        connection = self._connection
        if connection is not None:
            with suppress(duckdb.Error):
                connection.interrupt()

    def describe(
        self,
        query: str,
        tables: Mapping[str, Readable] | None = None,
        macros: Mapping[str, str] | None = None,
    ) -> list[tuple[str, str]]:
        """Binds a query without running it; returns (name, type) of each column. Arguments are as in `run`."""
        return [(name, kind) for name, kind, _, _ in self.described(query, tables, macros)]

    def described(
        self,
        query: str,
        tables: Mapping[str, Readable] | None = None,
        macros: Mapping[str, str] | None = None,
    ) -> list[tuple[str, str, bool, str | None]]:
        """Binds a query without running it; returns name, type, whether NULLs are allowed, and default of each column."""
        with self._reading(query, tables, macros) as (connection, text):
            rows = connection.execute(f"DESCRIBE {text}").fetchall()
            return [(str(row[0]), str(row[1]), row[2] == "YES", row[4]) for row in rows]

    def is_row_by_row(self, query: str, view: str) -> bool:
        """Returns whether a query can run on parts of the view's rows; see `in_process.row_by_row`."""
        with self._reading(query) as (connection, text):
            return is_row_by_row(connection, text, view)

    def time_zone(self) -> str:
        """Returns the session's time zone: the process's own until SET TimeZone."""
        return self._time_zone or process_time_zone()

    @contextmanager
    def in_zone(self, time_zone: str) -> Iterator[None]:
        """Runs the statements of the block in a time zone, regardless of later settings."""
        now = self.time_zone()
        if time_zone == now:
            yield
            return
        with self._turn.taken():
            self._open().execute(f"SET TimeZone = '{time_zone}'")
            try:
                yield
            finally:
                self._open().execute(f"SET TimeZone = '{now}'")

    def settings(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Returns (name, value) of the time zone, and of the named settings that differ from DuckDB's defaults."""
        time_zone = (("TimeZone", self.time_zone()),)
        if not self._has_settings:
            return time_zone
        others = [name for name in names if name != "TimeZone"]
        columns = ", ".join(f"CAST(current_setting('{name}') AS VARCHAR)" for name in others)
        with self._reading(f"SELECT {columns}") as (connection, text):
            (row,) = connection.execute(text).fetchall()
        own = _own_settings(columns)
        return (*time_zone, *((n, v) for n, v, before in zip(others, row, own, strict=True) if v != before))

    def global_time_zone(self) -> str:
        """Returns the zone in which AT reads times without one, as in the reference: that of SET GLOBAL, not of SET."""
        return self._global_time_zone or process_time_zone()

    def note_settings(self) -> None:
        """Updates the time zones after a setting has changed, and notes that there are settings.

        Raises:
            UnsupportedFeatureError: Python does not know the zone; the previous one is restored.
        """
        with self._turn.taken():
            connection = self._open()
            self._has_settings = True
            try:
                self._time_zone = zone_of(connection)
                with connection.cursor() as other:
                    self._global_time_zone = zone_of(other)
            except UnsupportedFeatureError:
                connection.execute(f"SET TimeZone = '{self.time_zone()}'")
                raise

    def write_log(self, log_type: str, message: Mapping[str, object]) -> None:
        """Adds an entry to DuckDB's log, if the log accepts its type and level."""
        with self._turn.taken(), self._open().cursor() as connection:
            fields = ", ".join(f"{quote_identifier(name)}: ${i}" for i, name in enumerate(message, 1))
            connection.execute(
                f"SELECT write_log(({{{fields}}})::VARCHAR, log_type := '{log_type}', level := 'debug', "
                "scope := 'database')",
                list(message.values()),
            )

    @contextmanager
    def _reading(
        self,
        sql: str,
        tables: Mapping[str, Readable] | None = None,
        macros: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        """Yields the connection, and the statement in the form to run there."""
        with self._turn.taken():
            connection = self._open()
            shown = Shown(connection)
            done = False
            try:
                yield connection, shown.show(sql, tables or {}, macros)
                done = True
            except (duckdb.InternalException, duckdb.FatalException) as error:
                raise self._given_up(error) from None
            except duckdb.Error as error:
                raise shown.failure(error) or translated(error) from error
            finally:
                if self._connection is connection:
                    if not done and self._in_transaction:
                        self.is_aborted = self._refuses(connection)
                    elif not done:
                        # DuckDB leaves a transaction of its own open where a statement that it splits up fails
                        with suppress(duckdb.TransactionException):
                            connection.execute("ROLLBACK")
                    if not self.is_aborted:
                        shown.hide()

    def _given_up(self, error: duckdb.Error) -> SqlError:
        """Closes the database after DuckDB's internal error and returns the error; the next use opens a new one."""
        if self._connection is not None:
            with suppress(duckdb.Error):
                self._connection.close()
        self._connection = None
        self._holds_entries = self._has_settings = False
        fault = str(error).partition("\n")[0].rpartition("Error: ")[2].rstrip(". ")
        return SqlError(
            f"DuckDB {duckdb.__version__} has a fault that this statement meets: {fault}. Write it in another way. "
            "Tables, views, macros, variables and settings of the session are lost; lakes are unchanged."
        )

    def _refuses(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Returns whether the open transaction refuses all statements, as one of them failed."""
        try:
            connection.execute("SELECT 1").fetchall()
        except duckdb.TransactionException:
            return True
        return False

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = in_memory()
            self._connection.execute("SET autoinstall_known_extensions = false")
            for scope, zone in (("GLOBAL", self._global_time_zone), ("", self._time_zone)):
                if zone is not None:  # the zone of a database that was closed after an error
                    self._connection.execute(f"SET {scope} TimeZone = '{zone}'")
            self._enter(self._connection)
            if self._in_transaction:
                self._connection.execute("BEGIN")
        return self._connection

    def _enter(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Applies USE to the connection; a lake is represented by an empty database with its name."""
        with connection.cursor() as other:  # outside the open transaction, which may write to one database only
            other.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {quote_identifier(self._place[0])}")
            if len(self._place) == 2:
                other.execute(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(map(quote_identifier, self._place))}")
        connection.execute("USE " + ".".join(map(quote_identifier, self._place)))

    # Contents

    def note_entries(self) -> None:
        """Notes that the database has entries, so that names are looked up in it from now on."""
        self._holds_entries = True

    def has_temporary(self, name: str) -> bool:
        """Returns whether a temporary table or view has that name; it hides all others."""
        return self._holds_entries and self._has("temp", "main", name)

    def temporary_view(self, name: str) -> str | None:
        """Returns the text of a temporary view; None if there is none."""
        if not self._holds_entries:
            return None
        sql = "SELECT sql FROM duckdb_views() WHERE temporary AND NOT internal AND lower(view_name) = lower($1)"
        return next((str(text) for (text,) in self._listed(sql, name)), None)

    def has(self, schema: str | None, name: str) -> bool:
        """Returns whether `memory` has a table or view with that name."""
        return self._holds_entries and self._has("memory", schema or "main", name)

    def variables(self) -> frozenset[str]:
        """Returns the names of variables from SET VARIABLE, in lower case."""
        return frozenset(name for (name,) in self._listed("SELECT lower(name) FROM duckdb_variables()"))

    def temporary_macros(self) -> frozenset[tuple[str, str]]:
        """Returns the kind, `scalar` or `table`, and the folded name of each temporary macro; these hide all others."""
        if not self._holds_entries:
            return frozenset()
        sql = (
            "SELECT CASE function_type WHEN 'macro' THEN 'scalar' ELSE 'table' END, function_name FROM duckdb_functions() "
            "WHERE database_name = 'temp' AND function_type IN ('macro', 'table_macro')"
        )
        return frozenset((kind, name.casefold()) for kind, name in self._listed(sql))

    def table_macros(self, name: str) -> list[tuple[list[str], str]]:
        """Returns the parameters and bodies of DuckDB's table macros with that name, its own among them."""
        sql = (
            "SELECT parameters, macro_definition FROM duckdb_functions() "
            "WHERE function_type = 'table_macro' AND lower(function_name) = lower($1)"
        )
        return self._listed(sql, name)

    def has_table_function(self, name: str) -> bool:
        """Returns whether DuckDB has a table function or table macro with that name."""
        sql = (
            "SELECT 1 FROM duckdb_functions() "
            "WHERE function_type IN ('table', 'table_macro') AND lower(function_name) = lower($1)"
        )
        return bool(self._listed(sql, name))

    def is_attached(self, name: str) -> bool:
        """Returns whether a database with that name is attached here."""
        if name.casefold() in OWN_DATABASES:
            return True
        sql = "SELECT 1 FROM duckdb_databases() WHERE lower(database_name) = lower($1)"
        return self._holds_entries and bool(self._listed(sql, name))

    def has_schema(self, schema: str) -> bool:
        """Returns whether `memory` has a schema with that name."""
        sql = "SELECT 1 FROM duckdb_schemas() WHERE database_name = 'memory' AND lower(schema_name) = lower($1)"
        return self._holds_entries and bool(self._listed(sql, schema))

    def _has(self, database: str, schema: str, name: str) -> bool:
        sql = (
            "SELECT 1 FROM (SELECT database_name, schema_name, table_name AS name FROM duckdb_tables() UNION ALL "
            "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal) "
            "WHERE database_name = $1 AND lower(schema_name) = lower($2) AND lower(name) = lower($3)"
        )
        return bool(self._listed(sql, database, schema, name))

    def _listed(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a query of DuckDB's listings."""
        with self._turn.taken():
            return self._open().execute(sql, list(values)).fetchall()

    def use(self, parts: tuple[str, ...]) -> None:
        """Makes a database, or one of its schemas, the default for unqualified names; it may be a lake's."""
        self._place = parts
        if self._connection is not None:
            with self._turn.taken():
                self._enter(self._connection)

    def forget(self, name: str) -> None:
        """Drops the empty database that represents a lake."""
        if self._connection is not None:
            with self._turn.taken(), self._connection.cursor() as other:
                other.execute(f"DETACH DATABASE IF EXISTS {quote_identifier(name)}")

    # Transactions, together with those of the lakes

    def begin(self) -> None:
        self._in_transaction = True
        if self._connection is not None:
            self._connection.execute("BEGIN")

    def end(self, *, commit: bool) -> None:
        """Ends the open transaction."""
        if not self._in_transaction:
            return
        self._in_transaction = self.is_aborted = False
        if self._connection is not None:
            self._connection.execute("COMMIT" if commit else "ROLLBACK")

    def close(self) -> None:
        with self._turn.taken():
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._in_transaction = self.is_aborted = self._holds_entries = self._has_settings = False
            self._place = ("memory",)
            self._time_zone = self._global_time_zone = None


@cache
def _own_settings(columns: str) -> tuple[str, ...]:
    """Returns the default values of settings."""
    with in_memory() as connection:
        (row,) = connection.execute(f"SELECT {columns}").fetchall()
        return tuple(row)
