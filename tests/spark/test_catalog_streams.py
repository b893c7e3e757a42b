"""Streams by the names of tables, views and options of queries; the reference reads what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.spark.catalogs import SparkLake, spark_lake
from tests.spark.versions import limits_streams, writes_streams

pytestmark = pytest.mark.sampled(4)


@pytest.fixture
def lake(spark: Any, spark_jar: None, new_catalog: Callable[..., str]) -> Iterator[SparkLake]:
    with spark_lake(spark, new_catalog("duckdb")) as found:
        found.session.sql("CREATE TABLE t AS SELECT range AS i, range % 3 AS k FROM range(50)")
        yield found


class Streams:
    def __init__(self, lake: SparkLake, folder: Path) -> None:
        self.lake, self.folder = lake, folder

    def read(self, **options: str) -> Any:
        return self.lake.spark.readStream.options(**options).table("lake.main.t")

    def run(self, frame: Any, name: str, mode: str = "append", **options: str) -> int:
        """Writes all that there is to a table; returns the number of batches."""
        query = (
            frame.writeStream.outputMode(mode)
            .options(checkpointLocation=f"{self.folder}/{name}", **options)
            .trigger(availableNow=True)
            .toTable(f"lake.main.{name}")
        )
        query.awaitTermination()
        return len(list((self.folder / name / "commits").glob("[0-9]*")))


@pytest.fixture
def streams(lake: SparkLake, tmp_path: Path) -> Streams:
    return Streams(lake, tmp_path / "checkpoints")


@limits_streams
def test_a_stream_goes_from_table_to_table(lake: SparkLake, streams: Streams) -> None:
    assert streams.run(streams.read(), "copied") == 1
    lake.session.sql("INSERT INTO t VALUES (100, 1)")
    lake.session.sql("INSERT INTO t SELECT range, 7 FROM range(200, 220)")
    assert streams.run(streams.read(maxFilesPerTrigger="1"), "copied", author="Ada") == 3
    # a batch that was committed, and not noted
    for name in ("2", ".2.crc"):
        (streams.folder / "copied" / "commits" / name).unlink(missing_ok=True)
    streams.run(streams.read(maxFilesPerTrigger="1"), "copied")
    assert lake.reference("SELECT count(*), count(DISTINCT i), sum(k) FROM copied") == lake.reference(
        "SELECT count(*), count(DISTINCT i), sum(k) FROM t"
    )
    assert lake.reference("SELECT max(author) FROM ducklake_snapshots('l')") == [("Ada",)]


@writes_streams
def test_a_new_table_has_the_defaults_of_the_old_one(lake: SparkLake, streams: Streams) -> None:
    lake.session.sql(
        r"CREATE OR REPLACE TABLE t (i BIGINT DEFAULT 7, s VARCHAR DEFAULT 'a\''b', d DATE DEFAULT '2026-01-02')"
    )
    lake.session.sql("INSERT INTO t (i) VALUES (1)")
    streams.run(streams.read(), "copied")
    lake.sql("INSERT INTO lake.main.copied (s) VALUES ('x')", "INSERT INTO lake.main.copied (i) VALUES (2)")
    assert lake.reference("SELECT i, s, d = DATE '2026-01-02' FROM copied ORDER BY i") == [
        (1, r"a\'b", True),
        (2, r"a\'b", True),
        (7, "x", True),
    ]


@writes_streams
def test_complete_mode_replaces_the_rows(lake: SparkLake, streams: Streams) -> None:
    counts = streams.read().groupBy("k").count()
    streams.run(counts, "counts", "complete")
    lake.session.sql("INSERT INTO t VALUES (100, 1)")
    streams.run(counts, "counts", "complete")
    assert lake.reference("SELECT k, count FROM counts ORDER BY k") == [(0, 17), (1, 18), (2, 16)]


@limits_streams
def test_triggers_and_batches_of_a_function(lake: SparkLake, streams: Streams) -> None:
    lake.session.sql("INSERT INTO t SELECT range, 7 FROM range(200, 220)")

    def save(batch: Any, number: int) -> None:
        for _ in range(2):  # as Spark may
            batch.write.format("ducklake").options(table="saved", txnAppId="q", txnVersion=str(number)).mode(
                "append"
            ).save(lake.uri)

    def check(name: str, rows: int) -> None:
        assert lake.reference(f"SELECT count(*), count(DISTINCT i) FROM {name}") == [(rows, rows)]

    query = (
        streams.read(maxFilesPerTrigger="1")
        .writeStream.foreachBatch(save)
        .option("checkpointLocation", f"{streams.folder}/saved")
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        query.processAllAvailable()
        lake.session.sql("INSERT INTO t VALUES (300, 1)")
        query.processAllAvailable()
    finally:
        query.stop()
    check("saved", 71)
    # one batch, whatever the limits
    once = streams.read(maxFilesPerTrigger="1").writeStream.option("checkpointLocation", f"{streams.folder}/once")
    once.trigger(once=True).toTable("lake.main.once").awaitTermination()
    check("once", 71)


@writes_streams
def test_what_a_stream_by_name_cannot(lake: SparkLake, streams: Streams, spark: Any) -> None:
    lake.session.sql('CREATE TABLE "a.b" AS SELECT 1 AS i')
    for options, message in (
        ({"readChangeFeed": "true"}, "readChangeFeed gives it other columns"),
        ({"maxFilesPerTriger": "1"}, "Did you mean maxFilesPerTrigger"),
    ):
        with pytest.raises(Exception, match=message):
            streams.run(streams.read(**options), "copied")
    for name, message in (("`a.b`", "its name has a dot"), ("t.files", "metadata table")):
        with pytest.raises(Exception, match=message):
            streams.run(spark.readStream.table(f"lake.main.{name}"), "other")


def test_views_are_read_in_duckdbs_meaning(lake: SparkLake) -> None:
    lake.session.sql("CREATE VIEW v AS SELECT k // 2 AS h, list(i ORDER BY i)[1] AS first FROM t GROUP BY ALL")
    assert lake.sql("SELECT h, first FROM lake.main.v ORDER BY h") == lake.reference("FROM v ORDER BY h")
    assert lake.spark.table("lake.main.v").where("h = 1").count() == 1
    lake.session.sql("INSERT INTO t VALUES (-1, 0)")
    assert lake.sql("SELECT min(first) FROM lake.main.v") == [(-1,)]
    with pytest.raises(Exception, match="Nothing can be written to"):
        lake.sql("INSERT INTO lake.main.v VALUES (1, 1)")
    with pytest.raises(Exception, match="AS OF is not supported on v"):
        lake.sql(f"SELECT * FROM lake.main.v VERSION AS OF {lake.snapshot()}")


def test_options_of_queries_are_followed_or_refused(lake: SparkLake) -> None:
    runs: list[tuple[Any, str]]
    table, rows = "lake.main.t", lake.spark.range(3).selectExpr("id AS i", "id AS k")
    assert lake.spark.read.option("VERSIONASOF", "1").table(table).count() == 50
    before = lake.snapshot()
    runs = [
        (lambda: lake.spark.read.option("readChangeFeed", "true").table(table).count(), r"own table \.changes"),
        (lambda: lake.spark.read.option("versoinAsOf", "1").table(table).count(), "Did you mean versionAsOf"),
        (lambda: rows.writeTo(table).option("mergeSchema", "true").append(), "mergeSchema is not supported"),
        (lambda: rows.writeTo(table).option("messge", "x").append(), "Did you mean message"),
        (lambda: rows.write.option("replaceWhere", "i = 1").mode("overwrite").saveAsTable(table), "overwrite"),
        (
            lambda: rows.write.option("partitionOverwriteMode", "dynamic").mode("overwrite").insertInto(table),
            "overwritePartitions",
        ),
    ]
    for run, message in runs:
        with pytest.raises(Exception, match=message):
            run()
    assert lake.snapshot() == before
    rows.writeTo(table).option("author", "Ada").option("message", "load").option("userMetadata", "run 7").append()
    notes = "SELECT author, commit_message, commit_extra_info FROM ducklake_snapshots('l') ORDER BY snapshot_id DESC LIMIT 1"
    assert lake.reference(notes) == [("Ada", "load", "run 7")]
    with dl.connect(lake.uri, engine="duckdb") as session:
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(53,)]


def test_small_tables_are_broadcast(lake: SparkLake) -> None:
    lake.session.sql("CREATE TABLE names AS SELECT range AS k, 'n' || range AS name FROM range(2000)")
    joined = lake.spark.table("lake.main.t").join(lake.spark.table("lake.main.names"), "k")
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
    assert joined.count() == 50
