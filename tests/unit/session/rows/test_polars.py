"""Polars: its frames are read and written, its times too, and results become frames."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import ducklake_lab as dl


def test_times_of_polars_are_written(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    frame = pl.DataFrame({"t": [time(1, 2, 3, 456)], "l": [[time(4)]], "s": [{"x": time(5)}]})
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.write(frame, "a", mode="create")
        session.sql("CREATE TABLE b AS FROM frame", frame=frame.lazy())
        for name in ("a", "b"):
            result = session.sql(f"FROM {name}")
            assert result.types == ["TIME", "TIME[]", "STRUCT(x TIME)"]
            assert result.fetchall() == [(time(1, 2, 3, 456), [time(4)], {"x": time(5)})]
        finer = pl.DataFrame({"t": pl.Series([1], dtype=pl.Time)})
        assert session.sql("SELECT t::VARCHAR FROM finer", finer=finer).fetchall() == [("00:00:00.000000001",)]
        with pytest.raises(dl.UnsupportedFeatureError, match="TIME_NS"):
            session.write(finer, "c", mode="create")


def test_results_become_frames() -> None:
    with dl.Session(engine="duckdb") as session:
        values = (
            "SELECT 1 AS i, 'x' AS s, TIME '01:02:03' AS t, DATE '2020-01-01' AS d, 1.5::DECIMAL(9, 2) AS n, [1] AS l"
        )
        assert session.sql(values).polars().rows() == [(1, "x", time(1, 2, 3), date(2020, 1, 1), Decimal("1.50"), [1])]
        for interval in ("INTERVAL 1 MONTH", "[INTERVAL 1 MONTH]", "{'a': INTERVAL 1 MONTH}"):
            with pytest.raises(dl.UsageError, match=r"Polars has no type for .*INTERVAL.*, that of the column \"i\""):
                session.sql(f"SELECT {interval} AS i").polars()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("TIMETZ '10:00:00+05:30'", "10:00:00+05:30"),
        ("[TIMETZ '10:00:00-03']", ["10:00:00-03"]),
        ("{'a': TIMETZ '10:00:00+15:59:59'}", {"a": "10:00:00+15:59:59"}),
        (f"{2**127 - 1}::HUGEINT", 2**127 - 1),
        (f"{2**128 - 1}::UHUGEINT", 2**128 - 1),
        ("1::VARIANT", "1"),
    ],
)
def test_no_value_changes_in_a_frame(value: str, expected: object) -> None:
    with dl.Session(engine="duckdb") as session:
        assert session.sql(f"SELECT {value} AS x").polars().rows() == [(expected,)]


FRAMES = {
    "integers": pl.DataFrame(
        {
            str(kind): pl.Series([1, None], dtype=kind)
            for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
        }
    ),
    "floats": pl.DataFrame({"a": pl.Series([0.1, None], dtype=pl.Float32), "b": [1e300, None]}),
    "decimals": pl.DataFrame({"a": pl.Series([Decimal("1.25"), None], dtype=pl.Decimal(38, 2))}),
    "dates": pl.DataFrame({"a": [date(1, 1, 1), date(9999, 12, 31), None]}),
    "times": pl.DataFrame({"a": [time(1, 2, 3, 4), time(23, 59, 59, 999999), None]}),
    "moments": pl.DataFrame(
        {unit: pl.Series([datetime(2024, 1, 1, 1, 2, 3, 456789), None], dtype=pl.Datetime(unit)) for unit in ("ms", "us", "ns")}
    ),
    "nanoseconds": pl.DataFrame({"a": pl.Series([1001, None]).cast(pl.Datetime("ns"))}),
    "texts": pl.DataFrame({"a": ["x", None], "b": [b"\x00", None], "c": [True, None]}),
    "nested": pl.DataFrame({"a": [[1], None], "b": [{"x": 1, "y": "z"}, None], "c": [[time(1)], None]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_return_as_they_were(kind: str, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        session.write(FRAMES[kind], "t", mode="create")
        found = session.sql("FROM t").polars()
        assert found.schema == FRAMES[kind].schema
        assert found.equals(FRAMES[kind])


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (
            pl.Series([1001, None]).cast(pl.Datetime("ns", "UTC")),
            "holds 1970-01-01 00:00:00.000001001Z, whose nanoseconds",
        ),
        (pl.Series([[1001], None]).cast(pl.List(pl.Duration("ns"))), "holds 1001 ns, whose nanoseconds"),
        (pl.Series([object(), None], dtype=pl.Object), "holds Python objects"),
    ],
)
def test_what_would_be_lost_is_refused(values: pl.Series, error: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": values})
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        with pytest.raises(dl.UsageError, match=f'Column "a" of .* {error}'):
            session.write(frame, "t", mode="create")
        with pytest.raises(dl.UsageError, match=f'Column "a" of frame {error}'):
            session.sql("FROM frame", frame=frame)
