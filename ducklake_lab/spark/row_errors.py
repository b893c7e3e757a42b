"""Values of rows, with the errors of failed rows: an error counts only if the value of its row is used.

Spark evaluates a Python function for all rows before the neighbouring conditions; DuckDB does not.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import REFUSALS
from ducklake_lab.duckdb.evaluation import Evaluation, error_text
from ducklake_lab.errors import ConstraintError, DuckLakeError, SqlError, UnsupportedFeatureError
from ducklake_lab.spark.errors import marked

#: Computes the values of a batch, or raises.
Values = Callable[[pa.Table], pa.Array]
#: Computes the values of a batch, NULL for failed rows, and a mask of these rows.
Tried = Callable[[pa.Table], tuple[pa.Array, pa.Array]]

#: Most failed rows of a batch whose errors DuckDB computes one by one; the others get the text of another failed row.
_ASKED = 200
_OTHERS = "A value cannot be computed; TRY(…) around its expression gives NULL instead."


def with_errors(
    batch: pa.Table, evaluation: Evaluation, values: Values, tried: Tried, kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """The values of a batch, NULL for rows that fail, and their errors; none is raised.

    Args:
        evaluation: computes the values.
        kind: of the values.
    """
    try:
        return values(batch), pa.nulls(batch.num_rows, pa.string())
    except duckdb.Error as error:
        if batch.num_rows == 1:
            return pa.nulls(1, kind), pa.array([str(error_of(error, evaluation))])
    try:
        computed, failed = tried(batch)
    except duckdb.Error:
        return _in_halves(batch, evaluation, values, tried, kind)  # what TRY does not take: a subquery
    errors: list[str | None] = [None] * batch.num_rows
    places = [place for place, is_failed in enumerate(failed.to_pylist()) if is_failed]
    for place in places[_ASKED:]:
        errors[place] = str(marked(SqlError(_OTHERS)))
    for place in places[:_ASKED]:
        errors[place] = _error_of_row(batch.slice(place, 1), evaluation, values)
    return computed, pa.array(errors, pa.string())


def _error_of_row(row: pa.Table, evaluation: Evaluation, values: Values) -> str:
    try:
        values(row)
    except duckdb.Error as error:
        return str(error_of(error, evaluation))
    return str(marked(SqlError(_OTHERS)))


def _in_halves(
    batch: pa.Table, evaluation: Evaluation, values: Values, tried: Tried, kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    half = batch.num_rows // 2
    halves = (batch.slice(0, half), batch.slice(half))
    parts = [with_errors(part, evaluation, values, tried, kind) for part in halves]
    return pa.concat_arrays([one for one, _ in parts]), pa.concat_arrays([errors for _, errors in parts])


def error_of(error: duckdb.Error, evaluation: Evaluation) -> Exception:
    """Returns the exception that a worker raises for a DuckDB error of an evaluation."""
    message = error_text(evaluation, error)
    raised: DuckLakeError
    if message in REFUSALS:
        raised = UnsupportedFeatureError(message)
    elif isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
        raised = ConstraintError(message)
    else:
        raised = SqlError(message)
    return marked(raised)
