"""Joins of two tables by their partition keys need no shuffle, and have the rows that the reference has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.spark.catalogs import SparkLake, spark_lake

pytestmark = pytest.mark.sampled(4)

_JOINS = (
    "SELECT a.k, x, y FROM {}a a JOIN {}b b ON a.k = b.k",
    "SELECT a.k, x, y FROM {}a a LEFT JOIN {}b b ON a.k = b.k AND x < 5",
    "SELECT a.k, b.k, x, y FROM {}a a FULL JOIN {}b b ON a.k = b.k WHERE x IS NULL OR x > 1",
    "SELECT a.k, count(*), max(y) FROM {}a a JOIN {}b b ON a.k = b.k GROUP BY a.k",
    "SELECT k, x FROM {}a WHERE k IN (SELECT k FROM {}b WHERE y > 'v2')",
    "SELECT k, x FROM {}a a WHERE NOT EXISTS (SELECT 1 FROM {}b b WHERE b.k = a.k)",
    "SELECT a.k, b.y, c.y FROM {}a a JOIN {}b b ON a.k = b.k JOIN {}b c ON c.k = b.k",
)


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    threshold = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.ducklake.joinPartitionBytes", "0")
    spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "true")  # Spark 4.0 has it off
    try:
        with spark_lake(spark, new_catalog()) as found:
            yield found
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        spark.conf.unset("spark.ducklake.joinPartitionBytes")
        spark.conf.unset("spark.sql.sources.v2.bucketing.enabled")


def _fill(lake: SparkLake, kind: str, keys: tuple[str, str], values: Callable[[str], str]) -> None:
    """Makes tables a and b with files, deletions, inlined rows and NULL keys."""
    for name, other, key in (("a", "x INTEGER", keys[0]), ("b", "y VARCHAR", keys[1])):
        lake.session.sql(f"CREATE TABLE {name} (k {kind}, {other})")
        lake.session.sql(f"ALTER TABLE {name} SET PARTITIONED BY ({key})")
    for text in (
        f"INSERT INTO a SELECT CASE WHEN i % 10 = 0 THEN NULL ELSE {values('i')} END, i % 7 FROM range(600) r(i)",
        f"INSERT INTO b SELECT CASE WHEN i % 9 = 0 THEN NULL ELSE {values('i + 3')} END, 'v' || i FROM range(500) r(i)",
        f"INSERT INTO a SELECT {values('i')}, 90 + i FROM range(4) r(i)",
        f"INSERT INTO b SELECT {values('i * 3')}, 'v' || i FROM range(4) r(i)",
        "DELETE FROM b WHERE y LIKE '%4'",
        "UPDATE a SET x = x + 1 WHERE x = 5",
    ):
        lake.session.sql(text)


def _plan(lake: SparkLake, text: str) -> str:
    frame = lake.spark.sql(text)
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _check(lake: SparkLake, text: str) -> None:
    ours = sorted(lake.sql(text.replace("{}", "lake.main.")), key=repr)
    theirs = lake.reference(text.replace("{}", "").replace("<=>", "IS NOT DISTINCT FROM"))
    assert ours == sorted(theirs, key=repr), text


@pytest.mark.parametrize("text", _JOINS)
def test_buckets_are_joined_where_they_lie(lake: SparkLake, text: str) -> None:
    _fill(lake, "BIGINT", ("bucket(4, k)", "bucket(4, k)"), lambda i: f"({i}) % 40")
    _check(lake, text)
    plan = _plan(lake, text.replace("{}", "lake.main."))
    assert "lake's table by k" in plan
    assert "hashpartitioning" not in plan


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INTEGER", lambda i: f"({i}) % 5 - 2"),
        ("VARCHAR", lambda i: f"concat('é ', ({i}) % 5)"),
        ("DATE", lambda i: f"DATE '0001-01-01' + CAST(({i}) % 5 * 900000 AS INTEGER)"),
        ("TINYINT", lambda i: f"({i}) % 4 - 128"),
    ],
)
def test_values_are_joined_where_they_lie(lake: SparkLake, kind: str, values: Callable[[str], str]) -> None:
    _fill(lake, kind, ("k", "k"), values)
    for text in (_JOINS[0], _JOINS[2], _JOINS[5]):
        _check(lake, text)
        assert "hashpartitioning" not in _plan(lake, text.replace("{}", "lake.main.")), kind


@pytest.mark.parametrize("kind", ["UBIGINT", "HUGEINT", "DOUBLE", "TIMESTAMP"])
def test_values_of_other_types_are_shuffled(lake: SparkLake, kind: str) -> None:
    times = kind == "TIMESTAMP"
    _fill(
        lake, kind, ("k", "k"), lambda i: f"TIMESTAMP '2026-01-01' + INTERVAL ({i} % 4) DAY" if times else f"({i}) % 4"
    )
    ours = lake.sql("SELECT count(*), count(x), count(y) FROM lake.main.a a JOIN lake.main.b b ON a.k = b.k")
    assert ours == lake.reference("SELECT count(*), count(x), count(y) FROM a JOIN b ON a.k = b.k")
    assert "lake's table" not in _plan(lake, _JOINS[0].replace("{}", "lake.main."))


@pytest.mark.anywhere
def test_a_part_of_the_keys_is_enough(lake: SparkLake) -> None:
    _fill(lake, "BIGINT", ("x, bucket(3, k)", "bucket(3, k), y"), lambda i: f"({i}) % 12")
    _check(lake, _JOINS[0])
    assert "hashpartitioning" not in _plan(lake, _JOINS[0].replace("{}", "lake.main."))
    more = "SELECT a.k, x, y FROM {}a a JOIN {}b b ON a.k = b.k AND a.x = length(b.y)"
    _check(lake, more)
    assert "lake's table" not in _plan(lake, more.replace("{}", "lake.main."))
    lake.spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    try:
        _check(lake, more)
        assert "hashpartitioning" not in _plan(lake, more.replace("{}", "lake.main."))
    finally:
        lake.spark.conf.unset("spark.sql.requireAllClusterKeysForCoPartition")
    _check(lake, "SELECT a.k, b.k FROM {}a a JOIN {}b b ON a.k <=> b.k WHERE x = 3")


@pytest.mark.parametrize(
    "changes",
    [
        ["ALTER TABLE b SET PARTITIONED BY (bucket(8, k))", "INSERT INTO b SELECT i, 'late' FROM range(50) r(i)"],
        ["ALTER TABLE a ALTER k TYPE HUGEINT"],
        ["ALTER TABLE a RESET PARTITIONED BY", "INSERT INTO a SELECT i, 1 FROM range(300) r(i)"],
        ["ALTER TABLE a ALTER k TYPE BIGINT", "ALTER TABLE b ALTER k TYPE BIGINT"],
    ],
)
def test_rows_of_unknown_keys_are_shuffled(lake: SparkLake, changes: list[str]) -> None:
    _fill(lake, "INTEGER", ("bucket(4, k)", "bucket(4, k)"), lambda i: f"({i}) % 40")
    for change in changes:
        lake.session.sql(change)
    for text in _JOINS[:3]:
        _check(lake, text)
    assert "hashpartitioning" in _plan(lake, _JOINS[0].replace("{}", "lake.main."))


def test_small_tables_are_broadcast_or_shuffled(lake: SparkLake) -> None:
    _fill(lake, "BIGINT", ("bucket(4, k)", "bucket(4, k)"), lambda i: f"({i}) % 40")
    lake.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10485760")
    plan = _plan(lake, _JOINS[0].replace("{}", "lake.main."))
    assert "BroadcastHashJoin" in plan
    assert "lake's table" not in plan
    lake.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    lake.spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "false")
    try:
        assert "lake's table" not in _plan(lake, _JOINS[0].replace("{}", "lake.main."))
    finally:
        lake.spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "true")
    assert "lake's table" in _plan(lake, _JOINS[0].replace("{}", "lake.main."))
    lake.spark.conf.unset("spark.ducklake.joinPartitionBytes")
    assert "lake's table" not in _plan(lake, _JOINS[0].replace("{}", "lake.main."))


@pytest.mark.anywhere
def test_snapshots_and_frames(lake: SparkLake) -> None:
    _fill(lake, "BIGINT", ("bucket(4, k)", "bucket(4, k)"), lambda i: f"({i}) % 40")
    before = lake.snapshot()
    lake.session.sql("DELETE FROM a WHERE x > 3")
    lake.session.sql("INSERT INTO a SELECT i, 1000 FROM range(60) r(i)")
    old = f"SELECT b.k, x, y FROM lake.main.a VERSION AS OF {before} a JOIN lake.main.b b ON a.k = b.k"
    expected = lake.reference(f"SELECT b.k, x, y FROM (FROM a AT (VERSION => {before})) a JOIN b ON a.k = b.k")
    assert sorted(lake.sql(old), key=repr) == sorted(expected, key=repr)
    assert "hashpartitioning" not in _plan(lake, old)
    a, b = lake.spark.table("lake.main.a"), lake.spark.table("lake.main.b")
    joined = a.where("x < 1000").join(b.select("k", (b.k + 1).alias("next")), "k").groupBy("k").agg({"next": "sum"})
    theirs = lake.reference("SELECT k, sum(k + 1) FROM a JOIN b USING (k) WHERE x < 1000 GROUP BY k")
    assert sorted(map(tuple, joined.collect())) == sorted((k, int(n)) for k, n in theirs)
    assert "hashpartitioning" not in joined._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("seed", range(6))
def test_random_plans_have_the_rows_of_the_reference(lake: SparkLake, seed: int) -> None:
    chance = random.Random(seed)
    key = chance.choice(["k", "bucket(3, k)", "bucket(5, k)"])
    _fill(lake, chance.choice(["BIGINT", "INTEGER", "SMALLINT"]), (key, key), lambda i: f"({i}) % 11")
    for _ in range(4):
        join = chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        where = chance.choice(
            ["", " WHERE a.k > 3", " WHERE y > 'v3'", " WHERE a.k = 4 OR x IS NULL", " WHERE b.k < 0"]
        )
        inner = f"SELECT a.k AS k, b.k AS l, x, y FROM {{}}a a {join} {{}}b b ON a.k = b.k{where}"
        text = chance.choice(
            [
                inner,
                f"SELECT k, l, count(*), min(y) FROM ({inner}) s GROUP BY k, l",
                f"SELECT s.k, c.x FROM ({inner}) s {chance.choice(['JOIN', 'LEFT JOIN'])} {{}}a c ON c.k = s.k",
                f"SELECT k, x FROM ({inner}) s UNION ALL SELECT k, x FROM {{}}a",
                f"SELECT x, count(*) FROM ({inner}) s WHERE k IN (SELECT k FROM {{}}b) GROUP BY x",
                f"SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x, y, l) FROM ({inner}) s",
            ]
        )
        _check(lake, text)
