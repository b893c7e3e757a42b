"""Scans that list a folder rather than each of its files: the same rows, whatever else lies there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.spark import listing, reader
from ducklake_lab.spark.runtime import is_connect
from tests.spark.lakes import ReferenceLake
from tests.spark.own_session import own_spark  # noqa: F401

pytestmark = pytest.mark.sampled(5)

_FILES = "CALL l.set_option('data_inlining_row_limit', 0)"
_INSERTS = [f"INSERT INTO t VALUES ({i}, 'p{i % 3}')" for i in range(6)]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Lists whatever it saves, where Spark lists once."""
    if is_connect(spark):
        pytest.skip("plans of Spark Connect list when they run")
    monkeypatch.setattr(listing, "_BY_PATH", (100, 100))


@pytest.fixture
def lake(tmp_path: Path) -> ReferenceLake:
    lake = ReferenceLake(tmp_path / "100% {odd} [lake]")
    lake.run(_FILES, "CREATE TABLE t(i INTEGER, s VARCHAR)", *_INSERTS)
    return lake


def _found(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def _paths(plan: ScanPlan) -> list[Path]:
    return [Path(file.path) for file in plan.files]


def _lists(frame: DataFrame) -> int:
    """Count the files that Spark has listed for a DataFrame."""
    return len(frame.inputFiles())


def test_a_folder_with_nothing_else_is_read_as_it_is(
    spark: SparkSession, lake: ReferenceLake, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = reader.read(spark, lake.plan("t"))
    frame.explain()
    assert "file_path" not in capsys.readouterr().out
    assert _found(frame) == sorted(lake.run("FROM t"))


def test_other_files_are_left_out(spark: SparkSession, lake: ReferenceLake) -> None:
    plan = lake.plan("t")
    first = _paths(plan)[0]
    shutil.copy(first, first.with_name("ducklake-of-nobody.parquet"))
    (first.parent / "sub").mkdir()
    shutil.copy(first, first.parent / "sub" / first.name)
    frame = reader.read(spark, plan)
    assert _lists(frame) == 8
    assert _found(frame) == sorted(lake.run("FROM t"))


def test_every_snapshot_has_its_own_files(spark: SparkSession, lake: ReferenceLake) -> None:
    lake.run(
        "DELETE FROM t WHERE i = 1", "UPDATE t SET s = 'new' WHERE i = 2", "CALL ducklake_merge_adjacent_files('l')"
    )
    for snapshot in range(2, lake.run("SELECT max(snapshot_id) FROM l.snapshots()")[0][0] + 1):
        expected = sorted(lake.run(f"FROM t AT (VERSION => {snapshot})"))
        for virtual in (False, True):
            found = _found(reader.read(spark, lake.plan("t", snapshot), virtual=virtual))
            assert [row[:2] for row in found] == expected


def test_folders_of_partitions_name_no_columns(spark: SparkSession, tmp_path: Path) -> None:
    lake = ReferenceLake(tmp_path)
    lake.run(_FILES, "CREATE TABLE t(i INTEGER, s VARCHAR)", "ALTER TABLE t SET PARTITIONED BY (s)", *_INSERTS)
    lake.run("INSERT INTO t VALUES (9, 'it''s')", "INSERT INTO t VALUES (10, 'p1-x')")
    plan = lake.plan("t")
    assert len({path.parent for path in _paths(plan)}) == 5
    for path in _paths(plan):
        shutil.copy(path, path.with_name("other.parquet"))
    assert _found(reader.read(spark, plan)) == sorted(lake.run("FROM t"))


@pytest.mark.parametrize("name", ["_hidden.parquet", ".hidden.parquet", "hidden._COPYING_"])
def test_names_that_spark_leaves_out_are_read(name: str, spark: SparkSession, lake: ReferenceLake) -> None:
    path = _paths(lake.plan("t"))[0]
    path.rename(path.with_name(name))
    lake.run(f"UPDATE __ducklake_metadata_l.ducklake_data_file SET path = '{name}' WHERE path = '{path.name}'")
    assert _found(reader.read(spark, lake.plan("t"))) == sorted(lake.run("FROM t"))


def test_links_are_followed(spark: SparkSession, lake: ReferenceLake, tmp_path: Path) -> None:
    first, second, *_ = _paths(lake.plan("t"))
    first.rename(tmp_path / "elsewhere.parquet")
    first.symlink_to(tmp_path / "elsewhere.parquet")
    os.symlink(second, second.with_name("link.parquet"))
    assert _found(reader.read(spark, lake.plan("t"))) == sorted(lake.run("FROM t"))


def test_the_log_of_a_stream_hides_nothing(spark: SparkSession, lake: ReferenceLake) -> None:
    first = _paths(lake.plan("t"))[0]
    folder = first.parent / "_spark_metadata"
    folder.mkdir()
    (folder / "0").write_text("v1\n")
    shutil.copy(first, first.with_name("of-nobody.parquet"))
    frame = reader.read(spark, lake.plan("t"))
    assert _lists(frame) == 7
    assert _found(frame) == sorted(lake.run("FROM t"))


def test_a_missing_file_is_an_error(spark: SparkSession, lake: ReferenceLake) -> None:
    path = _paths(lake.plan("t"))[3]
    path.unlink()
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND") as found:
        reader.read(spark, lake.plan("t"))
    assert path.name in str(found.value)


def test_files_from_elsewhere_are_read_by_their_paths(spark: SparkSession, lake: ReferenceLake, tmp_path: Path) -> None:
    lake.run(
        f"COPY (SELECT 9::INTEGER AS i, 'added' AS s) TO '{tmp_path}/added.parquet'",
        f"CALL ducklake_add_data_files('l', 't', '{tmp_path}/added.parquet')",
    )
    assert _found(reader.read(spark, lake.plan("t"))) == sorted(lake.run("FROM t"))


def test_conditions_that_cost_more_than_they_save_are_not_made(
    spark: SparkSession, lake: ReferenceLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = lake.plan("t")
    first = _paths(plan)[0]
    shutil.copy(first, first.with_name("other.parquet"))
    monkeypatch.setattr(listing, "_PER_ROW", 1000)
    frame = reader.read(spark, plan)
    assert _lists(frame) == 6
    assert _found(frame) == sorted(lake.run("FROM t"))
