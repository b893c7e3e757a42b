"""Expectations where Spark works the rows: the same meaning as in process, and by the doors of plain Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.datasource import register
from ducklake_lab.engine.placement import Limits
from tests.spark.catalogs import spark_lake

pytestmark = pytest.mark.sampled(2)


#: Expectations, each with the action on violation.
KINDS = {
    "CHECK (v > 0 AND s <> 'n1')": "quarantine",
    "(k) REFERENCES p(k)": "drop",
    "UNIQUE (id, s)": "drop",
}


@pytest.mark.sampled(3)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::ducklake_lab.errors.ExpectationWarning")
def test_both_engines_find_the_same(kind: str, spark: Any, new_catalog: Callable[..., str], tmp_path: Path) -> None:
    rows = "SELECT CAST(i AS INTEGER) AS id, CAST(i % 50 AS INTEGER) AS k, i / 7 - 5 AS v, 'n' || i % 3 AS s FROM range(400) r(i)"
    found: dict[str, list[object]] = {}
    for engine in ("duckdb", "spark"):
        uri = new_catalog("duckdb", engine)
        with dl.connect(uri, data_path=f"{tmp_path}/{engine}", alias="lake", engine="duckdb") as made:
            made.sql("CREATE TABLE p (k INTEGER); INSERT INTO p SELECT i FROM range(45) r(i)")
            made.sql(f"CREATE TABLE t AS {rows} LIMIT 20")
        limits = Limits(look=0, change=0, found=0, source_rows=0) if engine == "spark" else None
        session = dl.Session(spark if engine == "spark" else None, engine=engine, limits=limits)
        with session:
            session.attach(uri, alias="lake")
            session.sql(f"ALTER TABLE t EXPECT one {kind} ON VIOLATION {KINDS[kind]}")
            left = [session.sql(f"INSERT INTO t {rows}").fetchall()]
            left.append(session.sql("UPDATE t SET v = v - 20, k = k + 1 WHERE id >= 20").fetchall())
            left.append([check[1:6] for check in session.check("t").fetchall()])
            left.append(session.sql("SELECT id, k, round(v, 6), s FROM t ORDER BY ALL").fetchall())
            if KINDS[kind] == "quarantine":
                aside = "SELECT id, k, round(v, 6), s, reason FROM t_quarantine ORDER BY ALL"
                left.append(session.sql(aside).fetchall())
            found[engine] = left
    assert found["duckdb"] == found["spark"]


def test_plain_spark_is_refused_too(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> None:
    with spark_lake(spark, new_catalog()) as lake:
        lake.sql("CREATE TABLE lake.main.t (id INT, v INT)")
        with dl.connect(lake.uri, alias="other", engine="duckdb") as session:
            session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0)")
        bad = spark.createDataFrame([(1, -1)], "id INT, v INT")
        with pytest.raises(Exception, match="violates positive"):
            lake.sql("INSERT INTO lake.main.t VALUES (1, -1)")
        with pytest.raises(Exception, match="violates positive"):
            bad.writeTo("lake.main.t").append()
        assert lake.sql("SELECT count(*) FROM lake.main.t") == [(0,)]
        lake.sql("INSERT INTO lake.main.t VALUES (1, 1)")


def test_the_data_source_and_its_streams_are_checked(
    spark: Any, new_catalog: Callable[..., str], tmp_path: Path
) -> None:
    uri = new_catalog("duckdb")
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (id BIGINT, v BIGINT); ALTER TABLE t EXPECT positive CHECK (v > 0)")
        session.sql(
            "CREATE TABLE d (id BIGINT, v BIGINT); ALTER TABLE d EXPECT positive CHECK (v > 0) ON VIOLATION quarantine"
        )
    register(spark)
    rows = spark.range(0, 20).selectExpr("id", "id - 5 AS v")
    with pytest.raises(Exception, match="6 rows violate positive"):
        rows.write.format("ducklake").options(table="t").mode("append").save(uri)
    rows.where("v > 0").write.format("ducklake").options(table="t").mode("append").save(uri)
    rows.write.format("parquet").save(f"{tmp_path}/in")
    stream = spark.readStream.schema("id BIGINT, v BIGINT").parquet(f"{tmp_path}/in").writeStream
    stream = stream.format("ducklake").option("table", "d").option("checkpointLocation", f"{tmp_path}/checkpoint")
    stream.trigger(availableNow=True).start(uri).awaitTermination()
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT count(*), min(v) FROM t").fetchall() == [(14, 1)]
        assert session.sql("SELECT count(*), min(v) FROM d").fetchall() == [(14, 1)]
        assert session.sql("SELECT count(*), max(v) FROM d_quarantine").fetchall() == [(6, 0)]
