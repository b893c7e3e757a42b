"""Counts and extremes of whole tables by Spark's catalog: from the lake's catalog where it knows them, else by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.session.spark_tables import reading

pytestmark = pytest.mark.sampled(2)

ALL = (
    "SELECT count(*), count(i), min(i), max(i), min(s), max(s), min(d), max(d), min(t), max(z), count(f), min(f), max(f), "
    "min(n), max(b), count(`max(i)`), max(`max(i)`) FROM {}"
)


def test_answers_are_those_of_the_rows(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", alias="agg", spark=spark) as session:
        session.spark  # noqa: B018 - makes the lakes catalogs
        session.sql(
            "CREATE TABLE t (i INTEGER, s VARCHAR, d DECIMAL(10,2), t DATE, z TIMESTAMPTZ, f DOUBLE, n UBIGINT, b BOOLEAN, "
            '"max(i)" BIGINT)'
        )
        steps = (
            "SELECT 1",
            "INSERT INTO t SELECT i, 'v' || i, i / 4, DATE '2020-01-01' + i::INTEGER, TIMESTAMPTZ '2020-01-01 00:00:00+00' + "
            "INTERVAL (i) DAY, CASE WHEN i = 3 THEN 'nan'::DOUBLE ELSE i END, 18446744073709551615 - i, i % 2 = 0, i * 3 FROM range(50) r(i)",
            "INSERT INTO t (i, s) VALUES (NULL, NULL), (500, 'z')",
            "ALTER TABLE t ADD COLUMN later INTEGER DEFAULT 5",
            "DELETE FROM t WHERE i = 49",
            "UPDATE t SET d = -5 WHERE i = 7",
        )
        for step in steps:
            session.sql(step)
            found = spark.sql(ALL.format("agg.main.t")).collect()
            with monkeypatch.context() as patched:
                patched.setattr(reading, "_is_alike", lambda column: False)
                assert repr(spark.sql(ALL.format("agg.main.t")).collect()) == repr(found), step
            # a condition that is always true keeps the aggregates out of the scan
            rows = spark.sql(ALL.format("(SELECT * FROM agg.main.t WHERE coalesce(i, 0) >= 0)")).collect()
            assert repr(found) == repr(rows), step
        assert spark.sql("SELECT count(*) FROM agg.main.t VERSION AS OF 2").collect()[0][0] == 50
        assert spark.sql("SELECT max(later), min(later) FROM agg.main.t").collect()[0][:] == (5, 5)
        assert spark.sql("SELECT count(DISTINCT i), avg(i) FROM agg.main.t WHERE i < 10").collect()[0][0] == 10
        with session.transaction():
            session.sql("INSERT INTO t (i) VALUES (900)")
            assert spark.sql("SELECT max(i) FROM agg.main.t").collect()[0][0] == 900


def test_files_are_not_read(spark: Any, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", alias="agg", spark=spark) as session:
        session.spark  # noqa: B018 - makes the lakes catalogs
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS s FROM range(5000) r(i)")
        for file in session.table("t").files():
            Path(file.path).unlink()
        assert spark.sql("SELECT count(*), min(i), max(i), count(s) FROM agg.main.t").collect()[0][:] == (
            5000,
            0,
            4999,
            5000,
        )
        assert spark.table("agg.main.t").count() == 5000
