"""Rows of VALUES that hold literals only: DuckDB inserts them into a table of its own, as the reference does."""

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
#: What this thread made last.
_made = threading.local()


@dataclass(frozen=True)
class _Made:
    """The table for rows, in a database.

    Attributes:
        columns: those that it was made for.
        wanted: SQL of their values, as Arrow carries them.
        schema: theirs.
    """

    database: duckdb.DuckDBPyConnection
    columns: tuple[Column, ...]
    wanted: str
    schema: pa.Schema


def literal_rows(values: str, given: Sequence[Column], columns: Sequence[Column], time_zone: str) -> pa.Table | None:
    """The rows of an INSERT, in all columns of its table; None where DuckDB refuses them, or Arrow has no form for one.

    Args:
        values: VALUES and its rows: literals, NULL, and DEFAULT.
        given: the columns that each row has values for.
        columns: those of the table; the defaults of those that are not given are literals, too.
        time_zone: in which times without one are read.
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
        return None  # the binder says where the error is
    return rows.rename_columns(made.schema.names).cast(made.schema)


def _prepared(database: duckdb.DuckDBPyConnection, columns: Sequence[Column]) -> _Made:
    """Makes the table, unless the last one had the same columns."""
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
