"""Joins of tables that are partitioned by buckets of the compared columns: no shuffle, and the rows of any other join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.spark.catalogs import SparkLake, spark_lake

pytestmark = pytest.mark.sampled(4)

_KINDS = ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    """Two tables of four buckets by a number and by a text, with deletions, inlined rows and NULLs; Spark broadcasts none."""
    setting = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "-1")
    with spark_lake(spark, new_catalog()) as found:
        for name, columns, first, last in (
            ("a", "k BIGINT, s VARCHAR, d DATE, n INTEGER", 0, 300),
            ("b", "k BIGINT, s VARCHAR, d DATE, m INTEGER", 200, 500),
        ):
            found.session.sql(f"CREATE TABLE {name} ({columns})")
            found.session.sql(f"ALTER TABLE {name} SET PARTITIONED BY (bucket(4, k), bucket(3, s), bucket(5, d))")
            values = "range, 'ü' || range, DATE '1960-01-01' + range::INTEGER * 40, range % 7"
            found.session.sql(f"INSERT INTO {name} SELECT {values} FROM range({first}, {last})")
            found.session.sql(f"INSERT INTO {name} SELECT {values} FROM range(490, 496)")
            found.session.sql(f"INSERT INTO {name} VALUES (NULL, NULL, NULL, 1), (-7, '', '0001-01-01', NULL)")
            found.session.sql(f"DELETE FROM {name} WHERE k % 10 = 3")
        yield found
    spark.conf.set(setting, before)


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def check(lake: SparkLake, text: str, *, shuffles: bool) -> None:
    """Compares the rows of a query with those of copies of the tables, which have no buckets; and looks for a shuffle."""
    frame = lake.spark.sql(text)
    assert ("Exchange" in plan_of(frame)) == shuffles, plan_of(frame)
    plain = lake.spark.sql(text.replace("lake.main.a", "lake.main.plain_a").replace("lake.main.b", "lake.main.plain_b"))
    assert "Exchange" in plan_of(plain)
    rows = sorted(map(repr, frame.collect()))
    assert rows == sorted(map(repr, plain.collect()))
    assert rows


@pytest.fixture
def copied(lake: SparkLake) -> SparkLake:
    for name in ("a", "b"):
        lake.session.sql(f"CREATE TABLE plain_{name} AS FROM {name}")
    return lake


@pytest.mark.parametrize("column", ["k", "s", "d"])
def test_joins_of_all_kinds(copied: SparkLake, column: str) -> None:
    for kind in _KINDS:
        check(
            copied,
            f"SELECT * FROM lake.main.a AS x {kind} lake.main.b AS y ON x.{column} = y.{column}",
            shuffles=False,
        )


def test_what_stands_between_a_table_and_its_join(copied: SparkLake) -> None:
    ours = (
        # renamed columns, conditions, another key beside the bucket's, groups of the key
        "SELECT j, x.n FROM (SELECT k AS j, n FROM lake.main.a WHERE n > 2) AS x JOIN lake.main.b AS y ON j = y.k AND x.n = y.m",
        "SELECT x.k, count(*), sum(y.m) FROM lake.main.a AS x JOIN lake.main.b AS y ON x.k = y.k GROUP BY x.k",
        "SELECT count(x.n) FROM lake.main.a AS x JOIN lake.main.a AS y ON x.k = y.k GROUP BY x.k",
        "SELECT x.k FROM lake.main.a AS x JOIN lake.main.b AS y ON x.k = y.k JOIN lake.main.a AS z ON z.k = y.k",
    )
    for text in ours:
        check(copied, text, shuffles=False)
    shuffled = (
        # one side has other buckets, or none
        "SELECT x.k FROM lake.main.a AS x JOIN lake.main.b AS y ON x.k = y.m",
        "SELECT x.k FROM lake.main.a AS x JOIN (SELECT k FROM lake.main.b GROUP BY k, m) AS y ON x.k = y.k + 1",
        "SELECT x.k FROM lake.main.a AS x JOIN (SELECT id AS k FROM range(300)) AS y ON x.k = y.k",
        "SELECT x.n, count(*) FROM lake.main.a AS x JOIN lake.main.b AS y ON x.k = y.k GROUP BY x.n",
    )
    for text in shuffled:
        check(copied, text, shuffles=True)


def test_tables_whose_files_are_in_no_bucket_are_shuffled(copied: SparkLake) -> None:
    lake = copied
    join = "SELECT * FROM lake.main.a AS x JOIN lake.main.{} AS y ON x.k = y.k"
    for name, keys in (("other_count", "bucket(8, k)"), ("late", "bucket(4, k)"), ("narrow", "bucket(4, k)")):
        kind = "INTEGER" if name == "narrow" else "BIGINT"
        lake.session.sql(f"CREATE TABLE {name} (k {kind}, m INTEGER)")
        if name == "late":
            lake.session.sql("INSERT INTO late SELECT range, 1 FROM range(250, 300)")
        lake.session.sql(f"ALTER TABLE {name} SET PARTITIONED BY ({keys})")
        lake.session.sql(f"INSERT INTO {name} SELECT range, 2 FROM range(200, 250)")
        frame = lake.spark.sql(join.format(name))
        assert "Exchange" in plan_of(frame), name
        expected = lake.reference(f"SELECT count(*) FROM a JOIN {name} USING (k)")
        assert [(frame.count(),)] == expected, name
    # a column whose type has changed has values in the buckets of both types
    lake.session.sql("ALTER TABLE narrow ALTER COLUMN k SET TYPE BIGINT")
    assert "Exchange" in plan_of(lake.spark.sql(join.format("narrow")))


def test_tables_that_spark_broadcasts_are_read_as_ever(copied: SparkLake) -> None:
    copied.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10MB")
    frame = copied.spark.sql("SELECT * FROM lake.main.a AS x JOIN lake.main.b AS y ON x.k = y.k")
    assert "BroadcastHashJoin" in plan_of(frame) and "ExistingRDD" not in plan_of(frame)


def test_a_transactions_rows_are_joined(copied: SparkLake) -> None:
    lake = copied
    text = "SELECT count(*) FROM lake.main.a AS x JOIN lake.main.b AS y ON x.k = y.k"
    with lake.session.transaction():
        lake.session.sql("INSERT INTO b SELECT range, 'x', NULL, 0 FROM range(0, 100)")
        lake.session.sql("DELETE FROM a WHERE k = 40")
        inside = lake.sql(text)
    assert lake.sql(text) == inside == lake.reference("SELECT count(*) FROM a JOIN b USING (k)")
