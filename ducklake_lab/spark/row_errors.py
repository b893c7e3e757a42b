"""Values of rows, with the errors of failed rows: an error counts only if the value of its row is used.

Spark evaluates a Python function for all rows before the neighbouring conditions; DuckDB does not.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import REFUSALS
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import ConstraintError, DuckLakeError, SqlError, UnsupportedFeatureError
from ducklake_lab.spark.errors import marked

#: Computes the values of a batch, or raises.
Values = Callable[[pa.Table], pa.Array]
#: Computes the values of a batch, NULL for failed rows, and a mask of these rows.
Tried = Callable[[pa.Table], tuple[pa.Array, pa.Array]]

#: Most failed rows of a batch whose errors DuckDB computes one by one; the others get the text of another failed row.
_ASKED = 200
_OTHERS = "A value cannot be computed; TRY(…) around its expression gives NULL instead."


def with_errors(batch: pa.Table, values: Values, tried: Tried, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Returns the values of a batch, NULL for failed rows, and their errors; raises none.

    Args:
        kind: the type of the values.
    """
    try:
        return values(batch), pa.nulls(batch.num_rows, pa.string())
    except duckdb.Error as error:
        if batch.num_rows == 1:
            return pa.nulls(1, kind), pa.array([str(error_of(error))])
    try:
        found, failed = tried(batch)
    except duckdb.Error:
        return _in_halves(batch, values, tried, kind)  # TRY does not support a subquery
    errors: list[str | None] = [None] * batch.num_rows
    places = [place for place, is_failed in enumerate(failed.to_pylist()) if is_failed]
    for place in places[_ASKED:]:
        errors[place] = str(marked(SqlError(_OTHERS)))
    for place in places[:_ASKED]:
        errors[place] = _error_of_row(batch.slice(place, 1), values)
    return found, pa.array(errors, pa.string())


def _error_of_row(row: pa.Table, values: Values) -> str:
    try:
        values(row)
    except duckdb.Error as error:
        return str(error_of(error))
    return str(marked(SqlError(_OTHERS)))


def _in_halves(batch: pa.Table, values: Values, tried: Tried, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    half = batch.num_rows // 2
    parts = [with_errors(part, values, tried, kind) for part in (batch.slice(0, half), batch.slice(half))]
    return pa.concat_arrays([one for one, _ in parts]), pa.concat_arrays([errors for _, errors in parts])


def error_of(error: duckdb.Error) -> Exception:
    """Returns the exception that a worker raises for a DuckDB error."""
    message = worded(error)
    found: DuckLakeError
    if message in REFUSALS:
        found = UnsupportedFeatureError(message)
    elif isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
        found = ConstraintError(message)
    else:
        found = SqlError(message)
    return marked(found)
