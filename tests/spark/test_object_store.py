"""Spark writes to an object store: under final names, in few requests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from ducklake_lab.storage import Storage
from tests.faulty_store import WRITES, FaultyStore, How, faulty_store

pytestmark = pytest.mark.sampled(5)

_SECRET = "CREATE SECRET store (TYPE s3, KEY_ID 'k', SECRET 's', REGION 'us-east-1')"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyStore]:
    with faulty_store("made-by-spark", "copied-by-spark") as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        yield store


def test_a_file_takes_few_requests(spark: SparkSession, store: FaultyStore, tmp_path: Path) -> None:
    frame = spark.range(1000).selectExpr("id AS i", "CAST(id % 3 AS STRING) AS s").repartition(12)
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", data_path="s3://made-by-spark/lake/", engine="spark", spark=spark
    ) as session:
        session.sql(_SECRET)
        session.sql("CREATE TABLE t (i BIGINT, s VARCHAR)")
        store.requests.clear()
        session.write(frame, "t")
        assert store.requests["PUT"] == 12
        assert store.requests.total() < 3 * 12
        paths = {file.path for file in session.table("t").files()}
        objects = Storage().list_files("s3://made-by-spark/lake/")
    assert len(objects) == 12 and {path.rpartition("/")[2] for path in objects} == {p.rpartition("/")[2] for p in paths}
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        session.sql(_SECRET)
        rows = session.sql("SELECT s, count(*), sum(i)::BIGINT FROM t GROUP BY s ORDER BY s").fetchall()
    assert rows == [(str(k), len(range(k, 1000, 3)), sum(range(k, 1000, 3))) for k in range(3)]


def test_nothing_stays_of_a_failed_write(spark: SparkSession, store: FaultyStore, tmp_path: Path) -> None:
    frame = spark.range(100).selectExpr("CASE WHEN id < 99 THEN id END AS i").repartition(4)
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", data_path="s3://made-by-spark/failing/", engine="spark", spark=spark
    ) as session:
        session.sql(_SECRET)
        session.sql("CREATE TABLE t (i BIGINT NOT NULL)")
        with pytest.raises(dl.ConstraintError, match="NOT NULL"):
            session.write(frame, "t")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
        assert Storage().list_files("s3://made-by-spark/failing/") == []


@pytest.mark.parametrize("how", [403, "lose"])
def test_refused_files_of_workers_are_never_committed(
    spark: SparkSession, store: FaultyStore, tmp_path: Path, how: How
) -> None:
    frame = spark.range(1000).selectExpr("id AS i", "CAST(id % 3 AS STRING) AS s").repartition(2)
    folder, uri = f"s3://made-by-spark/{uuid4().hex}/", f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, data_path=folder, alias="lake", engine="spark", spark=spark) as session:
        session.sql(_SECRET)
        session.sql("CREATE TABLE t (i BIGINT, s VARCHAR)")
        session.write(frame, "t")
        files, newest = Storage().list_files(folder), session.current_snapshot()
        statements = (
            lambda: session.write(frame, "t"),
            lambda: session.write(frame, "fresh", mode="create"),
            lambda: session.sql("CALL lake.merge_adjacent_files('t')"),
        )
        # lost answers are waited for, again and again
        for statement in statements if how == 403 else statements[:1]:
            with store.failing(*WRITES, how=how):
                _refused(statement, "cannot be written")
            assert store.failed and session.current_snapshot() == newest
            # a task that had begun may end after its job has failed: what it leaves is an orphan
            assert set(Storage().list_files(folder)) >= set(files)
        with store.failing("GET", how="cut"):
            _refused(lambda: session.sql("CALL lake.merge_adjacent_files('t')"), "cannot be read")
        session.sql("CALL lake.merge_adjacent_files('t')")
        session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
        (file,) = session.table("t").files()
        assert file.path in Storage().list_files(folder) and not set(files) & set(Storage().list_files(folder))


def test_refused_delete_files_of_workers_are_never_committed(
    spark: SparkSession, store: FaultyStore, tmp_path: Path
) -> None:
    frame = spark.range(1000).selectExpr("id AS i", "CAST(id % 3 AS STRING) AS s").repartition(2)
    folder, uri = f"s3://made-by-spark/{uuid4().hex}/", f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(
        uri, data_path=folder, alias="lake", engine="spark", spark=spark, limits=Limits(deletions=10)
    ) as session:
        session.sql(_SECRET)
        session.sql("CREATE TABLE t (i BIGINT, s VARCHAR)")
        session.write(frame, "t")
        try:
            session.sql("SELECT sum(i + 1) FROM t").fetchall()
        except dl.SparkError as error:
            if "S3AFileSystem not found" in str(error):
                pytest.skip("hadoop-aws is not among Spark's packages")
            raise
        files, newest = Storage().list_files(folder), session.current_snapshot()
        for statement in ("UPDATE t SET s = 'x' WHERE i < 500", "DELETE FROM t WHERE i < 500"):
            with store.failing(*WRITES, how=403):
                _refused(partial(session.sql, statement), "cannot be written")
            assert store.failed and session.current_snapshot() == newest
            # a task that had begun may end after its job has failed: what it leaves is an orphan
            assert set(Storage().list_files(folder)) >= set(files)
        session.sql("DELETE FROM t WHERE i < 500; UPDATE t SET s = 'x' WHERE i < 700")
        found = session.sql("SELECT count(i), count(*) FILTER (s = 'x') FROM t").fetchall()
        assert found == [(500, 200)]


def test_a_copy_of_spark_that_is_refused_is_one_line(spark: SparkSession, store: FaultyStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="spark", spark=spark) as session:
        session.sql(_SECRET)
        session.sql("CREATE TABLE t AS SELECT i FROM range(1000) r(i)")
        # a bucket of its own: Hadoop keeps the connection to that of another test's store
        for place in (f"{tmp_path}/file/out", "s3://copied-by-spark/out"):
            with store.failing(*WRITES, how=403), pytest.raises(dl.DuckLakeError) as caught:
                session.sql(f"COPY (FROM t) TO '{place}' (FORMAT parquet, PER_THREAD_OUTPUT true)")
            said = str(caught.value)
            assert "\n" not in said and "Py4J" not in said
            if place.startswith("s3:") and "S3AFileSystem not found" not in said:
                assert store.failed and "Status Code: 403" in said


@pytest.mark.slow
def test_with_hadoop_aws() -> None:
    """Runs what needs Hadoop's S3A in a Spark that has it: its archives are too large for that of all tests."""
    jars = sorted(str(path) for path in Path.home().glob(".ivy2*/jars/*.jar"))
    if not any("hadoop-aws" in jar for jar in jars):
        pytest.skip("hadoop-aws is not in the cache of Ivy")
    names = (
        "test_refused_delete_files_of_workers_are_never_committed",
        "test_a_copy_of_spark_that_is_refused_is_one_line",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *(f"{__file__}::{name}" for name in names)],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(jars)} pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout[-5000:]


def _refused(statement: Callable[[], object], said: str) -> None:
    """A statement fails with one line of ours."""
    with pytest.raises(dl.DataFileError, match=said) as caught:
        statement()
    assert "\n" not in str(caught.value)
