"""Reverts on Spark do what reverts in process do, with values of every type that Spark keeps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from tests.type_matrix import VALUES

pytestmark = pytest.mark.sampled(4)

#: Types of which Spark keeps less than the value, or that are not inlined and compared alike.
_CUT = ("timestamp_ns", "variant")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with `t`: an update at 3, then changes of the same and other rows, a dropped column and maintenance."""
    folder = tmp_path / "made"
    with dl.connect(f"ducklake:{folder}/lake.ducklake", alias="lake", engine="duckdb", create_folders=True) as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR, m MAP(VARCHAR, INTEGER), n DOUBLE)")
        session.sql("INSERT INTO t SELECT range, 'a' || range % 7, MAP {'k': range % 3}, range / 2 FROM range(3000)")
        session.sql("UPDATE t SET s = 'then', m = NULL WHERE i < 900")
        session.sql("DELETE FROM t WHERE i BETWEEN 500 AND 599")
        session.sql("UPDATE t SET s = 'now' WHERE i BETWEEN 100 AND 119")
        session.sql("UPDATE t SET n = -1 WHERE i BETWEEN 200 AND 299")
        session.sql("INSERT INTO t VALUES (9000, 'few', NULL, 0)")
        session.sql("ALTER TABLE t DROP COLUMN n")
        session.sql("UPDATE t SET s = 'later' WHERE i > 2000")
        session.sql("DELETE FROM t WHERE i BETWEEN 2900 AND 2950")
        session.sql("CALL lake.merge_adjacent_files()")
    return folder


def opened(lake: Path, folder: Path, engine: Any, spark: SparkSession) -> dl.Session:
    shutil.copytree(lake, folder)
    return dl.connect(
        f"ducklake:{folder}/lake.ducklake",
        alias="lake",
        data_path=f"{folder}/lake.ducklake.files",
        override_data_path=True,
        engine=engine,
        spark=spark,
    )


def results(lake: Path, folder: Path, engine: Any, spark: SparkSession) -> Iterator[Any]:
    """Yield what some reverts raise, and all rows after each."""
    with opened(lake, folder, engine, spark) as session:
        for at, rule in ((3, None), (3, "keep"), (8, None), (10, None)):
            try:
                made = session.revert(at, on_conflict=rule)
                yield made is None
            except dl.RevertConflictError as error:
                yield error.total, [(c.row_id, c.column, c.base, c.then, c.now) for c in error.conflicts]
            yield session.sql("SELECT rowid, t::VARCHAR FROM t ORDER BY rowid", engine="duckdb").fetchall()


def test_spark_reverts_as_a_process_does(lake: Path, tmp_path: Path, spark: SparkSession) -> None:
    expected = list(results(lake, tmp_path / "here", "duckdb", spark))
    found = list(results(lake, tmp_path / "spark", "spark", spark))
    assert len(expected) == len(found)
    for here, there in zip(expected, found, strict=True):
        assert there == here


def test_values_of_every_type(tmp_path: Path, spark: SparkSession) -> None:
    kinds = {kind: value for kind, value in VALUES.items() if not any(cut in kind for cut in _CUT)}
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="spark", spark=spark) as session:
        columns = {kind.partition("(")[0] + f"_{i}": value for i, (kind, value) in enumerate(kinds.items())}
        listed = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())

        def run(sql: str) -> list[Any]:
            return session.sql(sql, engine="duckdb").fetchall()

        run(f"CREATE TABLE t (i INTEGER, {listed})")
        values = ", ".join(f"CAST({found[0]} AS {kind})" for kind, found in columns.values())
        run(f"INSERT INTO t SELECT range, {values} FROM range(30)")
        before = run("SELECT rowid, t::VARCHAR FROM t ORDER BY rowid")
        run(f"UPDATE t SET {', '.join(f'{name} = NULL' for name in columns)} WHERE i < 15")
        run("DELETE FROM t WHERE i BETWEEN 10 AND 20")
        made = session.current_snapshot().snapshot_id
        session.revert(made)
        session.revert(made - 1)
        assert run("SELECT rowid, t::VARCHAR FROM t ORDER BY rowid") == before


def test_values_that_spark_cuts_are_refused(tmp_path: Path, spark: SparkSession) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="spark", spark=spark) as session:
        session.sql("CREATE TABLE n AS SELECT TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS at FROM range(20)")
        session.sql("DELETE FROM n")
        made = session.current_snapshot().snapshot_id
        with pytest.raises(dl.UnsupportedFeatureError, match="Spark cuts values of at, which is TIMESTAMP_NS"):
            session.revert(made)
        session.engine = "duckdb"
        session.revert(made)
        assert session.sql("SELECT DISTINCT n.at::VARCHAR FROM n").fetchall() == [("2020-01-01 00:00:00.123456789",)]
