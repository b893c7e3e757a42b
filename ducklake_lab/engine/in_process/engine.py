"""Runs queries by DuckDB in process, over rows in Arrow and data files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb import variants
from ducklake_lab.duckdb.casting import REFUSALS, bits_as_text, carried_sql, from_duckdb, shown_sql, with_shown
from ducklake_lab.duckdb.connections import of_thread
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.engine.in_process.csv_errors import csv_line_error
from ducklake_lab.errors import (
    BindError,
    ConstraintError,
    DuckLakeError,
    SqlError,
    SqlSyntaxError,
    UnsupportedFeatureError,
)
from ducklake_lab.files.duckdb_query import DuckDbQuery
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType, from_field, is_marked
from ducklake_lab.sql.plan import MACRO_PREFIX, SOURCE_PREFIX

_CHANGES = frozenset(
    {
        duckdb.StatementType.INSERT,
        duckdb.StatementType.UPDATE,
        duckdb.StatementType.DELETE,
        duckdb.StatementType.MERGE_INTO,
        duckdb.StatementType.CREATE,
        duckdb.StatementType.COPY,
        duckdb.StatementType.COPY_DATABASE,
    }
)
_RETURNING = re.compile(r"\bRETURN(ING|_FILES|_STATS)\b", re.IGNORECASE)
#: Prefix of a plan's macro before the name of the lake's macro.
_OWN_MACRO = re.compile(rf"{MACRO_PREFIX}[0-9a-f]+_[0-9]+_")
_NO_FILES = re.compile(r'No files found that match the pattern (".*")')


def evaluate(sql: str, tables: Mapping[str, pa.Table], time_zone: str = "UTC") -> pa.Table:
    """Runs a query over Arrow tables; it has no access to files or the network.

    Args:
        sql: one SELECT in DuckDB SQL.
        tables: rows by their name in the query.
        time_zone: the time zone for times without one, and for times as text.

    Raises:
        BindError: a name does not exist.
        ConstraintError: a value does not fit a type.
        SqlError: DuckDB refuses the query for another reason.
    """
    # GLOBAL, because each cursor has its own settings
    cursor = of_thread(("rows", time_zone), [("GLOBAL TimeZone", time_zone)]).cursor()
    shown = Shown(cursor)
    try:
        return fetch(cursor, shown.show(sql, tables))
    except duckdb.Error as error:
        raise translated(error) from error
    finally:
        shown.hide()
        cursor.close()


def read_query(query: DuckDbQuery) -> pa.Table:
    """Returns the rows of a query.

    Raises:
        DataFileError: a file is missing or unreadable.
        SqlError: DuckDB refuses it.
    """
    with connect(parallel=True) as connection:
        for name, rows in query.tables.items():
            connection.register(name, unsliced(rows))
        try:
            return fetch(connection, query.sql)
        except duckdb.Error as error:
            raise query.failure(error) or translated(error) from error


@dataclass(frozen=True, slots=True)
class Declared:
    """A table without rows.

    Attributes:
        columns: SQL of its columns, with their constraints and defaults.
    """

    columns: str


#: Rows that a statement reads under a name.
Readable: TypeAlias = pa.Table | DuckDbQuery | Declared


class Shown:
    """Named rows that a connection sees during one statement.

    The SQL of a plan's source is inserted into the statement, so that DuckDB binds it once. Rows with other names, and
    sources where DuckDB allows no subquery, become temporary views.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._views: list[str] = []
        self._tables: list[str] = []
        self._macros: list[str] = []
        self._queries: list[DuckDbQuery] = []

    def show(self, sql: str, tables: Mapping[str, Readable], macros: Mapping[str, str] | None = None) -> str:
        """Makes rows visible under names, with the lake's types; returns the statement to run.

        Args:
            macros: macros that the statement calls, see `QueryPlan`.
        """
        texts: list[str] = [*(macros or {}).values(), sql]
        for name, rows in tables.items():
            if isinstance(rows, Declared):
                self._connection.execute(f"CREATE TEMP TABLE {quote_identifier(name)} ({rows.columns})")
                self._tables.append(quote_identifier(name))
                continue
            query = rows if isinstance(rows, DuckDbQuery) else carried(f"{name}_rows", rows)
            self._queries.append(query)
            for table, held in query.tables.items():
                self._connection.register(table, unsliced(held))
            quoted = quote_identifier(name)
            if name.startswith(SOURCE_PREFIX) and all(
                text.count(quoted) == text.count(f"{quoted} AS ") for text in texts
            ):
                texts = [text.replace(quoted, f"({query.sql})") for text in texts]
                continue
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted} AS {query.sql}")
            self._views.append(quoted)
        for name, text in zip(macros or (), texts, strict=False):
            self._connection.execute(f"CREATE OR REPLACE TEMP MACRO {quote_identifier(name)}{text}")
            self._macros.append(quote_identifier(name))
        return texts[-1]

    def failure(self, error: duckdb.Error) -> DuckLakeError | None:
        """Returns the error for a file that DuckDB failed to read; None if the error is about no file."""
        return next((failure for query in self._queries if (failure := query.failure(error)) is not None), None)

    def hide(self) -> None:
        """Removes the rows from the connection."""
        for view in self._views:
            self._connection.execute(f"DROP VIEW IF EXISTS temp.main.{view}")
        for table in self._tables:
            self._connection.execute(f"DROP TABLE IF EXISTS temp.main.{table}")
        for macro in self._macros:
            self._connection.execute(f"DROP MACRO IF EXISTS temp.main.{macro}")
            self._connection.execute(f"DROP MACRO TABLE IF EXISTS temp.main.{macro}")
        for query in self._queries:
            for held in query.tables:
                self._connection.unregister(held)


def carried(name: str, table: pa.Table) -> DuckDbQuery:
    """Returns an Arrow table as a query over a table with that name."""
    columns = [quote_identifier(field.name) for field in table.schema]
    values = [
        f"{shown_sql(column, from_field(field) if is_marked(field) else None, values)} AS {column}"
        for column, field, values in zip(columns, table.schema, table.columns, strict=True)
    ]
    return DuckDbQuery(
        f"SELECT {', '.join(values) or '*'} FROM {quote_identifier(name)}", {name: with_shown(table)}, {}
    )


def fetch(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """Runs a statement; returns its rows as Arrow, with the model's types noted in the fields."""
    return fetch_with_types(connection, sql)[0]


def fetch_with_types(
    connection: duckdb.DuckDBPyConnection, sql: str, type_names: Sequence[str] | None = None
) -> tuple[pa.Table, tuple[str, ...]]:
    """Runs a statement as `fetch`, and returns DuckDB's type names too; for a change of rows, returns their count.

    Args:
        type_names: the type names of a query that has been described, which saves one binding.
    """
    if type_names is not None:
        own = [connection.type(kind) for kind in type_names]
        kinds = [from_duckdb(kind) for kind in own]
        if not any(map(_needs_carrying, kinds)) and not any(map(bits_as_text, own)):
            rows = arrow(connection, sql)
            return _marked(rows, rows.schema.names, kinds), tuple(type_names)
    elif _changes_rows(sql):
        counts = [count for (count,) in connection.execute(sql).fetchall()]
        return (pa.table({"Count": pa.array(counts, pa.int64())}), ("BIGINT",)) if counts else (pa.table({}), ())
    relation: duckdb.DuckDBPyRelation | None = connection.sql(sql)
    if relation is None:
        return pa.table({}), ()
    kinds = [from_duckdb(kind) for kind in relation.types]
    texts = [bits_as_text(kind) for kind in relation.types]
    rows = relation.to_arrow_table
    if any(map(_needs_carrying, kinds)) or any(texts):
        # by position: names may be duplicated, and a view with new names would stay in the database
        columns = [f"(#{i})" for i in range(1, len(kinds) + 1)]

        def at_depth(depth: int) -> pa.Table:
            values = (
                carried_sql(column, kind, depth)
                if kind is not None
                else f"CAST({column} AS {text})"
                if text
                else column
                for column, kind, text in zip(columns, kinds, texts, strict=True)
            )
            return relation.project(", ".join(values)).to_arrow_table()

        rows = partial(variants.read_all, at_depth, kinds)
    return _marked(rows(), relation.columns, kinds), tuple(str(kind) for kind in relation.types)


def _needs_carrying(kind: DataType | None) -> bool:
    return kind is not None and carried_sql("v", kind) != "v"


def _marked(rows: pa.Table, names: Sequence[str], kinds: Sequence[DataType | None]) -> pa.Table:
    """Returns DuckDB's rows with the model's types noted in the fields."""
    table = in_zone(plain(rows), "UTC")
    fields = []
    for name, kind, field in zip(names, kinds, table.schema, strict=True):
        marked = kind.field(name) if kind is not None else None
        fields.append(marked if marked is not None and marked.type == field.type else field.with_name(name))
    return pa.table(table.columns, schema=pa.schema(fields))


def _changes_rows(sql: str) -> bool:
    """Returns whether a statement returns the number of changed rows, which DuckDB loses for a relation."""
    if _RETURNING.search(sql):
        return False
    statements = duckdb.extract_statements(sql)
    return len(statements) == 1 and statements[0].type in _CHANGES


def plain(table: pa.Table) -> pa.Table:
    """Replaces DuckDB's extension types (UUID, JSON, HUGEINT, …) by Arrow's own."""
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if isinstance(field.type, pa.ExtensionType):
            column = _unwrapped(column)
            field = pa.field(field.name, column.type)
        columns.append(column)
        fields.append(field)
    return pa.table(columns, schema=pa.schema(fields))


def _unwrapped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    name = column.type.extension_name
    if name == "arrow.uuid":
        return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())])
    if name == "arrow.json":
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    raise UnsupportedFeatureError(f"Results of the type {name.rsplit('.', 1)[-1]} are not supported yet; cast them.")


#: DuckDB 1.5's message for names with more than three parts, which only tables in nested schemas have.
_LONG_NAME = "NameListToString NOT IMPLEMENTED"


def translated(error: duckdb.Error) -> DuckLakeError:
    """Returns this package's error for one of DuckDB's, in one line."""
    of_line = csv_line_error(str(error))
    if of_line is not None:
        return of_line
    message = _OWN_MACRO.sub("", worded(error))
    if message in REFUSALS:
        return UnsupportedFeatureError(message)
    if message == _LONG_NAME:
        return BindError("A name has more parts than a table of this database may have.")
    if isinstance(error, duckdb.ParserException):
        return SqlSyntaxError(message)
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return BindError(message)
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException | duckdb.ConstraintException):
        return ConstraintError(message)
    missing = _NO_FILES.match(message)
    if missing is not None:
        return SqlError(f"There is no file {missing[1]}; relative paths start at {Path.cwd()}.")
    if isinstance(error, duckdb.NotImplementedException) or variants.NO_FORM in message:
        return UnsupportedFeatureError(message)
    return SqlError(message)
