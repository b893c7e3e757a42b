"""Pins, answers at two snapshots and changes of answers, where Spark works the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.session import answers


@pytest.fixture
def session(tmp_path: Path, spark: Any) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", spark=spark, engine="spark") as session:
        session.sql("CREATE TABLE t AS SELECT i, (i % 3)::INTEGER AS g, i * 0.5 AS x FROM range(30) r(i)")
        session.sql("INSERT INTO t SELECT i, 7, 0.25 FROM range(100, 130) r(i)")
        session.sql("DELETE FROM t WHERE g = 2")
        session.sql("UPDATE t SET x = x + 1 WHERE i = 3")
        yield session


def test_spark_reads_as_of_the_pin(session: dl.Session, spark_jar: None) -> None:
    spark = session.spark
    held = session.table("t").spark()
    session.pin(1)
    found = session.sql("SELECT count(x), sum(i) FROM t")
    assert not found.in_process and found.fetchall() == [(30, 435)]
    assert session.table("t").spark().count() == 30
    assert spark.table("lake.main.t").count() == 30
    assert spark.sql("SELECT count(*) FROM lake.main.t VERSION AS OF 2").collect()[0][0] == 60
    for write in (
        lambda: spark.sql("DELETE FROM lake.main.t WHERE i = 1"),
        lambda: spark.sql("INSERT INTO lake.main.t VALUES (1, 1, 1)"),
        lambda: spark.range(3).writeTo("lake.main.new").create(),
    ):
        with pytest.raises(Exception, match="pinned at snapshot 1 and can only be read"):
            write()
    with pytest.raises(dl.TransactionError, match="pinned at snapshot 1"):
        session.write(held, "t")
    session.pin(None)
    assert spark.table("lake.main.t").count() == held.count() == 50


def test_answers_of_spark_are_those_in_process(session: dl.Session) -> None:
    query = "SELECT g, count(*) AS n, sum(x) AS x FROM t GROUP BY ALL ORDER BY g"
    by_spark = session.compare(query, 1)
    lines = session.when(query)
    session.engine = "duckdb"
    here = session.compare(query, 1)
    assert (by_spark.summary, by_spark.key) == (here.summary, here.key) == (here.summary, ("g",))
    assert by_spark.rows() == here.rows()
    assert session.when(query).fetchall() == lines.fetchall()
    assert [row[0] for row in lines.fetchall()] == [1, 2, 3, 4]


def test_large_answers_of_spark_are_refused(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_ROWS", 40)
    with pytest.raises(dl.UsageError, match="at snapshot 2 has more than 40 rows"):
        session.compare("FROM t", 1, 2)
