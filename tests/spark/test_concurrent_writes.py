"""Another commit comes in while Spark's catalog writes: a write that is apart from it commits at once, else it runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Limits
from ducklake_lab.session.spark_tables import writing
from tests.spark.catalogs import SparkLake, spark_lake
from tests.unit.session.test_concurrency import interrupted

pytestmark = pytest.mark.sampled(3, "writes beside commits")

_MERGE = "MERGE INTO lake.main.t AS t USING (SELECT id AS k FROM range(10, 32)) AS s ON t.p = 3 AND t.k = s.k "
_INSERT = "WHEN NOT MATCHED THEN INSERT (p, k, n) VALUES (3, s.k, 5)"
_OTHERS = "UPDATE t SET n = n + 1 WHERE p = 1; INSERT INTO t VALUES (1, 500, 1); DELETE FROM t WHERE p = 1 AND k = 5"


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    with spark_lake(spark, new_catalog()) as found:
        found.session.sql("CREATE TABLE t (p INTEGER, k BIGINT, n BIGINT); ALTER TABLE t SET PARTITIONED BY (p)")
        found.session.sql("INSERT INTO t SELECT r % 4, r, 0 FROM range(100) s(r); INSERT INTO t VALUES (1, 101, 0)")
        yield found


def _rows(lake: SparkLake, partition: int) -> Any:
    return lake.spark.range(20).selectExpr(f"CAST({partition} AS INT) AS p", "id + 1000 AS k", "1L AS n")


def _runs(lake: SparkLake, monkeypatch: pytest.MonkeyPatch, write: Callable[[], object], others: str) -> int:
    """Runs a write before whose commit others come; returns how often it ran."""
    runs, attempt = [], writing._attempt

    def counted(*args: Any) -> None:
        runs.append(args)
        attempt(*args)

    monkeypatch.setattr(writing, "_attempt", counted)
    with dl.connect(lake.uri, alias="lake", engine="duckdb") as other:
        interrupted(monkeypatch, lambda: other.sql(others))
        write()
    return len(runs)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("INSERT INTO lake.main.t VALUES (1, 200, 0)", 1),
        ("UPDATE lake.main.t SET n = n + 100 WHERE p = 3", 1),
        ("UPDATE lake.main.t SET n = n + 100 WHERE p = 1", 2),
        ("DELETE FROM lake.main.t WHERE p = 3 AND k < 20", 1),
        ("DELETE FROM lake.main.t WHERE k < 20", 2),
        (_MERGE + "WHEN MATCHED THEN UPDATE SET n = -1 " + _INSERT, 1),
        (_MERGE + _INSERT, 1),
        ("INSERT INTO lake.main.t SELECT 3, count(*), 1 FROM lake.main.t WHERE p = 2", 1),
        ("INSERT INTO lake.main.t SELECT 3, count(*), 1 FROM lake.main.t WHERE p = 1", 2),
        ("INSERT INTO lake.main.t SELECT 3, count(*), 1 FROM lake.main.t", 2),
        ("INSERT INTO lake.main.t SELECT 3, count(*), 1 FROM lake.main.t.files", 2),
    ],
)
def test_a_statement_runs_again_where_others_changed_what_it_read(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch, text: str, runs: int
) -> None:
    assert _runs(lake, monkeypatch, lambda: lake.sql(text), _OTHERS) == runs
    rows = lake.session.sql("SELECT count(*), count(DISTINCT rowid) FROM t").fetchall()
    assert rows[0][0] == rows[0][1]


@pytest.mark.parametrize(("partition", "runs"), [(2, 1), (1, 2)])
def test_partitions_that_are_overwritten(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch, partition: int, runs: int
) -> None:
    write = _rows(lake, partition).writeTo("lake.main.t").overwritePartitions
    assert _runs(lake, monkeypatch, write, _OTHERS) == runs
    found = lake.session.sql("SELECT p, count(*), sum(n) FROM t GROUP BY p ORDER BY p").fetchall()
    others = (1, 26, 26)
    assert found == sorted(
        [(0, 25, 0), (3, 25, 0), (partition, 20, 20), *([others] if partition != 1 else [(2, 25, 0)])]
    )


@pytest.mark.parametrize(("day", "runs"), [("2024-05-03", 1), ("2024-05-01", 2)])
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP_NTZ"])
def test_days_that_are_overwritten(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch, kind: str, day: str, runs: int
) -> None:
    lake.sql(f"CREATE TABLE lake.main.e (d {kind}, n BIGINT) USING ducklake PARTITIONED BY (days(d))")
    lake.session.sql("INSERT INTO e SELECT DATE '2024-05-01' + CAST(r % 4 AS INTEGER), r FROM range(80) s(r)")
    rows = lake.spark.range(20).selectExpr(f"CAST('{day}' AS {kind}) AS d", "id AS n")
    others = "UPDATE e SET n = -1 WHERE d = '2024-05-01'; INSERT INTO e VALUES ('2024-05-01', -1)"
    assert _runs(lake, monkeypatch, rows.writeTo("lake.main.e").overwritePartitions, others) == runs
    found = lake.session.sql("SELECT CAST(d AS DATE)::VARCHAR, count(*), sum(n) FROM e GROUP BY ALL").fetchall()
    left = {
        "2024-05-01": (21, -21),
        "2024-05-02": (20, 780),
        "2024-05-03": (20, 800),
        "2024-05-04": (20, 820),
    }
    assert {key: (count, total) for key, count, total in found} == {**left, day: (20, 190)}


def test_rows_of_the_format_may_be_read_later(lake: SparkLake, monkeypatch: pytest.MonkeyPatch) -> None:
    read = lake.spark.read.format("ducklake").option("path", lake.uri).option("table", "main.t").load()
    write = read.where("p = 2").selectExpr("p", "k + 2000 AS k", "n").writeTo("lake.main.t").append
    assert _runs(lake, monkeypatch, write, _OTHERS) == 2


def test_new_versions_of_rows_that_a_transaction_inserted(lake: SparkLake, monkeypatch: pytest.MonkeyPatch) -> None:
    splits, split = [], OnSpark.split

    def noted(rows: OnSpark, column: str, number: int) -> tuple[OnSpark, OnSpark]:
        splits.append(number)
        return split(rows, column, number)

    monkeypatch.setattr(OnSpark, "split", noted)
    committed = lake.session.sql("SELECT rowid, k FROM t WHERE p = 3").fetchall()
    with (
        dl.connect(lake.uri, alias="lake", spark=lake.spark, engine="spark", limits=Limits(found=0)) as one,
        dl.connect(lake.uri, alias="lake", engine="duckdb") as other,
    ):
        one.sql("BEGIN; INSERT INTO t SELECT 3, 1000 + r, 0 FROM range(40) s(r)")
        changed = one.sql("UPDATE t SET n = k WHERE p = 3")
        other.sql("INSERT INTO t SELECT 1, 2000 + r, 0 FROM range(60) s(r)")
        one.sql("COMMIT")
    assert changed.fetchall() == [(65,)] and splits == [101]
    counts = lake.session.sql("SELECT count(*), count(DISTINCT rowid) FROM t").fetchall()
    assert counts == [(201, 201)]
    found = lake.session.sql("SELECT rowid, k, n FROM t WHERE p = 3 ORDER BY k").fetchall()
    assert [k for _, k, _ in found] == [n for _, _, n in found] == [*range(3, 100, 4), *range(1000, 1040)]
    assert [(row_id, k) for row_id, k, _ in found[:25]] == sorted(committed, key=lambda row: row[1])
