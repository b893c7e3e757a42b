"""Casts between DuckDB's text of a value and the value, by DuckDB itself: so that both sides agree to the letter."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from ducklake_lab.errors import ConstraintError
from ducklake_lab.model.types import DataType

_local = threading.local()


def quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _connection() -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection | None = getattr(_local, "connection", None)
    if connection is None:
        connection = duckdb.connect(":memory:")
        connection.execute("SET TimeZone = 'UTC'; SET enable_external_access = false")
        _local.connection = connection
    return connection


def cast_columns(table: pa.Table, types: Mapping[str, DataType]) -> pa.Table:
    """The named columns, cast to the types' Arrow forms, in the mapping's order.

    Raises:
        ConstraintError: a value does not fit its type.
    """
    schema = pa.schema([pa.field(name, data_type.arrow()) for name, data_type in types.items()])
    if table.num_rows == 0:
        return schema.empty_table()
    # positional names: DuckDB folds case, the table's columns need not
    renamed = table.select(list(types)).rename_columns([f"c{i}" for i in range(len(types))])
    casts = ", ".join(cast_sql(f"c{i}", data_type) for i, data_type in enumerate(types.values()))
    try:
        result = _connection().from_arrow(renamed).query("rows", f"SELECT {casts} FROM rows").to_arrow_table()
    except duckdb.ConversionException as error:
        raise ConstraintError(str(error).splitlines()[0]) from None
    return result.rename_columns(list(types)).cast(schema)


def cast_sql(expression: str, data_type: DataType) -> str:
    """SQL that casts to the type, in a form whose Arrow type is the type's own."""
    cast = f"CAST({expression} AS {data_type.sql()})"
    if any(part.name in ("uuid", "json") for part in data_type.walk()):
        return f"CAST({cast} AS {_plain(data_type).sql()})"
    return cast


def _plain(data_type: DataType) -> DataType:
    """The type with UUID and JSON as text, which is how Arrow carries them here."""
    if data_type.name in ("uuid", "json"):
        return DataType("varchar")
    return DataType(data_type.name, tuple((name, _plain(child)) for name, child in data_type.children))


def texts(table: pa.Table, types: Mapping[str, DataType]) -> list[tuple[str | None, ...]]:
    """All values as the text DuckDB casts them to, row by row."""
    if table.num_rows == 0:
        return []
    renamed = table.select(list(types)).rename_columns([f"c{i}" for i in range(len(types))])
    casts = ", ".join(f"CAST(CAST(c{i} AS {data_type.sql()}) AS VARCHAR)" for i, data_type in enumerate(types.values()))
    return _connection().from_arrow(renamed).query("rows", f"SELECT {casts} FROM rows").fetchall()


def constant_column(text: str | None, data_type: DataType, length: int) -> pa.Array:
    """A column of one value given as text; NULL for None."""
    if text is None:
        return pa.nulls(length, data_type.arrow())
    cast = cast_columns(pa.table({"v": [text]}), {"v": data_type})
    return cast.column("v").combine_chunks().take(pa.array([0] * length, pa.int64()))


def extremes(values: pa.ChunkedArray, data_type: DataType) -> tuple[str | None, str | None, int, bool]:
    """(min text, max text, nulls, has NaN) of a column of leaf values, ordered as DuckDB orders them."""
    column = pa.table({"v": values})
    nan = "bool_or(isnan(v))" if data_type.name in ("float32", "float64") else "false"
    typed = f"CAST(v AS {data_type.sql()})"
    row = (
        _connection()
        .from_arrow(column)
        .query(
            "leaves",
            f"SELECT CAST(min(v) AS VARCHAR), CAST(max(v) AS VARCHAR), count(*) - count(v), coalesce({nan}, false) "
            f"FROM (SELECT {typed} AS v FROM leaves)",
        )
        .fetchone()
    )
    assert row is not None  # an aggregate always has one row
    return row[0], row[1], row[2], row[3]


def smallest_and_largest(values: Sequence[str], data_type: DataType) -> tuple[str, str]:
    """The least and the greatest of some texts, ordered as values of the type."""
    column = pa.chunked_array([pa.array(list(values), pa.string())])
    low, high, _, _ = extremes(column, data_type)
    assert low is not None and high is not None  # the texts are not NULL
    return low, high
