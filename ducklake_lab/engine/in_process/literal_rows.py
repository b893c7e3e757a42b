"""Rows of VALUES that hold literals only: DuckDB inserts them into a table of its own, as the reference does."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import cast_sql, has_part
from ducklake_lab.duckdb.evaluation import connection
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_identifier, quote_text

_TABLE = "_ducklake_rows"
#: The database in which this thread made the table last, and the columns.
_made = threading.local()


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
    quoted = {column.column_id: quote_identifier(column.name) for column in columns}
    definitions = ", ".join(f"{quoted[c.column_id]} {c.data_type.sql()}{_default_sql(c)}" for c in columns)
    wanted = ", ".join(cast_sql(quoted[c.column_id], c.data_type) for c in columns)
    database = connection((("TimeZone", time_zone),))
    try:
        _prepare(database, definitions)
        database.begin()
        try:
            inserted = f"INSERT INTO {_TABLE} ({', '.join(quoted[c.column_id] for c in given)}) {values}"
            rows = arrow(database, f"{inserted}\nRETURNING {wanted}")
        finally:
            database.rollback()  # the table stays, empty, for the next rows
    except duckdb.Error:
        return None  # the binder says where the error is
    schema = pa.schema([column.data_type.field(column.name) for column in columns])
    return rows.rename_columns(schema.names).cast(schema)


def _prepare(database: duckdb.DuckDBPyConnection, definitions: str) -> None:
    """Makes the table, unless the last one had the same columns."""
    if getattr(_made, "last", None) != (database, definitions):
        database.execute(f"CREATE OR REPLACE TEMP TABLE {_TABLE} ({definitions})")
        _made.last = database, definitions


def _default_sql(column: Column) -> str:
    text = column.default_value
    if text is None or text.upper() == "NULL":
        return ""
    return f" DEFAULT CAST({quote_text(text)} AS {column.data_type.sql()})"
