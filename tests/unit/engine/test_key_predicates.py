"""Predicates of many keys: intervals that hold every key, and leave out wide gaps between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ducklake_lab.engine.key_predicates import MAX_VALUES, of_partitions, of_values, values
from ducklake_lab.model.entries import Column, PartitionField, PartitionSpec, Table
from ducklake_lab.model.moments import DATES, DAY, TIMESTAMPS
from ducklake_lab.model.predicates import And, Comparison, InList, Or, Predicate
from ducklake_lab.model.transforms import parse_transform
from ducklake_lab.model.types import DataType
from ducklake_lab.session.rows.join_keys import condition_sql
from tests.sampling import examples


def _intervals(predicate: Predicate) -> list[tuple[object, object]]:
    found = []
    for term in predicate.terms if isinstance(predicate, Or) else (predicate,):
        assert isinstance(term, And)
        low, high = term.terms
        assert isinstance(low, Comparison) and isinstance(high, Comparison) and (low.op, high.op) == (">=", "<=")
        found.append((low.value, high.value))
    return found


def _of(numbers: Sequence[int], kind: pa.DataType) -> tuple[list[tuple[object, object]], list[object]]:
    integer = pa.int32() if pa.types.is_date32(kind) else pa.uint64() if kind == pa.uint64() else pa.int64()
    keys = pc.unique(pa.array(sorted(numbers), integer)).cast(kind)
    column = pa.chunked_array([keys])
    return _intervals(of_values(("k",), column)), values(column)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20, unique=True), st.integers(1, 1000))
def test_every_key_is_in_an_interval(starts: list[int], step: int):
    numbers = {start + step * i for start in starts for i in range(MAX_VALUES + 1)}
    intervals, keys = _of(sorted(numbers), pa.int64())
    assert len(intervals) <= 16
    assert all(low <= high for low, high in intervals)  # type: ignore[operator]
    assert all(high < low for (_, high), (low, _) in pairwise(intervals))  # type: ignore[operator]
    assert {key for key in keys if not any(low <= key <= high for low, high in intervals)} == set()  # type: ignore[operator]
    assert {end for interval in intervals for end in interval} <= set(keys)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.date32(), pa.timestamp("us")], ids=str)
def test_a_late_key_makes_an_interval_of_its_own(kind: pa.DataType):
    intervals, keys = _of([5, *range(1_000_000, 1_000_000 + 2 * MAX_VALUES)], kind)
    assert intervals == [(keys[0], keys[0]), (keys[1], keys[-1])]


def test_the_ends_of_integers():
    intervals, keys = _of([-(2**63), *range(MAX_VALUES), 2**63 - 1], pa.int64())
    assert intervals == [(keys[0], keys[0]), (0, MAX_VALUES - 1), (keys[-1], keys[-1])]
    high = [0, *range(2**63, 2**63 + MAX_VALUES), 2**64 - 1]
    intervals, _ = _of(high, pa.uint64())
    assert intervals == [(0, 0), (2**63, 2**63 + MAX_VALUES - 1), (2**64 - 1, 2**64 - 1)]


def test_keys_without_gaps_and_texts_are_one_interval():
    assert _of(range(0, 10 * MAX_VALUES, 3), pa.int64())[0] == [(0, 10 * MAX_VALUES - 1)]
    texts = pa.chunked_array([pa.array(sorted(f"k{i}" for i in range(2 * MAX_VALUES)))])
    assert _intervals(of_values(("k",), texts)) == [("k0", texts[-1].as_py())]
    few = of_values(("k",), pa.chunked_array([pa.array([1, 10**9])]))
    assert few == InList(("k",), (1, 10**9))


#: Keys whose partitions are intervals, with the width of a day of them or more.
_CALENDAR = (("year",), ("year", "month"), ("month", "year", "day"), ("year", "month", "day", "hour"))
_COUNTS = (("epoch_year",), ("epoch_month",), ("epoch_day",), ("epoch_hour",), ("day", "epoch_month"))


def _table(kind: str, transforms: Sequence[str]) -> Table:
    keys = PartitionSpec(1, tuple(PartitionField(1, name) for name in transforms))
    return Table(1, "", 0, "t", "t/", (Column.build("x", DataType(kind), 1),), partition=keys)


def _partitions(
    kind: str, transforms: Sequence[str], numbers: Sequence[int], zone: str
) -> tuple[list[tuple[str | None, ...]], Predicate | None, list[bool]]:
    """Returns the keys of values by DuckDB, the predicate of every second value's partition, and which values it is true for."""
    table = _table(kind, transforms)
    column = table.columns[0]
    listed = ", ".join(parse_transform(name).sql("x", column.data_type, zone) for name in transforms)
    counted = {"date": "DATE '1970-01-01' + CAST(n AS INTEGER)", "timestamp": "make_timestamp(n)"}
    made = counted.get(kind, "make_timestamptz(n)")
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"i": range(len(numbers)), "n": pa.array(numbers, pa.int64())}))
        connection.execute(f"SET TimeZone = 'UTC'; CREATE TABLE t AS SELECT i, {made} AS x FROM rows")
        keys = [row[1:] for row in connection.execute(f"SELECT i, {listed} FROM t ORDER BY i").fetchall()]
        predicate = of_partitions(table, sorted({*keys[::2]}, key=repr))
        condition = "true" if predicate is None else condition_sql(predicate, {"x": "x"})
        holds = [held for (held,) in connection.execute(f"SELECT {condition} FROM t ORDER BY i").fetchall()]
    return keys, predicate, holds


@settings(max_examples=examples(100), deadline=None)
@given(st.data(), st.sampled_from(("date", "timestamp", "timestamptz")))
def test_moments_of_partitions_fulfil_their_predicate_and_others_do_not(data: st.DataObject, kind: str):
    transforms = data.draw(st.sampled_from(_CALENDAR + _COUNTS))
    if kind == "date" and "hour" in str(transforms):
        transforms = ("year", "month")
    zone = data.draw(st.sampled_from(("UTC", "Pacific/Auckland", "America/Los_Angeles")))
    unit, (low, high) = (DAY, DATES) if kind == "date" else (1, TIMESTAMPS)
    near = st.integers(-400 * DAY // unit, 40_000 * DAY // unit)
    # calendars in other zones need a day of room at both ends
    far = st.integers(-(-low // unit) + 2 * DAY // unit, high // unit - 2 * DAY // unit)
    numbers = data.draw(st.lists(st.one_of(near, near, far), min_size=1, max_size=60))
    keys, predicate, holds = _partitions(kind, transforms, numbers, zone)
    wanted = {*keys[::2]}
    assert all(held for key, held in zip(keys, holds, strict=True) if key in wanted)
    is_exact = kind != "timestamptz" or "epoch" in str(transforms)
    intervals = predicate.terms[0].terms if isinstance(predicate, And) and isinstance(predicate.terms[0], Or) else ()
    # a count of ten digits says nothing
    assert predicate is not None or any(len(str(text).lstrip("-")) > 9 for key in wanted for text in key)
    if is_exact and 0 < len(intervals) < 16 and transforms != ("day", "epoch_month"):
        assert [key in wanted for key in keys] == holds


def test_many_partitions_of_moments_become_few_intervals():
    days = [*range(0, 40_000, 700)]
    keys, predicate, holds = _partitions("date", ("year", "month", "day"), days, "UTC")
    assert isinstance(predicate, And) and isinstance(predicate.terms[0], Or) and len(predicate.terms[0].terms) == 16
    assert all(holds[::2]) and len({*keys}) == len(days)
    _, predicate, holds = _partitions(
        "date", ("year", "month", "day"), [day for n in range(300) for day in (n, n + 9000)], "UTC"
    )
    assert isinstance(predicate, And) and isinstance(predicate.terms[0], Or) and len(predicate.terms[0].terms) == 1
    assert holds == [day < 1000 for n in range(300) for day in (n, n + 9000)]


@pytest.mark.parametrize("transforms", [("month",), ("year", "day"), ("hour",), ("bucket(4)",)], ids=str)
def test_partitions_that_are_no_interval_say_nothing(transforms: tuple[str, ...]):
    assert of_partitions(_table("timestamp", transforms), [("1",) * len(transforms)]) is None


def test_the_partition_of_null_and_infinity_says_nothing():
    table = _table("date", ("year",))
    assert of_partitions(table, [("2020",)]) is not None
    assert of_partitions(table, [("2020",), (None,)]) is None
