"""Repairs, migrations and branches that are killed with SIGKILL, at whatever step: the lake is as before, or as after.

`DUCKLAKE_LAB_KILLS=all` kills them before every single thing they ask of the database. `ours` is a server of DuckLake Lab, `quack` any.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.served import served
from tests.interop.test_killed import check_nothing_is_open, chosen
from tests.quack import TOKEN

# not as many as there are kinds: a day takes several of them
pytestmark = pytest.mark.sampled(6, "killed repairs")

KINDS = ["duckdb", "sqlite", "postgres", "quack", "ours"]
#: Tables of a catalog whose rows are compared.
_TABLES = (
    "metadata", "snapshot", "snapshot_changes", "data_file", "delete_file", "table_stats", "table_column_stats", "file_column_stats",
    "schema_versions", "files_scheduled_for_deletion", "inlined_data_tables", "column", "table",
)  # fmt: skip
_FAULTS = (
    # counters of rows: an UPDATE
    "UPDATE {m}.ducklake_table_stats SET next_row_id = 1",
    # a size: a probe finds it
    "UPDATE {m}.ducklake_data_file SET file_size_bytes = 77 WHERE data_file_id = (SELECT min(data_file_id) FROM "
    "{m}.ducklake_data_file)",
    # two delete files of a data file at once: a file is written, and a row goes
    "INSERT INTO {m}.ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id, path, path_is_relative, format, "
    "delete_count, file_size_bytes, footer_size, partial_max) SELECT 77, table_id, begin_snapshot, data_file_id, path, "
    "path_is_relative, format, delete_count, file_size_bytes, footer_size, partial_max FROM {m}.ducklake_delete_file",
    # a row of nothing
    "INSERT INTO {m}.ducklake_snapshot_changes (snapshot_id, changes_made) VALUES (9999, '')",
)


@pytest.fixture
def catalogs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """Makes places for new catalogs, by kind and name; returns their URI."""
    with ExitStack() as stack:

        def make(kind: str, name: str) -> str:
            if kind != "ours":
                return str(request.getfixturevalue("new_catalog")(kind, name))
            request.getfixturevalue("quack_server")  # for its token
            path = str(tmp_path / f"{name}.ours")
            return f"ducklake:{stack.enter_context(served(path, 'localhost', 0, TOKEN))}"

        yield make


Killed = Callable[[str, str, int], tuple[int, str]]


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    """Does some work until a step; returns how it ended, and what it said."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.interop.killed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "QUACK_TOKEN": TOKEN},
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def run(uri: str, work: str, step: int) -> tuple[int, str]:
            print(json.dumps([uri, work, step]), file=process.stdin, flush=True)
            done = json.loads(process.stdout.readline())
            return done["returncode"], done["output"]

        yield run
        process.stdin.close()


def _make(uri: str, data_path: Path, version: str | None = None) -> None:
    with dl.connect(uri, alias="lake", data_path=str(data_path), engine="duckdb", ducklake_version=version) as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (-1, 'kept')")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql("INSERT INTO t SELECT i, 's' || i FROM range(200) r(i); DELETE FROM t WHERE i < 9")
        session.sql("DELETE FROM t WHERE i < 20; ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 4")


def _look(uri: str) -> dict[str, Any]:
    """Return the whole metadata, and the rows at the last snapshots."""
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        newest = session.current_snapshot().snapshot_id
        metadata = {
            name: session.sql(f"FROM __ducklake_metadata_lake.ducklake_{name} ORDER BY ALL").fetchall()
            for name in _TABLES
        }
        rows = [
            session.sql(f"SELECT rowid, i, s FROM t AT (VERSION => {at}) ORDER BY ALL").fetchall()
            for at in range(4, newest + 1)
        ]
        return {"newest": newest, "metadata": metadata, "rows": rows, "version": session.current_lake.version.name}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", range(len(_FAULTS)))
def test_a_repair(kind: str, fault: int, catalogs: Callable[[str, str], str], killed: Killed, tmp_path: Path) -> None:
    uri = catalogs(kind, "lake")
    _make(uri, tmp_path / "d")
    whole = _look(uri)

    def seed() -> dict[str, Any]:
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            session.sql(_FAULTS[fault].format(m="__ducklake_metadata_lake"))
        return _look(uri)

    for _ in range(2):  # the first one may have to raise a counter, too
        ill = seed()
        assert ill["metadata"] != whole["metadata"]
        ended, steps = killed(uri, "repair", 0)
        assert ended == 0, steps
        _check_mended(uri, ill, whole)
    ill, repaired = seed(), 1
    for step in chosen(int(steps)):
        assert killed(uri, "repair", step)[0] == -signal.SIGKILL
        if kind in ("quack", "ours"):
            check_nothing_is_open(uri)
        landed = _look(uri)
        if landed["newest"] == ill["newest"]:
            del landed["metadata"]["metadata"], ill["metadata"]["metadata"]  # which the check changes
            assert landed == ill, step
            ill = _look(uri)
        else:
            _check_mended(uri, ill, whole)
            ill, repaired = seed(), repaired + 1
    assert repaired > 1


def _check_mended(uri: str, ill: dict[str, Any], whole: dict[str, Any]) -> None:
    """Check that a repair is in as a whole; the doctor's other repairs may be in, too."""
    found = _look(uri)
    assert found["newest"] > ill["newest"]
    assert found["rows"][: len(whole["rows"])] == whole["rows"]
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.repair("all", dry_run=False)
        left = session.doctor(deep=True)
        assert not left.is_ill, left.fetchall()


@pytest.mark.parametrize("kind", KINDS)
def test_a_migration(kind: str, catalogs: Callable[[str, str], str], killed: Killed, tmp_path: Path) -> None:
    numbers = iter(range(100))

    def make() -> tuple[str, dict[str, Any]]:
        number = next(numbers)
        uri = catalogs(kind, f"lake_{number}")
        _make(uri, tmp_path / f"d{number}", "1.0")
        return uri, _look(uri)

    uri, before = make()
    ended, steps = killed(uri, "migrate", 0)
    assert ended == 0, steps
    after = _look(uri)
    assert (before["version"], after["version"]) == ("1.0", "1.1") and before["rows"] == after["rows"]
    uri, before = make()
    landed = 0
    for step in chosen(int(steps)):
        assert killed(uri, "migrate", step)[0] == -signal.SIGKILL
        if kind in ("quack", "ours"):
            check_nothing_is_open(uri)
        found = _look(uri)
        if found["version"] == "1.0":
            assert {**found["metadata"], "metadata": None} == {**before["metadata"], "metadata": None}, step
        else:
            with dl.connect(uri, alias="lake", engine="duckdb") as session:
                session.sql("CREATE SCHEMA other; CREATE SCHEMA other.deep; CREATE TABLE other.deep.w AS FROM t")
                assert not session.doctor(deep=True).is_ill
        assert found["rows"] == before["rows"], step
        if found["version"] == "1.1":
            uri, before = make()
            landed += 1
    assert landed


@pytest.mark.parametrize("kind", KINDS)
def test_a_branch(kind: str, catalogs: Callable[[str, str], str], killed: Killed, tmp_path: Path) -> None:
    uri = catalogs(kind, "lake")
    _make(uri, tmp_path / "d")
    ended, steps = killed(uri, "branch", 0)
    assert ended == 0, steps
    rows = _look(uri)["rows"]
    landed = 0
    for step in chosen(int(steps)):
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            if list(session.branches()):
                session.drop_branch("aside")
        assert killed(uri, "branch", step)[0] == -signal.SIGKILL
        if kind in ("quack", "ours"):
            check_nothing_is_open(uri)
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            listed = list(session.branches())
            landed += bool(listed)
            if not listed:
                session.branch("aside")
            session.switch("aside")
            assert session.sql("SELECT rowid, i, s FROM t ORDER BY ALL").fetchall() == rows[-1]
            assert not session.doctor(deep=True).is_ill
        assert _look(uri)["rows"] == rows
    assert landed
