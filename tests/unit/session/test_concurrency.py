"""Two sessions on one lake: what goes together is committed, what does not is refused and leaves nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.session.transactions import transactions
from ducklake_lab.transaction import commit
from ducklake_lab.transaction.transaction import Transaction

pytestmark = pytest.mark.sampled(3)

Pair = tuple[dl.Session, dl.Session]


@pytest.fixture
def pair(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[Pair]:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as one, dl.connect(uri, alias="lake") as two:
        one.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2)")
        yield one, two


@pytest.mark.every_catalog
def test_inserts_go_together_with_unique_row_ids(pair: Pair) -> None:
    one, two = pair
    one.sql("BEGIN; INSERT INTO t VALUES (10), (11)")
    two.sql("BEGIN; INSERT INTO t VALUES (20)")
    two.sql("COMMIT")
    one.sql("COMMIT")
    assert one.sql("SELECT rowid, i FROM t ORDER BY rowid").fetchall() == [(0, 1), (1, 2), (2, 20), (3, 10), (4, 11)]
    assert two.current_snapshot().snapshot_id == 4


@pytest.mark.slow
def test_new_rows_of_a_merge_follow_those_of_others(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    interrupted(monkeypatch, lambda: two.sql("INSERT INTO t VALUES (20)"))
    one.sql("MERGE INTO t USING (VALUES (2), (30)) s(i) USING (i) WHEN NOT MATCHED THEN INSERT")
    assert one.sql("SELECT rowid, i FROM t ORDER BY rowid").fetchall() == [(0, 1), (1, 2), (2, 20), (3, 30)]
    one.sql(
        "MERGE INTO t USING (VALUES (2), (40)) s(i) USING (i) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
    )
    expected = [(0, 1), (1, 2), (2, 20), (3, 30), (4, 40)]
    assert one.sql("SELECT rowid, i FROM t ORDER BY rowid").fetchall() == expected
    two.sql("INSERT INTO t VALUES (50)")
    assert two.sql("SELECT rowid, i FROM t ORDER BY rowid").fetchall() == [*expected, (5, 50)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("UPDATE t SET i = 5 WHERE i = 1", "DELETE FROM t WHERE i = 1"),
        ("DELETE FROM t WHERE i = 1", "INSERT INTO t VALUES (1)"),
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


@pytest.mark.every_catalog
@pytest.mark.slow
def test_commits_wait_for_each_other_rather_than_lose(
    lake_uri: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, lost = lake_uri(), []

    def note(error: Exception) -> bool:
        lost.append(str(error))
        return is_race(error)

    is_race = commit.is_lost_race
    monkeypatch.setattr(commit, "is_lost_race", note)
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


FILES = "CREATE TABLE u AS SELECT i FROM range(1, 41) r(i)"


def interrupted(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object], times: int = 1) -> None:
    """Lets a change of somebody else come before the next commits."""
    left = [None] * times

    def late(transaction: Transaction) -> object:
        if left:
            left.pop()
            monkeypatch.setattr(transactions, "commit", commit.commit)
            change()
            monkeypatch.setattr(transactions, "commit", late)
        return commit.commit(transaction)

    monkeypatch.setattr(transactions, "commit", late)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs", "count", "table", "expected"),
    [
        ("UPDATE t SET i = i + 10", "DELETE FROM t WHERE i = 1", 1, "t", [(12,)]),
        ("DELETE FROM t WHERE i = 1", "INSERT INTO t VALUES (1)", 2, "t", [(2,)]),
        (
            "INSERT INTO t (i) VALUES (3)",
            "ALTER TABLE t ADD COLUMN j INTEGER DEFAULT 7",
            1,
            "t",
            [(1, 7), (2, 7), (3, 7)],
        ),
        (
            "INSERT INTO t BY NAME SELECT 3 AS i",
            "ALTER TABLE t ADD COLUMN j INTEGER",
            1,
            "t",
            [(1, None), (2, None), (3, None)],
        ),
        ("TRUNCATE t", "INSERT INTO t VALUES (9)", 3, "t", []),
        ("CREATE TABLE IF NOT EXISTS v (i INTEGER)", "CREATE TABLE v AS SELECT 5 AS i", None, "v", [(5,)]),
        (
            "ALTER TABLE t RENAME COLUMN i TO j",
            "ALTER TABLE t ADD COLUMN k INTEGER",
            None,
            "(SELECT j, k FROM t)",
            [(1, None), (2, None)],
        ),
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS s(i) ON t.i = s.i WHEN MATCHED THEN UPDATE SET i = s.i + 50 "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.i + 60)",
            "DELETE FROM t WHERE i = 1",
            2,
            "t",
            [(52,), (61,)],
        ),
        (
            "UPDATE u SET i = i + 100 WHERE i < 4",
            "DELETE FROM u WHERE i = 2",
            2,
            "(SELECT i FROM u WHERE i > 39)",
            [(40,), (101,), (103,)],
        ),
        (
            "DELETE FROM u WHERE i > 1",
            "CALL ducklake_rewrite_data_files('lake', 'u', delete_threshold => 0)",
            36,
            "u",
            [(1,)],
        ),
    ],
)
def test_a_statement_that_loses_runs_again(
    pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
    ours: str,
    theirs: str,
    count: int | None,
    table: str,
    expected: list[object],
) -> None:
    one, two = pair
    one.sql(f"{FILES}; DELETE FROM u WHERE i IN (10, 20, 30)")
    interrupted(monkeypatch, lambda: two.sql(theirs))
    assert one.sql(ours).fetchall() == ([] if count is None else [(count,)])
    assert two.sql(f"FROM {table} ORDER BY ALL").fetchall() == expected
    assert two.sql("FROM lake.delete_orphaned_files(dry_run => true, cleanup_all => true)").fetchall() == []


@pytest.mark.parametrize(
    ("ours", "theirs", "error"),
    [
        ("INSERT INTO t VALUES (3)", "DROP TABLE t", dl.EntryNotFoundError),
        ("INSERT INTO t VALUES (3)", "ALTER TABLE t ADD COLUMN j INTEGER", dl.BindError),
        ("CREATE TABLE v (i INTEGER)", "CREATE TABLE v (j INTEGER)", dl.EntryExistsError),
    ],
)
def test_what_makes_no_sense_any_more_says_why(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, ours: str, theirs: str, error: type[Exception]
) -> None:
    one, two = pair
    interrupted(monkeypatch, lambda: two.sql(theirs))
    with pytest.raises(error):
        one.sql(ours)
    assert one.current_snapshot().snapshot_id == 3


@pytest.mark.parametrize(("retries", "runs"), [(0, ""), (2, " It ran 3 times.")])
def test_it_runs_again_as_often_as_the_session_tries(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, retries: int, runs: str
) -> None:
    one, two = pair
    one.sql(f"SET ducklake_max_retry_count = {retries}; SET ducklake_retry_wait_ms = 1")
    interrupted(monkeypatch, lambda: two.sql("INSERT INTO t VALUES (1)"), times=5)
    with pytest.raises(dl.TransactionConflictError) as raised:
        one.sql("DELETE FROM t WHERE i = 1")
    assert str(raised.value).endswith(f"run the transaction again.{runs}")
    assert two.sql("SELECT count(*) FROM t WHERE i = 1").fetchall() == [(1 + retries + 1,)]
    assert two.current_snapshot().snapshot_id == 2 + retries + 1


@pytest.mark.every_catalog
@pytest.mark.slow
def test_counters_add_up(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t AS SELECT i, 0 AS n FROM range(3) r(i)")

    def add(_: int) -> None:
        with dl.connect(uri, alias="lake") as session:
            for _ in range(4):
                assert session.sql("UPDATE t SET n = n + 1 WHERE i = 1").fetchall() == [(1,)]

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, range(3)))
    with dl.connect(uri, alias="lake") as session:
        assert session.sql("FROM t ORDER BY i").fetchall() == [(0, 0), (1, 12), (2, 0)]


@pytest.mark.slow
def test_a_file_that_is_being_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:sqlite:{tmp_path}/m.sqlite", alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        with closing(sqlite3.connect(tmp_path / "m.sqlite")) as other:
            other.execute("BEGIN EXCLUSIVE")
            for statement in ("INSERT INTO t VALUES (1)", "FROM t", "FROM lake.snapshots()"):
                with pytest.raises(dl.CatalogLockedError, match=r"is being written by \S+ \(process \d+\)"):
                    session.sql(statement).fetchall()
        session.sql("INSERT INTO t VALUES (1)")
        assert session.sql("FROM t").fetchall() == [(1,)]
