"""Bounds are those that DuckDB finds, spelled as DuckDB spells them."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ducklake_lab.duckdb.bounds import extremes, smallest_and_largest
from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.model.types import DataType
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3)

TEXTS = {
    "int32": st.integers(-(2**31), 2**31 - 1).map(str),
    "uint128": st.integers(0, 2**128 - 1).map(str),
    "decimal(12,3)": st.decimals(-99999, 99999, places=3).map(lambda number: format(number, "f")),
    "float32": st.one_of(st.floats(width=32).map(repr), st.sampled_from(["nan", "inf", "-inf", "-0.0", "1e30"])),
    "float64": st.one_of(st.floats().map(repr), st.sampled_from(["nan", "inf", "-inf", "-0.0", "1e300", "5e-324"])),
    "date": st.one_of(
        st.dates().map(str), st.sampled_from(["0044-03-15 (BC)", "10000-01-01", "infinity", "-infinity"])
    ),
    "time": st.times().map(str),
    "timestamp": st.one_of(st.datetimes().map(str), st.sampled_from(["infinity", "12000-01-01 00:00:00"])),
    "timestamptz": st.one_of(
        st.datetimes().map(lambda moment: f"{moment}+00"), st.sampled_from(["2024-01-01 00:00:00+05:45", "infinity"])
    ),
    "timestamp_ns": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(str),
    "varchar": st.text(st.characters(exclude_categories=["Cs"])),
    "boolean": st.sampled_from(["true", "false"]),
    "uuid": st.uuids().map(str),
    "blob": st.sampled_from(["a", "b", "\\x00", "\\xFF"]),
}


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_texts_are_ordered_as_the_values_they_spell(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TEXTS)))
    texts = data.draw(st.lists(TEXTS[name], min_size=1, max_size=5))
    kind = DataType(name)
    low, high = smallest_and_largest(texts, kind)
    assert {low, high} <= set(texts)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        least, greatest = connection.execute(
            f"SELECT bool_and(t::{kind.sql()} >= ?::{kind.sql()}), bool_and(t::{kind.sql()} <= ?::{kind.sql()}) "
            "FROM unnest(?) r(t)",
            [low, high, texts],
        ).fetchone() or (None, None)
    assert least
    assert greatest


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_extremes_of_many_columns_are_those_of_each(data: st.DataObject) -> None:
    length = data.draw(st.integers(0, 4))
    names = data.draw(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=4))
    columns = []
    for name in names:
        texts = data.draw(st.lists(st.none() | TEXTS[name], min_size=length, max_size=length))
        table = cast_columns(pa.table({"v": pa.array(texts, pa.string())}), {"v": DataType(name)})
        columns.append((table.column("v"), DataType(name), texts))
    found = extremes([(values, kind) for values, kind, _ in columns])
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for of, (_, kind, texts) in zip(found, columns, strict=True):
            row = connection.execute(
                f"SELECT min(v)::VARCHAR, max(v)::VARCHAR, count(*) - count(v) "
                f"FROM (SELECT t::{kind.sql()} AS v FROM unnest(?::VARCHAR[]) r(t))",
                [texts],
            ).fetchone()
            assert (of.low, of.high, of.nulls) == row


def test_extremes_of_columns_of_several_lengths() -> None:
    dates = pa.chunked_array([pa.array([3, 1], pa.date32())])
    more = pa.chunked_array([pa.array([7, 5, None], pa.date32())])
    nothing = pa.chunked_array([pa.array([None], pa.date32())])
    kind = DataType("date")
    found = extremes([(dates, kind), (more, kind), (nothing, kind)])
    assert [(of.low, of.high, of.nulls) for of in found] == [
        ("1970-01-02", "1970-01-04", 0),
        ("1970-01-06", "1970-01-08", 1),
        (None, None, 1),
    ]


def test_the_last_moment_with_a_zone_is_spelled_to_its_microsecond() -> None:
    kind = DataType("timestamptz")
    moments = pa.chunked_array([pa.array([2**63 - 2, 2**63 - 5_000_000], pa.timestamp("us", "UTC"))])
    found = extremes([(moments, kind)])[0]
    assert (found.low, found.high) == ("294247-01-10 04:00:49.775808+00", "294247-01-10 04:00:54.775806+00")
    assert smallest_and_largest([found.high, found.low], kind) == (found.low, found.high)


def test_moments_before_the_first_day_of_duckdb_have_the_text_that_it_gives() -> None:
    moments = pa.chunked_array([pa.array([-(2**63) + 2], pa.timestamp("us", "UTC"))])
    (found,) = extremes([(moments, DataType("timestamptz"))])
    assert found.low == found.high == "290309-12-21 (BC) 19:59:05.224194+00"


@pytest.mark.parametrize(("texts", "wanted"), [(["10", "9"], ("9", "10")), (["1.10", "1.2"], ("1.10", "1.2"))])
def test_numbers_are_no_texts(texts: list[str], wanted: tuple[str, str]) -> None:
    assert smallest_and_largest(texts, DataType("decimal(5,2)")) == wanted
