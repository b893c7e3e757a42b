from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ducklake_lab.files.options import DeleteOptions
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.planner import with_deletes
from ducklake_lab.spark import reader
from ducklake_lab.spark.deletes import write_deletes
from tests.spark.lakes import ReferenceLake
from tests.spark.own_session import own_spark  # noqa: F401

pytestmark = pytest.mark.sampled(5)


def _lake(folder: Path) -> ReferenceLake:
    lake = ReferenceLake(folder)
    lake.run(
        "CREATE TABLE t(i INTEGER)",
        "INSERT INTO t FROM range(100)",
        "INSERT INTO t FROM range(100, 200)",
        "DELETE FROM t WHERE i < 30",
        "DELETE FROM t WHERE i IN (40, 41)",
        "INSERT INTO t VALUES (1000)",
    )
    return lake


def _by_id(plan: ScanPlan) -> dict[int, ScanFile]:
    return {file.data_file.data_file_id: file for file in plan.files}


@pytest.mark.anywhere
def test_few_positions_are_inlined_and_many_go_to_a_file(spark: SparkSession, tmp_path: Path) -> None:
    plan = _lake(tmp_path).plan("t")
    first, second = sorted(_by_id(plan))
    matched = reader.read(spark, plan, virtual=True).where("i BETWEEN 42 AND 60 OR i IN (105, 103) OR i = 1000")
    small, large = sorted(
        write_deletes(spark, matched.union(matched), _by_id(plan), plan.data_path, DeleteOptions(10), 99),
        key=lambda d: d.delete_count,
    )
    assert (small.data_file_id, small.path, small.positions) == (second, None, (3, 5))
    # the delete file that is replaced comes along; what the catalog has deleted stays there, and only there
    assert (large.data_file_id, large.delete_count, large.positions) == (first, 30 + 19, ())
    assert large.path is not None and large.path.endswith("-delete.parquet")
    table = pq.read_table(plan.data_path + large.path)
    assert table.column("pos").to_pylist() == [*range(30), *range(42, 61)]
    assert set(table.column("file_path").to_pylist()) == {_by_id(plan)[first].path}
    ids = [field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(plan.data_path + large.path)]
    # it replaces an older delete file, so that it says of each position which snapshot deleted it
    assert ids == [b"2147483646", b"2147483645", b"2147483539"]
    assert large.file_size_bytes == Path(plan.data_path + large.path).stat().st_size
    assert large.footer_size == pq.read_metadata(plan.data_path + large.path).serialized_size
    assert all(path.is_file() for path in Path(plan.data_path).iterdir())

    written = {deletes.data_file_id: deletes for deletes in (small, large)}
    files = [with_deletes(file, written[file.data_file.data_file_id], plan.data_path) for file in plan.files]
    left = reader.read(spark, replace(plan, files=tuple(files), inlined=None)).collect()
    assert sorted(row["i"] for row in left) == [*range(30, 40), *range(61, 103), 104, *range(106, 200)]


@pytest.mark.anywhere
def test_executors_write_vectors_and_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    plan = _lake(tmp_path).plan("t")
    first, second = sorted(_by_id(plan))
    matched = reader.read(spark, plan, virtual=True).where("i > 50")
    vectors = DeleteOptions(0, vectors=True)
    written = {d.data_file_id: d for d in write_deletes(spark, matched, _by_id(plan), plan.data_path, vectors, 99)}
    # of the first file the catalog has deletions that are newer than its delete file
    assert [written[file_id].format for file_id in (first, second)] == ["parquet", "puffin"]
    files = [with_deletes(file, written[file.data_file.data_file_id], plan.data_path) for file in plan.files]
    left = reader.read(spark, replace(plan, files=tuple(files), inlined=None)).collect()
    assert sorted(row["i"] for row in left) == [*range(30, 40), *range(42, 51)]

    # since 1.1 a vector says which snapshot deleted what
    vectors = DeleteOptions(0, vectors=True, vectors_by_snapshot=True)
    written = {d.data_file_id: d for d in write_deletes(spark, matched, _by_id(plan), plan.data_path, vectors, 99)}
    assert [(written[at].format, written[at].partial_max) for at in (first, second)] == [
        ("puffin", 99),
        ("puffin", None),
    ]
    files = [with_deletes(file, written[file.data_file.data_file_id], plan.data_path) for file in plan.files]
    assert sorted(map(tuple, reader.read(spark, replace(plan, files=tuple(files), inlined=None)).collect())) == sorted(
        map(tuple, left)
    )


@pytest.mark.anywhere
def test_what_is_deleted_already_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    plan = _lake(tmp_path).plan("t")
    first = min(_by_id(plan))
    again = spark.createDataFrame([(first, 3), (first, 40)], "_ducklake_file_id bigint, _ducklake_position bigint")
    assert write_deletes(spark, again, _by_id(plan), plan.data_path, DeleteOptions(0), 99) == []
    more = again.union(spark.createDataFrame([(first, 99)], again.schema))
    (deletes,) = write_deletes(spark, more, _by_id(plan), plan.data_path, DeleteOptions(1), 99)
    assert deletes.positions == (99,)
