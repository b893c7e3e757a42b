"""Pruning of files by a predicate and their statistics. Skips only files that cannot match; in doubt keeps the file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.predicates import And, ColumnPath, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.statistics import kept, null_count
from ducklake_lab.model.types import FLOATS, DataType
from ducklake_lab.model.values import comparable, decode
from ducklake_lab.scan.partitioned import Keys, may_hold


def column_at(table: Table, path: ColumnPath) -> Column | None:
    """The leaf column at a path of struct fields; None if there is none, or a list or map is on the way."""
    column = table.column(path[0])
    for name in path[1:]:
        if column is None or column.type != "struct":
            return None
        column = next((child for child in column.children if child.name.casefold() == name.casefold()), None)
    return column if column is not None and not column.children else None


def columns_of(table: Table, predicate: Predicate) -> set[int]:
    """Ids of the columns whose statistics a predicate needs."""
    return {column.column_id for path in _paths(predicate) if (column := column_at(table, path)) is not None}


def _paths(predicate: Predicate) -> Iterator[ColumnPath]:
    if isinstance(predicate, And | Or):
        for term in predicate.terms:
            yield from _paths(term)
    else:
        yield predicate.column


def may_match(
    table: Table,
    predicate: Predicate,
    stats: Mapping[int, ColumnStats],
    record_count: int,
    keys: Keys | None = None,
) -> bool:
    """Returns whether a file with these statistics and partition values may hold a row that fulfils the predicate."""
    if isinstance(predicate, And):
        return all(may_match(table, term, stats, record_count, keys) for term in predicate.terms)
    if isinstance(predicate, Or):
        return any(may_match(table, term, stats, record_count, keys) for term in predicate.terms)
    column = column_at(table, predicate.column)
    if column is None:
        return True
    if keys and column.column_id in keys and not may_hold(column, keys[column.column_id], predicate):
        return False
    column_stats = stats.get(column.column_id)
    if column_stats is None:
        return True  # the file is older than the column, or its writer kept no statistics
    # a field is NULL where its struct is, too
    nulls = null_count(column_stats, column.data_type) if len(predicate.column) == 1 else None
    if isinstance(predicate, NullTest):
        return _may_be_null(predicate.is_null, nulls, record_count)
    if nulls is not None and nulls >= record_count:
        return False  # all NULL: no comparison is true
    low, high = _bounds(column_stats, column.data_type)
    if isinstance(predicate, StartsWith):
        return _may_start_with(predicate.prefix, low, high)
    nan = column.type in FLOATS and column_stats.contains_nan is not False
    if isinstance(predicate, InList):
        return _may_be_among(_sorted_values(predicate, column.data_type), low, high)
    return _may_compare(predicate.op, comparable(predicate.value, column.data_type), low, high, nan)


def _bounds(stats: ColumnStats, kind: DataType) -> tuple[object, object]:
    """The smallest and the largest value that a file may have; None where not known."""
    if not kept(kind).bounds:
        return None, None
    low, high = decode(stats.min_value, kind), decode(stats.max_value, kind)
    if kind.name == "float64":
        # before the column was widened, the file's 0.1 was the nearest FLOAT to it, which is another DOUBLE
        single = DataType("float32")
        lows, highs = (low, decode(stats.min_value, single)), (high, decode(stats.max_value, single))
        low = min((value for value in lows if isinstance(value, Decimal)), default=None)
        high = max((value for value in highs if isinstance(value, Decimal)), default=None)
    return low, high


@lru_cache(maxsize=64)
def _sorted_values(predicate: InList, data_type: DataType) -> tuple[Any, ...] | None:
    """The values of a list that compare with a column's bounds, in order; None where one of them does not."""
    values = [comparable(value, data_type) for value in predicate.values]
    return None if any(value is None for value in values) else tuple(sorted(values))


def _may_be_among(values: tuple[Any, ...] | None, low: Any, high: Any) -> bool:
    """Returns whether one of the values, in order, lies within the bounds."""
    if values is None:
        return True
    index = 0 if low is None else bisect_left(values, low)
    return index < len(values) and (high is None or values[index] <= high)


def _may_be_null(is_null: bool, nulls: int | None, record_count: int) -> bool:
    if nulls is None:
        return True
    return nulls > 0 if is_null else nulls < record_count


def _may_start_with(prefix: str, low: object, high: object) -> bool:
    if isinstance(low, str) and low[: len(prefix)] > prefix:
        return False
    return not (isinstance(high, str) and high < prefix)


def _may_compare(op: str, value: Any, low: Any, high: Any, nan: bool) -> bool:
    if value is None:
        return True
    if op in (">=", ">") and nan:
        return True  # NaN is greater than every number
    if op == "=":
        return not ((low is not None and value < low) or (high is not None and value > high))
    if op == "<":
        return low is None or low < value
    if op == "<=":
        return low is None or low <= value
    if op == ">":
        return high is None or high > value
    if op == ">=":
        return high is None or high >= value
    return nan or low is None or high is None or not (low == high == value)
