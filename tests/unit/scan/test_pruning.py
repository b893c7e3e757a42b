"""Pruning never drops a file that holds a matching row."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ducklake_lab.catalog.casting import extremes
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.pruning import may_match

COLUMNS = {
    "i": (DataType("int32"), st.integers(-50, 50)),
    "d": (DataType("float64"), st.floats(allow_nan=True, width=32)),
    "s": (DataType("varchar"), st.text("abcZ é", max_size=4)),
    "n": (DataType("decimal(6,2)"), st.decimals(-999, 999, places=2)),
    "t": (DataType("date"), st.dates()),
    "b": (DataType("boolean"), st.booleans()),
}
TABLE = Table(1, "", 0, "t", "t/", tuple(Column.build(n, k, i) for i, (n, (k, _)) in enumerate(COLUMNS.items(), 1)))


def _comparison(name: str) -> st.SearchStrategy[Predicate]:
    values = COLUMNS[name][1].filter(lambda value: value == value)
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
    value = row[predicate.column[0]]
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
        low, high, nulls, nan = extremes(values, column.data_type)
        if nan:
            low = high = None  # as Parquet writers do
        if keep:
            found[column.column_id] = ColumnStats(
                column.column_id, None, len(rows) - nulls, nulls, low, high, nan if column.type == "float64" else None
            )
    return found


@settings(max_examples=400, deadline=None)
@given(ROWS, PREDICATES, st.lists(st.booleans(), min_size=6, max_size=6))
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
