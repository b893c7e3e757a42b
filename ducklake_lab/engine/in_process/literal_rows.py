"""Converts VALUES with literals to rows: DuckDB inserts them into a table of its own, as the reference does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import cast_sql, has_part
from ducklake_lab.duckdb.evaluation import connection
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_identifier, quote_text

_TABLE = "_ducklake_rows"
#: The last table of this thread.
_made = threading.local()


@dataclass(frozen=True)
class _Made:
    """The table for literal rows, in a database.

    Attributes:
        columns: the columns for which it was made.
        wanted: SQL of their values in Arrow's form.
        schema: the Arrow schema of these values.
    """

    database: duckdb.DuckDBPyConnection
    columns: tuple[Column, ...]
    wanted: str
    schema: pa.Schema


def literal_rows(values: str, given: Sequence[Column], columns: Sequence[Column], time_zone: str) -> pa.Table | None:
    """Returns the rows of an INSERT with all columns; None if DuckDB refuses them, or Arrow has no form for a column.

    Args:
        values: VALUES and its rows: literals, NULL, and DEFAULT.
        given: the columns that each row has values for.
        columns: the columns of the table; defaults of the other columns are literals, too.
        time_zone: the time zone for times without one.
    """
    if any(has_part(column.data_type, ("variant",)) for column in columns):
        return None
    database = connection((("TimeZone", time_zone),))
    try:
        made = _prepared(database, columns)
        database.begin()
        try:
            names = ", ".join(quote_identifier(column.name) for column in given)
            rows = arrow(database, f"INSERT INTO {_TABLE} ({names}) {values}\nRETURNING {made.wanted}")
        finally:
            database.rollback()  # the table stays, empty, for the next rows
    except duckdb.Error:
        return None  # the binder finds the position of the error
    return rows.rename_columns(made.schema.names).cast(made.schema)


def _prepared(database: duckdb.DuckDBPyConnection, columns: Sequence[Column]) -> _Made:
    """Creates the table, unless the last one has the same columns."""
    last: _Made | None = getattr(_made, "last", None)
    if last is not None and last.database is database and last.columns == tuple(columns):
        return last
    quoted = {column.column_id: quote_identifier(column.name) for column in columns}
    definitions = ", ".join(f"{quoted[c.column_id]} {c.data_type.sql()}{_default_sql(c)}" for c in columns)
    database.execute(f"CREATE OR REPLACE TEMP TABLE {_TABLE} ({definitions})")
    wanted = ", ".join(cast_sql(quoted[c.column_id], c.data_type) for c in columns)
    schema = pa.schema([column.data_type.field(column.name) for column in columns])
    _made.last = made = _Made(database, tuple(columns), wanted, schema)
    return made


def _default_sql(column: Column) -> str:
    text = column.default_value
    if text is None or text.upper() == "NULL":
        return ""
    return f" DEFAULT CAST({quote_text(text)} AS {column.data_type.sql()})"
