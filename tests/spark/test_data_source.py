"""`format("ducklake")`: lakes for PySpark code without a session of ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(5)


@pytest.fixture
def uri(new_catalog: Callable[..., str], tmp_path: Path, spark: SparkSession) -> str:
    """A lake with a table in three files, deleted rows, and rows in the catalog."""
    uri = new_catalog()
    with dl.connect(uri, data_path=f"{tmp_path}/data", spark=spark, engine="spark") as session:
        assert session.spark is spark
        for start in (0, 100, 200):
            query = f"SELECT i AS id, 'n' || i AS name, i % 3 AS k FROM range({start}, {start + 100}) r(i)"
            session.sql(f"CREATE TABLE t AS {query}" if start == 0 else f"INSERT INTO t {query}")
        session.sql("DELETE FROM t WHERE k = 1 AND id < 150")
        session.sql("INSERT INTO t VALUES (1000, NULL, 7)")
    return uri


def _ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_a_table_reads_as_a_session_reads_it(uri: str, spark: SparkSession) -> None:
    frame = spark.read.format("ducklake").option("table", "t").load(uri)
    with dl.connect(uri, spark=spark, engine="spark") as session:
        expected = session.table("t").spark()
        assert frame.schema.simpleString() == expected.schema.simpleString()
        assert sorted(map(repr, frame.collect())) == sorted(map(repr, expected.collect()))


def test_snapshots_and_filters(uri: str, spark: SparkSession) -> None:
    reader = spark.read.format("ducklake").option("table", "main.t")
    assert _ids(reader.option("version", 2).load(uri)) == list(range(200))
    assert _ids(reader.option("version", 5).load(uri).where("id >= 250 AND name LIKE 'n25%'")) == list(range(250, 260))
    assert _ids(reader.load(uri).where("name IS NULL")) == [1000]


def test_filters_skip_files(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    # of three files one can have the row; the others need not be there
    for file in sorted((tmp_path / "data/main/t").glob("*.parquet"), key=lambda f: f.stat().st_mtime)[:2]:
        file.unlink()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    reader = spark.read.format("ducklake").options(table="main.t", filter_pushdown="true")
    assert _ids(reader.load(uri).where("id >= 250 AND name LIKE 'n25%' AND k IN (0, 1)")) == [
        i for i in range(250, 260) if i % 3 < 2
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a lake and a table"),
        ({"table": "tt"}, "Did you mean"),
        ({"table": "t", "versoin": "1"}, "Did you mean version"),
        ({"table": "t", "version": "x"}, "x"),
        ({"table": "t", "readChangeFeed": "true", "starting_version": "x"}, 'no snapshot with the tag "x"'),
    ],
)
def test_bad_options_are_named(uri: str, spark: SparkSession, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        spark.read.format("ducklake").options(**options).load(uri).collect()


def test_a_stream_reads_each_inserted_row_once(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("ducklake").options(table="t", ignoreDeletes="true").load(uri)
    seen: list[list[int]] = []

    def run() -> None:
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: seen.append(_ids(batch)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    first = [i for i in range(300) if not (i % 3 == 1 and i < 150)] + [1000]
    assert seen == [first]
    with dl.connect(uri, spark=spark, engine="spark") as session:
        session.sql("INSERT INTO t SELECT i, 'late', 0 FROM range(2000, 2050) r(i)")
        session.sql("INSERT INTO t VALUES (3000, 'last', 0)")
        session.sql("DELETE FROM t WHERE id < 50")
    run()
    assert [i for batch in seen[1:] for i in batch] == [*range(2000, 2050), 3000]


def _count(uri: str, spark: SparkSession) -> int:
    return spark.read.format("ducklake").option("table", "t").load(uri).count()


def test_batches_are_appended_and_overwrite(uri: str, spark: SparkSession) -> None:
    rows = spark.range(5000, 5100, numPartitions=2).selectExpr("'w' || id AS NAME", "id % 5 AS k", "id")
    before = _count(uri, spark)
    rows.write.format("ducklake").option("table", "t").mode("append").save(uri)
    assert _count(uri, spark) == before + 100
    with dl.connect(uri, spark=spark, engine="spark") as session:
        assert session.sql("SELECT id, name, k FROM t WHERE id = 5003").fetchall() == [(5003, "w5003", 3)]
        newest = session.current_snapshot().snapshot_id
    rows.write.format("ducklake").option("table", "t").mode("overwrite").save(uri)
    assert _ids(spark.read.format("ducklake").option("table", "t").load(uri)) == list(range(5000, 5100))
    with dl.connect(uri, spark=spark, engine="spark") as session:
        assert session.current_snapshot().snapshot_id == newest + 1
        assert len(session.table("t", at=newest).arrow()) == before + 100


def _partitioned(uri: str, spark: SparkSession, tmp_path: Path) -> Any:
    """A table of five days, and new rows of one of them."""
    with dl.connect(uri, data_path=f"{tmp_path}/data", spark=spark) as session:
        session.sql("CREATE TABLE days (day INTEGER, i BIGINT); ALTER TABLE days SET PARTITIONED BY (day)")
        session.sql("INSERT INTO days SELECT range % 5, range FROM range(50)")
    return spark.range(3).selectExpr("3 AS day", "id AS i")


def _rows_of_days(uri: str, spark: SparkSession) -> list[tuple[object, ...]]:
    with dl.connect(uri, spark=spark) as session:
        return session.sql("SELECT day, count(*), sum(i) FROM days GROUP BY day ORDER BY day").fetchall()


@pytest.mark.parametrize("name", ["partitionOverwriteMode", "PARTITIONOVERWRITEMODE"])
def test_an_overwrite_replaces_the_partitions_that_receive_rows(
    uri: str, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    rows = _partitioned(uri, spark, tmp_path)
    before = _rows_of_days(uri, spark)
    others = [row for row in before if row[0] != 3]
    writer = rows.write.format("ducklake").option("table", "days").mode("overwrite")
    writer.option(name, "Dynamic").save(uri)
    expected = sorted([*others, (3, 3, 3)])
    assert _rows_of_days(uri, spark) == expected
    # a row in the catalog belongs to its partition, too
    with dl.connect(uri, spark=spark) as session:
        session.sql("INSERT INTO days VALUES (3, 1000), (4, 1000), (NULL, 1)")
        assert session.table("days").files().inlined_rows == 3
    writer.option(name, "dynamic").save(uri)
    kept = [(d, n + 1, s + 1000) if d == 4 else (d, n, s) for d, n, s in expected]
    assert _rows_of_days(uri, spark) == [*kept, (None, 1, 1)]
    # nothing is replaced by nothing
    rows.where("i < 0").write.format("ducklake").options(table="days", **{name: "dynamic"}).mode("overwrite").save(uri)
    assert _rows_of_days(uri, spark) == [*kept, (None, 1, 1)]


def test_sparks_setting_chooses_how_to_overwrite(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = _partitioned(uri, spark, tmp_path)
    setting = "spark.sql.sources.partitionOverwriteMode"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "dynamic")
    try:
        rows.write.format("ducklake").option("table", "days").mode("overwrite").save(uri)
        assert len(_rows_of_days(uri, spark)) == 5
        with (
            dl.connect(uri, spark=spark) as session,
            pytest.raises(dl.UnsupportedFeatureError, match=f"{setting}=dynamic"),
        ):
            session.write(rows, "days", mode="overwrite")
        # the option goes before the setting, as in Spark
        rows.write.format("ducklake").options(table="days", partitionOverwriteMode="STATIC").mode("overwrite").save(uri)
    finally:
        spark.conf.set(setting, before)
    assert _rows_of_days(uri, spark) == [(3, 3, 3)]


def test_files_under_other_keys_are_not_overwritten(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = _partitioned(uri, spark, tmp_path)
    writer = rows.write.format("ducklake").options(table="days", partitionOverwriteMode="dynamic").mode("overwrite")
    with dl.connect(uri, spark=spark) as session:
        session.sql("ALTER TABLE days SET PARTITIONED BY (i)")
        before = session.current_snapshot().snapshot_id
    with pytest.raises(Exception, match="was written under other partition keys"):
        writer.save(uri)
    with dl.connect(uri, spark=spark) as session:
        assert session.current_snapshot().snapshot_id == before
        session.sql("CREATE TABLE exact (day DOUBLE); ALTER TABLE exact SET PARTITIONED BY (day)")
    with pytest.raises(Exception, match="Overwriting partitions by day is not supported, as it is DOUBLE"):
        spark.range(3).selectExpr("CAST(id AS DOUBLE) AS day").write.format("ducklake").options(
            table="exact", partitionOverwriteMode="dynamic"
        ).mode("overwrite").save(uri)


def test_names_of_other_formats(uri: str, spark: SparkSession) -> None:
    def load(**options: str) -> Any:
        return spark.read.format("ducklake").options(table="t", **options).load(uri)

    with dl.connect(uri, alias="lake", spark=spark) as session:
        moment = sorted(entry.info.snapshot_time for entry in session.snapshots())[3]
        expected = session.table("t").changes(4, 5).fetchall()
        at = session.table("t", at=moment).arrow().column("id").to_pylist()
    assert _ids(load(versionAsOf="2")) == list(range(200))
    assert _ids(load(timestampAsOf=moment.isoformat())) == sorted(at)
    feed = load(readChangeFeed="true", startingVersion="4", endingVersion="5")
    assert feed.columns == ["snapshot_id", "rowid", "change_type", "id", "name", "k"]
    assert sorted(map(tuple, feed.collect())) == sorted(expected)
    assert len(expected) > 1
    for options, message in (
        ({"dataChange": "false", "clusterByAuto": "true"}, "does not support the option clusterByAuto"),
        ({"versionAsOf": "1", "timestampAsOf": moment.isoformat()}, "not both"),
        ({"version": "1", "versionAsOf": "2"}, "are the same"),
        ({"readChangeFeed": "true"}, "needs the option startingVersion"),
        ({"readChangeFeed": "true", "startingVersion": "5", "endingVersion": "4"}, "is after the last"),
        ({"readChangeFeed": "maybe"}, "is true or false"),
        ({"verionAsOf": "1"}, "Did you mean versionAsOf"),
    ):
        with pytest.raises(Exception, match=message):
            load(**options).collect()


def test_columns_are_chosen_by_name(uri: str, spark: SparkSession) -> None:
    def reader() -> Any:
        return spark.read.format("ducklake").option("table", "t")

    frame = reader().schema("K bigint, id bigint").load(uri)
    assert frame.columns == ["K", "id"]
    assert [tuple(row) for row in frame.where("id IN (1000, 2)").orderBy("id").collect()] == [(2, 2), (7, 1000)]
    assert reader().option("columns", "name, id").load(uri).columns == ["name", "id"]
    with pytest.raises(Exception, match='"id" is bigint, not int'):
        reader().schema("id int").load(uri).collect()
    with pytest.raises(Exception, match='no column "nme"'):
        reader().option("columns", "nme").load(uri)


def test_a_write_of_an_application_happens_once(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(2000, 2010).selectExpr("id", "'x' AS name", "CAST(9 AS BIGINT) AS k").coalesce(1)
    options = {
        "table": "t",
        "txnAppId": "nightly",
        "author": "Ada",
        "message": "load",
        "userMetadata": "run 7",
        "maxRecordsPerFile": "4",
        "compression": "zstd",
    }
    for version in ("1", "1", "2"):
        rows.write.format("ducklake").options(**options, txnVersion=version).mode("append").save(uri)
    with dl.connect(uri, spark=spark) as session:
        assert session.sql("SELECT count(*) FROM t WHERE k = 9").fetchall() == [(20,)]
        notes = [(e.info.author, e.info.commit_message, e.info.commit_extra_info) for e in session.snapshots()]
        assert notes.count(("Ada", "load", "run 7")) == 2
    counts = sorted(pq.read_metadata(file).num_rows for file in (tmp_path / "data").rglob("*.parquet"))
    assert counts[:6] == [2, 2, 4, 4, 4, 4]
    with pytest.raises(Exception, match="txnAppId and txnVersion together"):
        rows.write.format("ducklake").options(table="t", txnAppId="nightly").mode("append").save(uri)
    with pytest.raises(Exception, match='"zst" is no codec'):
        rows.write.format("ducklake").options(table="t", compression="zst").mode("append").save(uri)


def test_spark_finds_the_format_by_itself(uri: str, tmp_path: Path) -> None:
    script = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.read.format("ducklake").option("table", "t").load({uri!r}).count())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "251", done.stderr[-2000:]


def test_a_failed_write_leaves_neither_a_snapshot_nor_a_file(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    files = sorted((tmp_path / "data").rglob("*.parquet"))
    good = spark.range(100).selectExpr("id", "'x' AS name", "id AS k")
    broken = good.selectExpr("id", "name", "IF(id = 99, raise_error('no'), k) AS k").repartition(2)
    for rows, message in ((broken, "no"), (good.drop("k"), 'no column "k"'), (good.selectExpr("*", "1 AS z"), '"z"')):
        with pytest.raises(Exception, match=message):
            rows.write.format("ducklake").option("table", "t").mode("append").save(uri)
    assert sorted((tmp_path / "data").rglob("*.parquet")) == files
    with dl.connect(uri, spark=spark, engine="spark") as session:
        assert session.current_snapshot().snapshot_id == 5


def test_a_stream_writes_each_batch_once(uri: str, spark: SparkSession, tmp_path: Path) -> None:
    with dl.connect(uri, spark=spark, engine="spark") as session:
        session.sql("CREATE TABLE copied AS FROM t WITH NO DATA")
        checkpoint = tmp_path / "checkpoint"

        def run() -> None:
            frame = spark.readStream.format("ducklake").option("table", "t").load(uri)
            query = (
                frame.writeStream.format("ducklake")
                .options(table="copied", path=uri, checkpointLocation=str(checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()

        def copied() -> int:
            return session.sql("SELECT count(*) FROM copied").fetchall()[0][0]

        run()
        assert copied() == 251
        # as if the stream had been stopped after the commit, before it noted that in its checkpoint
        for name in ("0", ".0.crc"):
            (checkpoint / "commits" / name).unlink()
        run()
        assert copied() == 251
        session.sql("INSERT INTO t VALUES (4000, 'new', 1)")
        run()
        assert copied() == 252
