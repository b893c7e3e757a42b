"""Streams from lakes and into lakes: every row once, whatever happens between two runs.

`DUCKLAKE_LAB_KILLS=all` kills a stream at every step there is, rather than at some of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.datasource import DuckLakeDataSource
from tests.spark.versions import SPARK, limits_streams, writes_streams

pytestmark = [pytest.mark.sampled(5), writes_streams]


class Pipeline:
    """The rows of a lake's table, streamed into another lake's."""

    def __init__(self, source: str, target: str, folder: Path) -> None:
        self.source, self.target, self.checkpoint = source, target, folder / "checkpoint"
        with dl.connect(source, data_path=f"{folder}/source", engine="duckdb") as session:
            session.sql("CREATE TABLE t (i BIGINT)")
        self.on_target("CREATE TABLE t (i BIGINT)", data_path=f"{folder}/target")

    def insert(self, start: int, end: int) -> None:
        with dl.connect(self.source, engine="duckdb") as session:
            session.sql(f"INSERT INTO t SELECT i FROM range({start}, {end}) r(i)")

    def on_target(self, statement: str, data_path: str | None = None) -> None:
        with dl.connect(self.target, alias="lake", data_path=data_path, engine="duckdb") as session:
            session.sql(statement)

    def run(self, spark: SparkSession, into: str = "t", **options: str) -> None:
        spark.dataSource.register(DuckLakeDataSource)
        frame = spark.readStream.format("ducklake").options(table="t", **options).load(self.source)
        stream = frame.writeStream.format("ducklake").options(table=into, path=self.target)
        checkpoint = self.checkpoint if into == "t" else self.checkpoint.with_name(into)
        query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()

    def forget_commit(self, batch: int) -> None:
        """Forget a batch's commit in the checkpoint, as if Spark had stopped before it noted the commit."""
        for name in (f"{batch}", f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)

    def rows(self) -> tuple[int, int]:
        """Count all rows, and the different ones."""
        with dl.connect(self.target, engine="duckdb") as session:
            return session.sql("SELECT count(*), count(DISTINCT i) FROM t").fetchall()[0]


@pytest.fixture
def pipeline(new_catalog: Callable[..., str], tmp_path: Path) -> Pipeline:
    return Pipeline(new_catalog("sqlite", "source"), new_catalog("sqlite", "target"), tmp_path)


def test_a_checkpoint_made_anew_begins_a_new_stream(pipeline: Pipeline, spark: SparkSession) -> None:
    pipeline.insert(0, 1000)
    pipeline.run(spark)
    assert pipeline.rows() == (1000, 1000)
    shutil.rmtree(pipeline.checkpoint)
    pipeline.on_target("TRUNCATE t")
    pipeline.run(spark)
    assert pipeline.rows() == (1000, 1000)


def test_a_batch_is_not_repeated_after_its_snapshot_expired(pipeline: Pipeline, spark: SparkSession) -> None:
    pipeline.insert(0, 1000)
    pipeline.run(spark)
    pipeline.on_target("CREATE TABLE newer (i INTEGER)")
    pipeline.on_target("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    pipeline.forget_commit(0)
    pipeline.run(spark)
    assert pipeline.rows() == (1000, 1000)


@limits_streams
def test_a_planned_batch_is_followed_by_the_rest(pipeline: Pipeline, spark: SparkSession) -> None:
    pipeline.insert(0, 1000)
    pipeline.run(spark)
    pipeline.forget_commit(0)
    pipeline.insert(1000, 3000)
    pipeline.insert(3000, 7000)
    pipeline.run(spark)
    assert pipeline.rows() == (7000, 7000)


@limits_streams
def test_limited_batches_and_a_change_feed(pipeline: Pipeline, spark: SparkSession) -> None:
    for n in range(3):
        pipeline.insert(1000 * n, 1000 * n + 1000)
    pipeline.run(spark, maxFilesPerTrigger="1")
    assert pipeline.rows() == (3000, 3000)
    assert len(list((pipeline.checkpoint / "commits").glob("[0-9]*"))) == 3
    # a batch that was committed and not noted
    pipeline.forget_commit(2)
    pipeline.run(spark, maxFilesPerTrigger="1")
    assert pipeline.rows() == (3000, 3000)
    with dl.connect(pipeline.source, engine="duckdb") as session:
        session.sql("UPDATE t SET i = -i WHERE i BETWEEN 1 AND 10; DELETE FROM t WHERE i >= 2990")
    with pytest.raises(Exception, match=r"deleted or updated rows of main\.t"):
        pipeline.run(spark, maxFilesPerTrigger="1")
    pipeline.on_target("CREATE TABLE feed (snapshot_id BIGINT, rowid BIGINT, change_type VARCHAR, i BIGINT)")
    pipeline.run(spark, "feed", readChangeFeed="true", startingVersion="1", maxFilesPerTrigger="1")
    with dl.connect(pipeline.target, engine="duckdb") as session:
        found = session.sql("SELECT change_type, count(*), sum(i) FROM feed GROUP BY ALL ORDER BY ALL").fetchall()
    assert found == [
        ("delete", 10, sum(range(2990, 3000))),
        ("insert", 3000, sum(range(3000))),
        ("update_postimage", 10, -55),
        ("update_preimage", 10, 55),
    ]


@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_a_killed_stream_ends_with_every_row_once(pipeline: Pipeline, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--spark") != "local":
        pytest.skip("the processes of a local Spark are killed")
    steps = (
        ["plan", "write", "ask", "commit"]
        if os.environ.get("DUCKLAKE_LAB_KILLS") == "all"
        else ["plan", "ask", "commit"]
    )
    pipeline.insert(0, 1000)
    for number, step in enumerate(steps, 1):
        _run(pipeline, step)
        assert pipeline.rows() == ((1000, 1000) if step == "commit" else (0, 0)), step
        pipeline.insert(1000 * number, 1000 * number + 1000)
    pipeline.on_target("CREATE TABLE newer (i INTEGER)")
    pipeline.on_target("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    # before 4.2 a query runs the batch that was planned, or all that came since
    for _ in range(2 if SPARK < (4, 2) else 1):
        _run(pipeline, "none")
    everything = 1000 * len(steps) + 1000
    assert pipeline.rows() == (everything, everything)


def _run(pipeline: Pipeline, step: str) -> None:
    arguments = [pipeline.source, pipeline.target, str(pipeline.checkpoint), step]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.killed_stream", *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output, _ = process.communicate(timeout=600)
    assert process.returncode == (0 if step == "none" else -signal.SIGKILL), output
