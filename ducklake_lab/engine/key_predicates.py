"""Predicates that rows with given keys fulfil, to skip files without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.files.partitions import Values, partition_keys
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.moments import Moment, MomentKind
from ducklake_lab.model.predicates import And, ColumnPath, Comparison, InList, NullTest, Operator, Or, Predicate
from ducklake_lab.model.transforms import EpochCount, Identity, calendar, parse_transform
from ducklake_lab.model.types import INTEGERS, DataType

#: Microseconds since 1970: the first of an interval, and the first after it.
Interval = tuple[int, int]
#: Most values of a key that a predicate lists; above it, intervals of values are used.
MAX_VALUES = 1000
#: Most intervals, and the share of all values from which on a gap between two of them is left out.
_INTERVALS, _WIDE = 16, 1 / 64
#: Types whose partition keys are texts that DuckDB casts back.
_WITH_ONE_TEXT = frozenset(("varchar", "date", "boolean", *INTEGERS))
#: Types of moments, whose partition keys may be parts or counts, with their kinds in predicates.
_MOMENTS: dict[str, MomentKind] = {"date": "date", "timestamp": "timestamp", "timestamptz": "timestamptz"}
_BOUNDED = frozenset(("varchar", "date", "timestamp", "boolean"))


def has_predicates(kind: DataType) -> bool:
    """Returns whether values of a type bound files by their statistics."""
    return kind.name in _BOUNDED or (kind.name in INTEGERS and "128" not in kind.name)


def of_values(column: ColumnPath, distinct: pa.ChunkedArray) -> Predicate:
    """Returns the predicate of a column that has one of some values, which are distinct and in DuckDB's order."""
    if len(distinct) <= MAX_VALUES:
        return InList(column, tuple(values(distinct)))
    starts = [0, *_after_gaps(distinct)]
    ends = [*(start - 1 for start in starts[1:]), len(distinct) - 1]
    intervals = [
        between(column, distinct.take(pa.array([start, end]))) for start, end in zip(starts, ends, strict=True)
    ]
    return Or(tuple(intervals)) if len(intervals) > 1 else intervals[0]


def _after_gaps(distinct: pa.ChunkedArray) -> list[int]:
    """Returns the places of the values that follow the widest gaps, in order; any place would be right, wide ones skip more."""
    kind = distinct.type
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        distinct = distinct.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    elif not pa.types.is_integer(kind):
        return []
    numbers = pc.cast(distinct.combine_chunks(), pa.float64(), safe=False)
    gaps = pc.pairwise_diff(numbers)[1:]
    least = (numbers[-1].as_py() - numbers[0].as_py()) * _WIDE
    widest = pc.sort_indices(gaps, sort_keys=[("", "descending")])[: _INTERVALS - 1].to_pylist()
    return sorted(place + 1 for place in widest if gaps[place].as_py() > least)


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
        plain: list[object] = column.to_pylist()
        return plain
    numbers = column.cast(pa.int32() if kind == "date" else pa.int64()).to_pylist()
    return [Moment.counted(number, kind) for number in numbers]


def of_partitions(table: Table, found: Sequence[Values]) -> Predicate | None:
    """Returns a predicate that all rows of some partitions fulfil; None if nothing is known of them.

    Keys say something of a column where they are its values, or where all values with them are an interval.

    Args:
        found: the texts of the keys of each partition; at least one.
    """
    keys = partition_keys(table)
    terms: list[Predicate] = []
    for column in dict.fromkeys(column for column, _ in keys if column.type in _MOMENTS and column in table.columns):
        of_column = [(i, str(transform)) for i, (own, transform) in enumerate(keys) if own == column]
        each = [_interval({name: texts[i] for i, name in of_column}, column.data_type) for texts in found]
        intervals = {interval for interval in each if interval is not None}
        terms += [_within(column, intervals)] if None not in each else []
    for (column, transform), texts in zip(keys, zip(*found, strict=True), strict=True):
        if not isinstance(transform, Identity) or column.type not in _WITH_ONE_TEXT or column not in table.columns:
            continue
        path = (column.name,)
        given = pa.table({"v": pa.array([text for text in texts if text is not None], pa.string())})
        distinct = evaluate(f"SELECT DISTINCT CAST(v AS {column.data_type.sql()}) FROM t ORDER BY 1", {"t": given})
        listed: list[Predicate] = [of_values(path, distinct.column(0))] if given.num_rows else []
        terms.append(Or((*listed, *([NullTest(path, is_null=True)] if None in texts else ()))))
    return And(tuple(terms)) if terms else None


def _interval(keys: Mapping[str, str | None], kind: DataType) -> Interval | None:
    """Returns the interval of the values of a column with some keys, by transform; None where they are none."""
    if None in keys.values():
        return None  # of NULL, and of infinities
    for name, text in keys.items():
        transform = parse_transform(name)
        if isinstance(transform, EpochCount) and text is not None:
            return transform.interval(text)
    return calendar.interval(keys, kind)


def _within(column: Column, intervals: Collection[Interval]) -> Predicate:
    """Returns the predicate of a column with values in some intervals; of many, near ones become one."""
    ordered = sorted(intervals)
    gaps = sorted(range(1, len(ordered)), key=lambda i: ordered[i - 1][1] - ordered[i][0])
    starts = [0, *sorted(i for i in gaps[: _INTERVALS - 1] if ordered[i][0] > ordered[i - 1][1])]
    joined = [(ordered[i][0], ordered[j - 1][1]) for i, j in pairwise([*starts, len(ordered)])]
    path, kind = (column.name,), _MOMENTS[column.type]

    def bound(operator: Operator, micros: int) -> list[Comparison]:
        moment = Moment(micros, kind)
        return [Comparison(path, operator, moment)] if moment.is_known else []

    return Or(tuple(And((*bound(">=", start), *bound("<", end))) for start, end in joined))
