"""Texts and numbers of days and times are DuckDB's, over its whole range."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ducklake_lab.model.moments import DATES, DAY, TIMESTAMPS, Moment, civil, days_since_1970, parsed

pytestmark = pytest.mark.sampled(3)

DAYS = (
    st.integers(DATES[0] // DAY, DATES[1] // DAY)
    | st.integers(-730_000, -700_000)
    | st.sampled_from([-(2**31) + 1, 2**31 - 1])
)
MICROS = st.integers(*TIMESTAMPS) | st.integers(-(2**55), 2**55) | st.sampled_from([-(2**63) + 1, 2**63 - 1])


def texts(numbers: list[int], arrow: pa.DataType) -> list[str]:
    width = pa.int32() if pa.types.is_date(arrow) else pa.int64()
    values = pa.table({"v": pa.array(numbers, width).cast(arrow)})  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return [text for (text,) in connection.execute("SELECT v::VARCHAR FROM values").fetchall()]


@given(st.lists(DAYS, min_size=50, max_size=50))
def test_days(numbers: list[int]) -> None:
    for number, text in zip(numbers, texts(numbers, pa.date32()), strict=True):
        found = Moment.counted(number, "date")
        assert parsed(text, "date") == found and found.text() == text and found.is_known
        assert not found.is_finite or days_since_1970(*civil(number)) == number


@given(st.lists(MICROS, min_size=50, max_size=50))
def test_points_in_time(numbers: list[int]) -> None:
    for number, text in zip(numbers, texts(numbers, pa.timestamp("us")), strict=True):
        found = Moment.counted(number, "timestamp")
        assert parsed(text, "timestamp") == found and found.text() == text and found.is_known
    for number, text in zip(numbers, texts(numbers, pa.timestamp("us", "UTC")), strict=True):
        # DuckDB's text is a millisecond late after the year 287396
        assert parsed(text, "timestamptz") in (None, Moment.counted(number, "timestamptz"))


@pytest.mark.parametrize(
    "text",
    ["", "2013-02-29", "2013-13-01", "2013-00-01", "2013-01-00", "13-01-01", "2013-1-1", "0000-01-01 (BC)", " 2013-01-01",
     "2013-01-01 (AD)", "99999999-01-01", "5881580-07-11", "Infinity", "epoch", "２０１３-01-01"],
)  # fmt: skip
def test_other_texts_are_left_to_duckdb(text: str) -> None:
    assert parsed(text, "date") is None


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2013-01-31", "timestamp", datetime(2013, 1, 31)),
        ("2013-01-31T05:06:07.08", "timestamp", datetime(2013, 1, 31, 5, 6, 7, 80_000)),
        ("2013-01-31 24:00:00", "timestamp", datetime(2013, 2, 1)),
        ("2013-01-31 05:00:00+02", "timestamptz", datetime(2013, 1, 31, 3, tzinfo=UTC)),
        ("2013-01-31 05:00:00-05:30", "timestamptz", datetime(2013, 1, 31, 5, tzinfo=timezone(timedelta(hours=-5.5)))),
        ("2013-01-31 05:00:00Z", "timestamptz", datetime(2013, 1, 31, 5, tzinfo=UTC)),
        ("23:59:59.999999", "time", time(23, 59, 59, 999_999)),
        ("2013-01-31", "timestamptz", None),
        ("2013-01-31 05:00:00", "timestamptz", None),
        ("2013-01-31 05:00:00+00", "timestamp", None),
        ("2013-01-31 05:60:00", "timestamp", None),
        ("2013-01-31 05:00:00.1234567", "timestamp", None),
        ("24:00:00.1", "time", None),
    ],
)
def test_forms(text: str, kind: str, value: date | time | None) -> None:
    assert parsed(text, kind) == (None if value is None else Moment.of(value))  # type: ignore[arg-type]


def test_a_day_may_end_at_24() -> None:
    found = parsed("24:00:00", "time")
    assert found == Moment(DAY, "time") and found.text() == "24:00:00" and found.is_known
