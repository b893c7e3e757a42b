"""Predicates of many keys: intervals that hold every key, and leave out wide gaps between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ducklake_lab.engine.key_predicates import MAX_VALUES, of_values, values
from ducklake_lab.model.predicates import And, Comparison, InList, Or, Predicate
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
