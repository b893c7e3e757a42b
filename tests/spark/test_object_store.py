"""Spark writes to an object store: under final names, in few requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.storage import Storage
from tests.object_store import ObjectStore, object_store

_SECRET = "CREATE SECRET store (TYPE s3, KEY_ID 'k', SECRET 's', REGION 'us-east-1')"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store("made-by-spark") as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        yield store


def test_a_file_takes_few_requests(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
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


def test_nothing_stays_of_a_failed_write(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
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
