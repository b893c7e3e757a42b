"""Pruning never drops a file that holds a matching row."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ducklake_lab.duckdb.bounds import extremes
from ducklake_lab.model.entries import Column, PartitionField, PartitionSpec, Table
from ducklake_lab.model.files import ColumnStats, DataFile
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.transforms import Bucket
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.partitioned import Partitioning
from ducklake_lab.scan.pruning import may_match
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3)

COLUMNS = {
    "i": (DataType("int32"), st.integers(-50, 50)),
    "d": (DataType("float64"), st.floats(allow_nan=True, width=32)),
    "s": (DataType("varchar"), st.text("abcZ é", max_size=4)),
    "n": (DataType("decimal(6,2)"), st.decimals(-999, 999, places=2)),
    "t": (DataType("date"), st.dates()),
    "b": (DataType("boolean"), st.booleans()),
    "u": (DataType("timestamp"), st.datetimes(datetime(2011, 11, 1), datetime(2013, 2, 3))),
}
#: What files are partitioned by, and how a value's key is computed; the hashes are those of the specification.
TRANSFORMS: dict[str, Callable[[str, Any], object]] = {
    "identity": lambda _, value: str(value).lower() if isinstance(value, bool) else value,
    "year": lambda _, value: value.year,
    "month": lambda _, value: value.month,
    "day": lambda _, value: value.day,
    "bucket(3)": lambda name, value: Bucket(3).keys(pa.chunked_array([[_hashed(name, value)]]))[0],
}


def _hashed(name: str, value: Any) -> object:
    if name == "n":
        return int(value * 100)
    if name == "u":
        return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days if name == "t" else value


def _keys(name: str) -> list[str]:
    parts = ["year", "month", "day"] if name in "tu" else []
    return ["identity", *parts, *(["bucket(3)"] if name not in "db" else [])]


TABLE = Table(1, "", 0, "t", "t/", tuple(Column.build(n, k, i) for i, (n, (k, _)) in enumerate(COLUMNS.items(), 1)))


def constant(value: Any) -> Any:
    """A value as predicates have it."""
    return Moment.of(value) if isinstance(value, date) else value


def _comparison(name: str) -> st.SearchStrategy[Predicate]:
    values = COLUMNS[name][1].filter(lambda value: value == value).map(constant)
    path = st.just((name,))
    kinds: list[st.SearchStrategy[Predicate]] = [
        st.builds(Comparison, path, st.sampled_from(["=", "<", "<=", ">", ">=", "!="]), values),
        st.builds(InList, path, st.lists(values, min_size=1, max_size=3).map(tuple)),
        st.builds(NullTest, path, st.booleans()),
    ]
    if name == "s":
        kinds.append(st.builds(StartsWith, path, st.text("abcZ", min_size=1, max_size=2)))
    return st.one_of(kinds)


PREDICATES = st.recursive(
    st.sampled_from(list(COLUMNS)).flatmap(_comparison),
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=4,
)
ROWS = st.lists(st.fixed_dictionaries({n: st.none() | v for n, (_, v) in COLUMNS.items()}), min_size=1, max_size=5)


def holds(predicate: Predicate, row: dict[str, Any]) -> bool:
    """SQL's answer; unknown counts as false, NaN is the greatest number."""
    if isinstance(predicate, And):
        return all(holds(term, row) for term in predicate.terms)
    if isinstance(predicate, Or):
        return any(holds(term, row) for term in predicate.terms)
    value = constant(row[predicate.column[0]])
    if isinstance(predicate, NullTest):
        return (value is None) == predicate.is_null
    if value is None:
        return False
    if isinstance(predicate, StartsWith):
        return bool(value.startswith(predicate.prefix))
    if isinstance(predicate, InList):
        return value in predicate.values
    other: Any = predicate.value
    if isinstance(value, float) and math.isnan(value):
        return predicate.op in (">", ">=", "!=")
    return {
        "=": value == other, "<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other,
        "!=": value != other,
    }[predicate.op]  # fmt: skip


def stats_of(rows: list[dict[str, Any]], known: list[bool]) -> dict[int, ColumnStats]:
    found = {}
    for column, keep in zip(TABLE.columns, known, strict=True):
        values = pa.chunked_array([pa.array([row[column.name] for row in rows], column.data_type.arrow())])
        (of,) = extremes([(values, column.data_type)])
        nan = any(isinstance(row[column.name], float) and math.isnan(row[column.name]) for row in rows)
        low, high = (None, None) if nan else (of.low, of.high)  # as Parquet writers do
        if keep:
            found[column.column_id] = ColumnStats(
                column.column_id,
                None,
                len(rows) - of.nulls,
                of.nulls,
                low,
                high,
                nan if column.type == "float64" else None,
            )
    return found


SPECS = st.lists(
    st.sampled_from(list(COLUMNS)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(_keys(name)))),
    max_size=3,
    unique=True,
)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(ROWS, PREDICATES, SPECS)
def test_a_partition_with_a_matching_row_is_kept(
    rows: list[dict[str, Any]], predicate: Predicate, fields: list[tuple[str, str]]
) -> None:
    def key(row: dict[str, Any]) -> tuple[str | None, ...]:
        found = [(TRANSFORMS[how](name, row[name]) if row[name] is not None else None) for name, how in fields]
        return tuple(None if value is None else str(value) for value in found)

    values = key(rows[0])
    spec = PartitionSpec(4, tuple(PartitionField(list(COLUMNS).index(name) + 1, how) for name, how in fields))
    partitioning = Partitioning({4: spec})
    file = DataFile(1, 1, 1, None, "f", True, len(rows), 1, 1, 0, 4, None, None, None, values)
    mates = [row for row in rows if key(row) == values]
    if any(holds(predicate, row) for row in mates):
        assert may_match(TABLE, predicate, {}, len(mates), partitioning.keys_of(file))


def test_buckets_of_another_type_say_nothing() -> None:
    spec = PartitionSpec(4, (PartitionField(1, "bucket(3)"), PartitionField(2, "identity")))
    file = DataFile(1, 1, 5, None, "f", True, 1, 1, 1, 0, 4, None, None, None, ("1", "x"))
    assert Partitioning({4: spec}).keys_of(file) == {1: {"bucket(3)": "1"}, 2: {"identity": "x"}}
    assert Partitioning({4: spec}, frozenset({1})).keys_of(file) == {2: {"identity": "x"}}
    assert Partitioning({3: spec}).keys_of(file) == {}


def test_partitions_are_skipped_at_all() -> None:
    of = {"i": {"bucket(3)": "1"}, "s": {"identity": "abc"}, "t": {"year": "2013", "month": "2"}, "u": {"month": "2"}}
    keys = {list(COLUMNS).index(name) + 1: transforms for name, transforms in of.items()}

    def kept(predicate: Predicate) -> bool:
        return may_match(TABLE, predicate, {}, 10, keys)

    buckets = [kept(Comparison(("i",), "=", number)) for number in range(60)]
    assert 0 < sum(buckets) < 60
    wanted = tuple(number for number in range(60) if not buckets[number])
    assert not kept(InList(("i",), wanted)) and kept(InList(("i",), (*wanted, buckets.index(True))))
    assert kept(Comparison(("i",), "<", 0)) and not kept(NullTest(("i",), True))
    assert not kept(StartsWith(("s",), "b")) and kept(StartsWith(("s",), "ab"))
    assert not kept(Comparison(("s",), ">", "abc")) and kept(Comparison(("s",), ">=", "abc"))
    assert not kept(Comparison(("t",), "<", Moment.of(date(2013, 2, 1)))) and kept(
        Comparison(("t",), "<=", Moment.of(date(2013, 2, 1)))
    )
    assert not kept(Comparison(("t",), ">=", Moment.of(date(2013, 3, 1)))) and kept(
        Comparison(("t",), ">", Moment.of(date(2013, 2, 27)))
    )
    assert not kept(Comparison(("u",), "=", Moment.of(datetime(2013, 3, 1)))) and kept(
        Comparison(("u",), "<", Moment.of(datetime(1, 1, 2)))
    )


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(ROWS, PREDICATES, st.lists(st.booleans(), min_size=7, max_size=7))
def test_a_file_with_a_matching_row_is_kept(
    rows: list[dict[str, Any]], predicate: Predicate, known: list[bool]
) -> None:
    if any(holds(predicate, row) for row in rows):
        assert may_match(TABLE, predicate, stats_of(rows, known), len(rows))


def test_files_are_skipped_at_all() -> None:
    stats = {1: ColumnStats(1, None, 10, 0, "0", "9")}
    assert not may_match(TABLE, Comparison(("i",), "=", 10), stats, 10)
    assert not may_match(TABLE, And((Comparison(("i",), ">", 3), Comparison(("i",), "<", 0))), stats, 10)
    assert not may_match(TABLE, InList(("i",), (-1, 10)), stats, 10)
    assert not may_match(TABLE, NullTest(("i",), True), stats, 10)
    assert may_match(TABLE, Comparison(("i",), "<=", 0), stats, 10)


def test_unknown_columns_and_types_keep_the_file() -> None:
    stats = {1: ColumnStats(1, None, 10, 0, "0", "9")}
    assert may_match(TABLE, Comparison(("nope",), "=", 1), stats, 10)
    assert may_match(TABLE, Comparison(("i",), "=", "text"), stats, 10)
