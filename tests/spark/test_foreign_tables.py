"""Tables of other formats on Spark: it reads the same rows as DuckDB in process."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from tests.unit.foreign.tables import alter_schema, check_same, delta_rows, fields_of

pytestmark = pytest.mark.spark


def test_spark_reads_added_tables(spark: object, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs the extra [delta]")
    path = tmp_path / "delta"
    rows = pa.table(
        {
            "n": range(6),
            "s": [{"u": i, "v": "x"} for i in range(6)],
            "p": ["a b", "c/d=é%&?#[*]", None, "null", "x=y/z", "'\""],
            "moment": pa.array([None, -1, 0, 1_500_000, 10**15, 1], pa.timestamp("us", tz="UTC")),
            "day": [None, dt.date(1, 1, 1), *[dt.date(2020, 1, day) for day in range(1, 5)]],
        }
    )
    mapped = {"delta.columnMapping.mode": "name"}
    deltalake.write_deltalake(path, rows, partition_by=["p", "moment", "day"], configuration=mapped)
    fields = fields_of(path)
    fields[1]["type"]["fields"][0]["name"] = "renamed"
    alter_schema(path, fields)
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.add_table("delta", path, "t")
        check_same(session.sql("FROM t", engine="spark").arrow(), delta_rows(path))
        session.sql("DELETE FROM t WHERE n = 5")
        found = session.sql("FROM t", engine="spark").arrow()
        assert found.num_rows == 5
        check_same(found, session.sql("FROM t", engine="duckdb").arrow())
