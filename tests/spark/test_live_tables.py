"""Live tables on Spark: refreshed by keys that Spark finds, they have the rows of their queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from tests.live import QUERIES, SOURCES, differing

pytestmark = pytest.mark.sampled(3)

#: Queries that the translation runs, of as many kinds as there are.
_ON_SPARK = ["view and macro", "union all", "left join", "full join", "group by all", "sums of a join", "distinct", "window", "nested groups"]  # fmt: skip


@pytest.mark.parametrize("name", _ON_SPARK)
def test_spark_finds_the_keys_and_their_rows(name: str, spark: SparkSession, tmp_path: Path) -> None:
    query = QUERIES[name]
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data", engine="spark", spark=spark
    ) as session:
        session.sql(SOURCES)
        session.sql("CALL lake.flush_inlined_data()")
        session.sql(f"CREATE LIVE TABLE x AS {query}")
        assert differing(session, "x", query, session.current_snapshot().snapshot_id) == []
        session.sql("INSERT INTO t VALUES (100, 2, 5.5, 'n1', '2024-01-02', 0.5), (NULL, NULL, 99, NULL, NULL, 'nan')")
        session.sql("DELETE FROM u WHERE k IN (1, 9) OR k IS NULL")
        session.sql("UPDATE t SET g = 1, v = v + 1 WHERE k % 7 = 2")
        done = session.refresh("x")
        assert done.mode == "incremental", done.reason
        assert differing(session, "x", query, done.snapshot) == []
        assert session.refresh("x").mode == "nothing"


def test_many_keys_are_not_fetched(spark: SparkSession, tmp_path: Path) -> None:
    from ducklake_lab.engine.placement import Limits

    with dl.Session(spark=spark, engine="spark", limits=Limits(source_rows=5)) as session:
        session.attach(f"ducklake:{tmp_path}/lake.ducklake", "lake", f"{tmp_path}/data")
        session.sql("CREATE TABLE t AS SELECT i AS k, i % 50 AS g FROM range(500) r(i)")
        query = "SELECT g, max(k) AS k FROM t GROUP BY g"
        session.sql(f"CREATE LIVE TABLE x AS {query}; UPDATE t SET k = k + 1 WHERE k < 20")
        done = session.refresh("x")
        assert (done.mode, done.reason) == ("full", "changes affect more than 5 keys")
        assert differing(session, "x", query, done.snapshot) == []
