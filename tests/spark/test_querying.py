"""Views that a query leaves in the Spark session: those of DataFrames that are kept, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.spark.runtime import is_connect

pytestmark = pytest.mark.sampled(5)


def test_queries_leave_no_views_and_let_go_of_nothing(spark: Any, tmp_path: Path) -> None:
    before = {view.name for view in spark.catalog.listTables()}
    orders = spark.range(100).selectExpr("id", "id * 2 AS v").persist()
    orders.count()
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", spark=spark, engine="spark") as session:
        session.sql("CREATE TABLE t AS SELECT range AS id, 'a {b} `c`' AS s FROM range(100)")
        for files in range(2, 12):  # each another DataFrame, more than are kept
            session.sql("INSERT INTO t SELECT range + 100, 'more' FROM range(20)", engine="duckdb")
            found = session.sql("SELECT count(*), min(s) FROM t WHERE id >= 50").fetchall()
            assert found == [(50 + 20 * (files - 1), "a {b} `c`")]
        session.sql("MERGE INTO t USING orders o ON t.id = o.id WHEN MATCHED THEN UPDATE SET s = o.v", orders=orders)
        assert session.sql("SELECT sum(s::INT) FROM t JOIN orders USING (id)", orders=orders).fetchall() == [(9900,)]
        assert session.table("main.t").diff(1, 12).summary.updated == 100
        made = {view.name for view in spark.catalog.listTables()} - before
    assert len(made) <= 8
    assert orders.storageLevel.useMemory
    orders.unpersist()


def test_what_another_session_keeps_of_a_batch_is_kept(spark: Any, tmp_path: Path) -> None:
    if is_connect(spark):
        pytest.skip("one client of Spark Connect has no other session's DataFrames")
    batch = spark.newSession().range(10).persist()
    batch.count()
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", spark=spark, engine="spark") as session:
        session.write(batch, "main.t", mode="create")
        assert session.sql("SELECT sum(id) FROM t").fetchall() == [(45,)]
    assert batch.storageLevel.useMemory
    batch.unpersist()


def test_what_spark_has_no_plan_for_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", spark=spark, engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT range AS i FROM range(5000)")
        start = "WITH RECURSIVE r(i) AS (SELECT min(i) FROM t UNION"
        text = f"{start} SELECT i + 1 FROM r WHERE i < 3) SELECT sum(i) FROM r"
        assert session.sql(text).fetchall() == session.sql(text, engine="spark").fetchall() == [(6,)]
        text = f"{start} ALL SELECT max(i) + 1 FROM r WHERE i < 3 GROUP BY i) SELECT sum(i) FROM r"
        assert session.sql(text).fetchall() == [(6,)]
        with pytest.raises(dl.UnsupportedFeatureError, match=r"^This query cannot run on Spark: Invalid recursive"):
            session.sql(text, engine="spark").fetchall()
        text = "SELECT count(*) FROM t AS a WHERE (i IN (SELECT NULL UNION ALL SELECT b.i FROM t AS b WHERE b.i < 9)) IS NULL"
        assert session.sql(text, engine="spark").fetchall() == session.sql(text).fetchall() == [(4991,)]
