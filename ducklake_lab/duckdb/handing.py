"""Rows in the forms of DuckDB's results: Python values, pandas, Arrow, and texts for people.

Rows of every engine come here in the Arrow forms of their types (model/types.py). DuckDB makes of them what its own
`fetchall()`, `df()` and `arrow()` give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from ducklake_lab.duckdb.casting import carried_as, carried_sql, has_part, through, typed_values_sql
from ducklake_lab.duckdb.connections import scratch
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import ConstraintError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import INTEGERS, DataType, from_field, is_marked

if TYPE_CHECKING:
    import pandas as pd

#: Types whose Python values read as DuckDB's texts of them do.
_READABLE = (*INTEGERS, "boolean", "float64", "varchar", "json", "blob")
#: Values that Arrow makes sooner than DuckDB begins.
_FEW_VALUES = 10_000
#: DuckDB's errors where pandas has no form for a type or value.
_NO_FORM = (duckdb.NotImplementedException, duckdb.ConversionException)


def python_rows(table: pa.Table, time_zone: str = "UTC") -> list[tuple[Any, ...]]:
    """The rows as DuckDB's `fetchall()` gives them.

    Args:
        time_zone: the zone of TIMESTAMP WITH TIME ZONE.

    Raises:
        ConstraintError: Python has no such value, as of an INTERVAL of three million years.
    """
    if table.num_columns == 0:
        return []
    if table.num_rows * table.num_columns <= _FEW_VALUES and all(map(_is_plain, table.schema)):
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    with _typed(table, time_zone) as (rows, _):
        try:
            return rows.fetchall()
        except (duckdb.ConversionException, OverflowError, ValueError) as error:
            said = worded(error) if isinstance(error, duckdb.Error) else str(error)
            raise ConstraintError(
                f"Python cannot hold a value of these rows, which arrow() gives; cast it to VARCHAR. {said.rstrip('.')}."
            ) from None


def _is_plain(field: pa.Field) -> bool:
    """Returns whether Arrow gives the Python values of a column that DuckDB gives."""
    kind = field.type
    plain = (
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_float64(kind)
    )
    return plain and not is_marked(field)


def pandas_frame(table: pa.Table, time_zone: str = "UTC") -> pd.DataFrame:
    """The rows as DuckDB's `df()` gives them; where it has no form for a column, that holds Python values."""
    import pandas as pd

    if table.num_columns == 0:
        return pd.DataFrame()
    with _typed(table, time_zone) as (rows, connection):
        try:
            frame: pd.DataFrame = rows.df()
        except _NO_FORM:
            columns = [_series(rows.project(f"#{place}")) for place in range(1, table.num_columns + 1)]
            frame = pd.concat(columns, axis=1)
        # as DuckDB names columns of one name
        names = ", ".join(f"1 AS {quote_identifier(name)}" for name in table.column_names)
        frame.columns = connection.sql(f"SELECT {names}").df().columns
    return frame


def _series(column: duckdb.DuckDBPyRelation) -> pd.Series[Any]:
    import pandas as pd

    try:
        return column.df().iloc[:, 0]
    except _NO_FORM:
        return pd.Series([value for (value,) in column.fetchall()], dtype=object)


def arrow_table(table: pa.Table) -> pa.Table:
    """The rows in the types of DuckDB's `arrow()`; variants, for which 1.5 has none, as its text of them.

    Raises:
        ConstraintError: a UHUGEINT does not fit Arrow's decimals.
    """
    for index, field in enumerate(table.schema):
        kind = from_field(field) if is_marked(field) else None
        if kind is None or not has_part(kind, ("variant", "uint128", "timetz")):
            continue
        values = table.column(index)
        try:
            values = carried_as(values, kind, _for_arrow(typed_values_sql("v", kind, values), kind))
        except ConstraintError:
            raise ConstraintError(
                f"Column {field.name} holds numbers above {2**127 - 1}, which Arrow cannot; cast it to VARCHAR."
            ) from None
        table = table.set_column(index, field.name, values)
    return table


def _for_arrow(expression: str, kind: DataType) -> str:
    if kind.name == "variant":
        return f"CAST({expression} AS VARCHAR)"
    if kind.name == "uint128":
        return f"CAST({expression} AS HUGEINT)"
    if kind.is_nested:
        return through(expression, kind, _for_arrow)
    return expression if kind.name == "timetz" else carried_sql(expression, kind)


def texts_to_show(table: pa.Table, time_zone: str = "UTC") -> list[list[object]]:
    """The columns for people: numbers, texts and bytes as Python values, everything else as DuckDB's text of it."""
    columns: list[list[object]] = []
    for field, values in zip(table.schema, table.columns, strict=True):
        try:
            readable = (kind := from_field(field)).name in _READABLE or kind.decimal is not None
        except UnsupportedFeatureError:
            readable = False
        if not readable:
            with _typed(pa.table([values], schema=pa.schema([field])), time_zone) as (rows, _):
                columns.append([text for (text,) in rows.project("CAST(#1 AS VARCHAR)").fetchall()])
        else:
            columns.append(values.to_pylist())
    return columns


def parts(table: pa.Table, time_zone: str = "UTC") -> list[object]:
    """Take the values of a nested column apart to DuckDB's texts of their parts.

    Structs are dicts, lists are lists, and maps are lists of (key, value).
    """
    (field,) = table.schema
    with _typed(table, time_zone) as (rows, _):
        texts = rows.project(f"{_texts_sql('c0', from_field(field))} AS c0").to_arrow_table()
        return list(texts.column(0).to_pylist())


def _texts_sql(expression: str, kind: DataType) -> str:
    return through(expression, kind, _texts_sql) if kind.is_nested else f"CAST({expression} AS VARCHAR)"


@contextmanager
def _typed(table: pa.Table, time_zone: str) -> Iterator[tuple[duckdb.DuckDBPyRelation, duckdb.DuckDBPyConnection]]:
    """The rows as a relation whose columns have DuckDB's types, named `c0`, `c1`, …

    Raises:
        ConstraintError: a value cannot leave DuckDB, as a map with one key twice.
    """
    selected: Sequence[str] = [
        f"{typed_values_sql(f'c{i}', from_field(field), table.column(i)) if is_marked(field) else f'c{i}'} AS c{i}"
        for i, field in enumerate(table.schema)
    ]
    with scratch().cursor() as connection:
        connection.execute(f"SET TimeZone = '{time_zone}'")
        carried = connection.from_arrow(unsliced(table).rename_columns([f"c{i}" for i in range(table.num_columns)]))
        try:
            yield carried.project(", ".join(selected)), connection
        except duckdb.InvalidInputException as error:
            raise ConstraintError(worded(error)) from None
