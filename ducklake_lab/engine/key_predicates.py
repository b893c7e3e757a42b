"""Predicates that rows with given keys fulfil, to skip files without them."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.model.moments import Moment, MomentKind
from ducklake_lab.model.predicates import And, ColumnPath, Comparison, InList, Predicate
from ducklake_lab.model.types import INTEGERS, DataType

#: Most values of a key that a predicate lists; above it, only the minimum and maximum are used.
MAX_VALUES = 1000
_BOUNDED = frozenset(("varchar", "date", "timestamp", "boolean"))


def has_predicates(kind: DataType) -> bool:
    """Returns whether values of a type bound files by their statistics."""
    return kind.name in _BOUNDED or (kind.name in INTEGERS and "128" not in kind.name)


def of_values(column: ColumnPath, distinct: pa.ChunkedArray) -> Predicate:
    """Returns the predicate of a column that has one of some values, which are distinct and in DuckDB's order."""
    if len(distinct) <= MAX_VALUES:
        return InList(column, tuple(values(distinct)))
    return between(column, distinct.take(pa.array([0, len(distinct) - 1])))


def between(column: ColumnPath, bounds: pa.ChunkedArray) -> Predicate:
    """Returns the predicate of a column between two values, both included."""
    low, high = values(bounds)
    return And((Comparison(column, ">=", low), Comparison(column, "<=", high)))


def values(column: pa.ChunkedArray) -> list[object]:
    """Returns the values of a key in the form that predicates use."""
    kind: MomentKind | None = None
    if pa.types.is_date32(column.type):
        kind = "date"
    elif pa.types.is_timestamp(column.type):
        kind = "timestamp"
    if kind is None:
        found: list[object] = column.to_pylist()
        return found
    numbers = column.cast(pa.int32() if kind == "date" else pa.int64()).to_pylist()
    return [Moment.counted(number, kind) for number in numbers]
