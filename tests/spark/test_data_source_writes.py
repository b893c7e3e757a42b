"""Options of writes by `format("ducklake")` through Spark; the reference reads what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.datasource import register
from tests.reference import connect

pytestmark = pytest.mark.sampled(5)


@pytest.fixture
def uri(new_catalog: Callable[..., str], tmp_path: Path, spark: SparkSession) -> str:
    uri = new_catalog("duckdb")
    with dl.connect(uri, data_path=f"{tmp_path}/data", engine="duckdb"):
        pass
    register(spark)
    return uri


def _read(uri: str, query: str) -> list[tuple[object, ...]]:
    with connect() as connection:
        connection.execute(f"ATTACH '{uri}' AS l")
        rows: list[tuple[object, ...]] = connection.execute(query).fetchall()
        return rows


def _write(rows: Any, uri: str, mode: str = "append", **options: str) -> None:
    rows.write.format("ducklake").options(table="t", **options).mode(mode).save(uri)


@pytest.mark.anywhere
def test_tables_are_made_and_change(uri: str, spark: SparkSession) -> None:
    rows = spark.range(0, 100, numPartitions=2).selectExpr("id", "CAST(id % 4 AS INT) AS day")
    _write(rows, uri, partitionBy="day")
    assert _read(uri, "SELECT count(*), sum(id), count(DISTINCT day) FROM l.t") == [(100, 4950, 4)]
    _write(rows.selectExpr("id + 1000 AS id", "day", "'x' AS note").where("day = 2"), uri, MERGESCHEMA="true")
    assert _read(uri, "SELECT count(*), count(note) FROM l.t") == [(125, 25)]
    few = rows.selectExpr("id", "3 AS day", "'new' AS note").limit(2)
    _write(few, uri, "overwrite", replaceWhere="day = 3")
    assert _read(uri, "SELECT day, count(*) FROM l.t GROUP BY day ORDER BY day") == [(0, 25), (1, 25), (2, 50), (3, 2)]
    _write(
        rows.selectExpr("day AS k", "CAST(id AS DOUBLE) AS v"),
        uri,
        "overwrite",
        overwriteSchema="true",
        partitionBy="k",
    )
    assert _read(uri, "SELECT count(*), sum(v) FROM l.t") == [(100, 4950.0)]
    with pytest.raises(Exception, match="does not meet replaceWhere"):
        _write(rows.selectExpr("day AS k", "CAST(id AS DOUBLE) AS v"), uri, "overwrite", replaceWhere="k = 0")
    assert _read(uri, "SELECT count(*), sum(v) FROM l.t") == [(100, 4950.0)]


def test_rows_in_the_order_of_their_keys_make_few_files(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 400, numPartitions=4).selectExpr("id", "id % 10 AS day")
    _write(rows, uri, partitionBy="day")
    assert len(list((tmp_path / "data").rglob("*.parquet"))) == 40
    _write(rows.repartition("day"), uri, "overwrite")
    assert _read(uri, "SELECT count(*) FROM ducklake_list_files('l', 't')") == [(10,)]


def test_modes_and_keys_that_spark_refuses_of_a_data_source(uri: str, spark: SparkSession) -> None:
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="cannot be written in the"):
            _write(spark.range(3), uri, mode)
    _write(spark.range(3), uri)
    with pytest.raises(Exception, match="partitioning"):
        spark.range(3).write.format("ducklake").option("table", "t").mode("append").partitionBy("id").save(uri)


def test_filters_of_a_session_that_hands_on_none(uri: str, spark: SparkSession) -> None:
    _write(spark.range(10), uri)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        reader = spark.read.format("ducklake").options(table="t", filter_pushdown="true")
        assert reader.load(uri).where("id > 7").count() == 2
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_stream_makes_its_table(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    _write(spark.range(10), uri)

    def run() -> None:
        frame = spark.readStream.format("ducklake").option("table", "t").load(uri)
        query = (
            frame.selectExpr("id", "id % 2 AS k")
            .writeStream.format("ducklake")
            .options(table="copied", partitionBy="k", path=uri, checkpointLocation=f"{tmp_path}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    _write(spark.range(10, 20), uri)
    run()
    assert _read(uri, "SELECT count(*), sum(id), count(DISTINCT k) FROM l.copied") == [(20, 190, 2)]
