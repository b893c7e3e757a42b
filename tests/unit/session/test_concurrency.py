"""Two sessions on one lake: what goes together is committed, what does not is refused and leaves nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.transaction import commit

Pair = tuple[dl.Session, dl.Session]


@pytest.fixture
def pair(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[Pair]:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as one, dl.connect(uri, alias="lake") as two:
        one.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2)")
        yield one, two


def test_inserts_go_together_with_unique_row_ids(pair: Pair) -> None:
    one, two = pair
    one.sql("BEGIN; INSERT INTO t VALUES (10), (11)")
    two.sql("BEGIN; INSERT INTO t VALUES (20)")
    two.sql("COMMIT")
    one.sql("COMMIT")
    assert one.sql("SELECT rowid, i FROM t ORDER BY rowid").fetchall() == [(0, 1), (1, 2), (2, 20), (3, 10), (4, 11)]
    assert two.current_snapshot().snapshot_id == 4


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("UPDATE t SET i = 5 WHERE i = 1", "DELETE FROM t WHERE i = 1"),
        ("DELETE FROM t WHERE i = 1", "INSERT INTO t VALUES (3)"),
        ("INSERT INTO t VALUES (3)", "DROP TABLE t"),
        ("INSERT INTO t VALUES (3)", "ALTER TABLE t ADD COLUMN j INTEGER"),
        ("CREATE TABLE u (i INTEGER)", "CREATE TABLE u (i INTEGER)"),
        ("ALTER TABLE t RENAME COLUMN i TO j", "ALTER TABLE t ADD COLUMN k INTEGER"),
    ],
)
def test_what_excludes_each_other_is_refused(pair: Pair, ours: str, theirs: str) -> None:
    one, two = pair
    one.sql(f"BEGIN; {ours}")
    two.sql(theirs)
    with pytest.raises(dl.TransactionConflictError, match="snapshot 3"):
        one.sql("COMMIT")
    assert one.current_snapshot().snapshot_id == 3
    one.sql("SELECT 1")


def test_commits_wait_for_each_other_rather_than_lose(
    lake_uri: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, lost = lake_uri(), []

    def note(error: Exception) -> bool:
        lost.append(str(error))
        return is_race(error)

    is_race = commit._is_race
    monkeypatch.setattr(commit, "_is_race", note)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER)")

    def insert(number: int) -> None:
        with dl.connect(uri, alias="lake") as session:
            for i in range(8):
                session.sql(f"INSERT INTO t VALUES ({number * 8 + i})")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(4)))
    with dl.connect(uri, alias="lake") as session:
        assert session.sql("SELECT count(*), sum(i) FROM t").fetchall() == [(32, 496)]
        assert session.current_snapshot().snapshot_id == 33
    if "sqlite" in uri or "postgres" in uri:  # a DuckDB has no lock that its transactions could wait for
        assert lost == []


def test_a_file_that_is_being_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:sqlite:{tmp_path}/m.sqlite", alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        with closing(sqlite3.connect(tmp_path / "m.sqlite")) as other:
            other.execute("BEGIN EXCLUSIVE")
            for statement in ("INSERT INTO t VALUES (1)", "FROM t", "FROM lake.snapshots()"):
                with pytest.raises(dl.CatalogLockedError, match="is being written by another process"):
                    session.sql(statement).fetchall()
        session.sql("INSERT INTO t VALUES (1)")
        assert session.sql("FROM t").fetchall() == [(1,)]
