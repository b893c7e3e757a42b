"""Many processes commit to one lake, half of them the reference: nothing is lost, nothing is there twice.

`DUCKLAKE_LAB_WRITERS=8x50` runs 8 processes with 50 commits each rather than a few.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.model.changes import parse_changes
from tests.interop.comparing import attach, detach
from tests.interop.worker import changes

pytestmark = pytest.mark.sampled(5)

WRITERS, COMMITS = map(int, os.environ.get("DUCKLAKE_LAB_WRITERS", "4x10").split("x"))
#: On MySQL all are ours: the reference does not hold what it says there.
KINDS = ("sqlite", "postgres", "mysql", "quack")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_commits_are_exact(
    kind: str, new_catalog: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (worker INTEGER, n INTEGER); CREATE TABLE d (worker INTEGER, n INTEGER)")
        for worker in range(WRITERS):
            for start in range(0, COMMITS // 5, 10):
                values = ", ".join(f"({worker}, {n})" for n in range(start, min(start + 10, COMMITS // 5)))
                session.sql(f"INSERT INTO d VALUES {values}")
        before = session.current_snapshot().snapshot_id
    reports = _run(uri, kind)
    done = sum(report["commits"] for report in reports)
    inserted = sum(report["rows"] for report in reports)
    assert done == WRITERS * COMMITS
    with dl.connect(uri, alias="lake") as session:
        ids = [entry.info.snapshot_id for entry in session.snapshots()]
        assert ids == list(range(before + done + 1))
        rows = session.sql("SELECT rowid, worker, n FROM t").fetchall()
        assert len(rows) == inserted
        assert sorted(row[0] for row in rows) == list(range(inserted))
        assert sorted(row[1:] for row in rows) == sorted(_expected_rows())
        assert session.sql("SELECT count(*) FROM d").fetchall() == [(0,)]
        assert {info.table.name for info in session.tables()} == {"t", "d"} | _expected_tables()
        for report in reports:
            for refusal in report["refused"]:
                if report["role"] == "ours" and refusal.startswith("Transaction conflict"):
                    _check_real(session, refusal)
    if kind != "mysql":
        attach(reference, uri)
        assert reference.execute("SELECT count(*), count(DISTINCT rowid), max(rowid) FROM t").fetchall() == [
            (inserted, inserted, inserted - 1)
        ]
        stats = "SELECT record_count, next_row_id FROM __ducklake_metadata_lake.ducklake_table_stats WHERE table_id = 1"
        assert reference.execute(stats).fetchall() == [(inserted, inserted)]
        detach(reference)


def _run(uri: str, kind: str) -> list[dict[str, Any]]:
    workers = []
    for worker in range(WRITERS):
        role = "theirs" if worker % 2 and kind != "mysql" else "ours"
        command = [sys.executable, "-m", "tests.interop.worker", role, uri, str(worker), str(COMMITS)]
        workers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    reports = []
    for process in workers:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        reports.append(json.loads(output))
    return reports


def _expected_rows() -> list[tuple[int, int]]:
    found = []
    for worker in range(WRITERS):
        for statement, _ in changes(worker, COMMITS):
            if statement.startswith("INSERT"):
                found += [(int(a), int(b)) for a, b in re.findall(r"\((\d+), (\d+)\)", statement)]
    return found


def _expected_tables() -> set[str]:
    tables: set[str] = set()
    for worker in range(WRITERS):
        for statement, _ in changes(worker, COMMITS):
            name = statement.split()[2]
            if statement.startswith("CREATE"):
                tables.add(name)
            elif statement.startswith("DROP"):
                tables.discard(name)
    return tables


def _check_real(session: dl.Session, refusal: str) -> None:
    """The snapshot that a conflict names did what the conflict says."""
    number = re.search(r"in snapshot (\d+)", refusal)
    assert number is not None, refusal
    (entry,) = [e for e in session.snapshots() if e.info.snapshot_id == int(number[1])]
    kinds = {change.kind for change in parse_changes(entry.info.changes_made)}
    assert "deleted from it" in refusal, refusal
    assert kinds & {"inlined_delete", "deleted_from_table"}, (refusal, entry.info.changes_made)
