"""Tables of files with deleted rows and inlined rows are unions on Spark: queries over them give what DuckDB gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from ducklake_lab.spark import runtime

SETUP = """
CREATE TABLE o (id INTEGER, k VARCHAR, n INTEGER);
INSERT INTO o SELECT i, ['a', 'b', NULL][1 + i % 3], i * 7 % 11 FROM range(60) r(i);
DELETE FROM o WHERE id = 4;
ALTER TABLE o ADD COLUMN z INTEGER DEFAULT 7;
INSERT INTO o VALUES (100, 'a', 3, NULL);
CREATE TABLE c (k VARCHAR, most INTEGER);
INSERT INTO c VALUES ('a', 5), ('b', NULL), ('a', 9);
"""
QUERIES = (
    "SELECT n, n, id FROM o",
    "SELECT n AS n, z, n + 1, z FROM o",
    "SELECT n, n FROM o UNION ALL SELECT n, n FROM o AT (VERSION => 3)",
    "SELECT id AS x, k FROM o EXCEPT ALL SELECT n, k FROM o WHERE z > 5",
    "SELECT k, k FROM o INTERSECT ALL SELECT k, k FROM o WHERE n > 5",
    "SELECT id, count(*) OVER (PARTITION BY id % 3 ORDER BY id RANGE BETWEEN 3 PRECEDING AND 3 FOLLOWING), "
    "count(*) OVER (ORDER BY id RANGE BETWEEN 3 PRECEDING AND 3 FOLLOWING) FROM o",
    "SELECT id, max(k) OVER (PARTITION BY id % 3 ORDER BY n, id), cume_dist() OVER (ORDER BY id DESC) FROM o",
    "SELECT k, z, count_if(k NOT IN ('a', NULL)), grouping(k) FROM o GROUP BY ROLLUP (k, z)",
    "SELECT k, z, count_if(n > 100), grouping(z) FROM o WHERE n > 100 GROUP BY CUBE (k, z)",
    "SELECT k, z, grouping(k, z), grouping_id(z, k) + 1, grouping(z) FROM o GROUP BY CUBE (k, z) ORDER BY grouping(k, z)",
    "SELECT k, z, grouping(k, z) FROM o WHERE n > 100 GROUP BY ROLLUP (k, z) HAVING grouping_id(k, z) > 2",
    "SELECT k, count(*) FROM o WHERE n > 100 GROUP BY GROUPING SETS ((k), (n))",
    "SELECT k, n, count(*) FROM o WHERE n > 100 GROUP BY k, ROLLUP (n)",
    "SELECT id, n, n, (SELECT max(most) FROM c WHERE c.k = o.k) FROM o",
    "SELECT k, k, (SELECT count(*) FROM c WHERE c.k = o.k AND c.most > o.n) FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[dl.Session]:
    folder: Path = tmp_path_factory.mktemp("unions")
    # else what Spark refuses would run in process
    limits = Limits(refused=-1)
    with dl.connect(f"ducklake:{folder}/lake.ducklake", spark=spark, limits=limits) as session:
        session.sql(SETUP)
        yield session


@pytest.mark.sampled(4)
@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_agree(query: str, lake: dl.Session) -> None:
    here = lake.sql(query, engine="duckdb")
    there = lake.sql(query, engine="spark")
    assert (there.columns, there.types) == (here.columns, here.types)
    assert sorted(map(repr, there.fetchall())) == sorted(map(repr, here.fetchall()))


def test_rules_that_the_user_excludes_stay_excluded(spark: SparkSession) -> None:
    setting, mine = "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.CollapseWindow"
    if runtime.is_connect(spark):
        pytest.skip("Spark Connect has one session")
    users = spark.newSession()
    users.conf.set(setting, mine)
    own = runtime.own_session(users)
    assert users.conf.get(setting) == mine
    rules = str(own.conf.get(setting)).split(",")
    assert rules[0] == mine
    assert len(rules) == 3
