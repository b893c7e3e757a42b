"""Processes that merge at once, and ones that are killed: each change is in the lake exactly once, or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import ducklake_lab as dl

_MERGE = """
import sys, ducklake_lab as dl
with dl.connect(sys.argv[1], alias="lake", engine="duckdb") as session:
    session.merge(sys.argv[2])
"""
#: Merges, and is killed where the function that the words name is called.
_KILLED = """
import os, sys, importlib, ducklake_lab as dl
module, name = sys.argv[3].rsplit(".", 1)
setattr(importlib.import_module(module), name, lambda *given, **named: os._exit(9))
with dl.connect(sys.argv[1], alias="lake", engine="duckdb") as session:
    session.merge(sys.argv[2])
"""
_PEOPLE = 8

pytestmark = pytest.mark.sampled(3)


def _begun(script: str, uri: str, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, uri, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _ended(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    texts = [process.communicate(timeout=240)[0] for process in processes]
    return [(process.returncode, text[-500:]) for process, text in zip(processes, texts, strict=True)]


def _merged_at_once(uri: str, names: Sequence[str]) -> None:
    """Merge by a process for each name; a DuckDB file has one process at a time, so that others come again."""
    left = list(names)
    while left:
        found = _ended([_begun(_MERGE, uri, name) for name in left])
        failed = [(name, text) for name, (code, text) in zip(left, found, strict=True) if code]
        assert all("is in use by" in text for _, text in failed) and len(failed) < len(left), failed
        left = [name for name, _ in failed]


def _lake(uri: str, folder: Path) -> dl.Session:
    session = dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb")
    session.sql("CREATE TABLE t AS SELECT i, 0 AS a FROM range(800) r(i)")
    return session


@pytest.mark.sampled(2)
def test_eight_people_merge_at_once(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with _lake(uri, tmp_path) as session:
        for number in range(_PEOPLE):
            session.branch(f"b{number}")
            session.switch(f"b{number}")
            low = 100 * number
            session.sql(
                f"UPDATE t SET a = {number + 1} WHERE i BETWEEN {low} AND {low + 49}; DELETE FROM t WHERE i = {low + 99}"
            )
            session.sql(f"INSERT INTO t SELECT {1000 * (number + 1)} + i, -1 FROM range(40) r(i)")
            session.switch(None)
    _merged_at_once(uri, [f"b{number}" for number in range(_PEOPLE)])
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        counts = "SELECT count(*), count(DISTINCT i), count(DISTINCT rowid), sum(a) FROM t"
        rows = 800 - _PEOPLE + 40 * _PEOPLE
        assert session.sql(counts).fetchall() == [(rows, rows, rows, 50 * sum(range(1, 9)) - 40 * _PEOPLE)]


@pytest.mark.sampled(2)
def test_one_branch_is_merged_once(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with _lake(uri, tmp_path) as session:
        session.branch("fix")
        session.switch("fix")
        session.sql("INSERT INTO t SELECT 1000 + i, -1 FROM range(500) r(i); INSERT INTO t VALUES (5000, -1)")
        session.switch(None)
    _merged_at_once(uri, ["fix"] * 4)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT count(*), count(DISTINCT i) FROM t").fetchall() == [(1301, 1301)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "step",
    [
        "ducklake_lab.merging.rows.take_over",
        "ducklake_lab.merging.rows.stage_written",
        "ducklake_lab.branches.merge.stage_arrivals",
        "ducklake_lab.transaction.commit.CommitWriter",
        "ducklake_lab.transaction.commit._write_beside",
    ],
)
def test_a_merge_that_is_killed_changed_nothing(lake_uri: Callable[..., str], tmp_path: Path, step: str) -> None:
    uri = lake_uri()
    with _lake(uri, tmp_path) as session:
        session.branch("fix")
        session.switch("fix")
        session.sql("INSERT INTO t SELECT 1000 + i, -1 FROM range(500) r(i); UPDATE t SET a = 1 WHERE i < 300")
        session.switch(None)
        before = session.current_snapshot().snapshot_id
    ((code, text),) = _ended([_begun(_KILLED, uri, "fix", step)])
    assert code == 9, text
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.current_snapshot().snapshot_id == before
        assert session.sql("SELECT count(*), sum(a) FROM t").fetchall() == [(800, 0)]
        session.merge("fix")
        assert session.sql("SELECT count(*), sum(a) FROM t").fetchall() == [(1300, 300 - 500)]
        session.sql("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
        assert session.sql("SELECT count(*), sum(a) FROM t").fetchall() == [(1300, 300 - 500)]
