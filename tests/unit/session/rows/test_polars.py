"""Polars: its frames are read and written, its times too, and results become frames."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time
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
        with pytest.raises(dl.UsageError, match="Polars has no type for a column"):
            session.sql("SELECT INTERVAL 1 MONTH AS i").polars()
