"""Picks from branches: single snapshots and rows, which a later merge finds done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.unit.branches.test_merging import on_branch, rows


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(100) r(i); INSERT INTO t VALUES (200, 'few')")
        session.branch("fix")
        session.sql("UPDATE t SET v = 'lake' WHERE i = 1; INSERT INTO t VALUES (300, 'lake')")
        on_branch(
            session,
            "UPDATE t SET v = 'first' WHERE i IN (2, 200)",
            "UPDATE t SET v = 'second' WHERE i IN (2, 3)",
            "DELETE FROM t WHERE i = 4",
            "INSERT INTO t VALUES (400, 'new')",
            "UPDATE t SET v = 'again' WHERE i = 400",
        )
        yield session


SOME = "SELECT i, v FROM t WHERE i IN (1, 2, 3, 4, 200, 300, 400) ORDER BY i"


def test_one_snapshot(session: dl.Session) -> None:
    made = session.cherry_pick("fix", 5)
    assert made is not None
    assert session.snapshots()[-1].info.commit_message == "pick of snapshot 5 of branch fix"
    found = [(1, "lake"), (2, "v2"), (3, "v3"), (200, "few"), (300, "lake")]
    assert rows(session, SOME) == found
    with pytest.raises(dl.MergeConflictError, match=r'Snapshot 4 of the branch "fix" is not picked: 1 conflict'):
        session.cherry_pick("fix", 4)
    session.cherry_pick("fix", 3)
    session.cherry_pick("fix", 4)
    assert session.cherry_pick("fix", 4) is None
    assert rows(session, SOME) == [(1, "lake"), (2, "second"), (3, "second"), (200, "first"), (300, "lake")]
    session.merge("fix")
    assert rows(session, SOME) == [*rows(session, SOME)[:-1], (400, "again")]
    assert len(rows(session, SOME)) == 6


def test_some_rows(session: dl.Session) -> None:
    session.cherry_pick("fix", rows={"t": [2, 4]}, message="")
    assert rows(session, SOME)[:3] == [(1, "lake"), (2, "second"), (3, "v3")]
    assert [row[0] for row in rows(session, SOME)] == [1, 2, 3, 200, 300]
    session.cherry_pick("fix", 4, rows={"main.t": [3]})
    assert rows(session, SOME)[2] == (3, "second")


def test_a_table_by_two_names_and_two_tables_by_one(session: dl.Session) -> None:
    session.cherry_pick("fix", rows={"t": [2], "main.t": [4], "MAIN.T": [2]})
    assert rows(session, SOME)[:3] == [(1, "lake"), (2, "second"), (3, "v3")]
    assert session.sql("SELECT count(*) FROM t WHERE i = 4").fetchall() == [(0,)]
    session.sql("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS i, 'v' AS v")
    session.branch("two")
    session.switch("two")
    session.sql("UPDATE t SET v = 'x' WHERE i = 1; UPDATE other.t SET v = 'x'")
    session.switch(None)
    with pytest.raises(dl.UsageError, match=r"Several tables are named t: main\.t, other\.t; give the schema"):
        session.cherry_pick("two", rows={"t": [0]})
    session.cherry_pick("two", rows={"other.t": [0]})
    assert session.sql("SELECT v FROM other.t").fetchall() == [("x",)]


def test_a_preview_changes_nothing(session: dl.Session) -> None:
    newest = session.current_snapshot()
    preview = session.cherry_pick_preview("fix", 5)
    assert [repr(one) for one in preview] == ["changed main.t: 1 deleted, 0 inserted, 0 updated"]
    with pytest.raises(dl.MergeConflictError, match="Snapshot 4 of the branch"):
        session.cherry_pick_preview("fix", 4)
    with pytest.raises(dl.UsageError, match="takes a snapshot of the branch"):
        session.cherry_pick_preview("fix")
    assert session.current_snapshot() == newest


def test_what_is_no_change_of_a_row_of_the_lake_is_refused(session: dl.Session) -> None:
    on_branch(session, "ALTER TABLE t ADD COLUMN w INTEGER")
    newest = session.current_snapshot().snapshot_id
    for snapshot, text in (
        (6, r'Snapshot 6 of the branch "fix" inserts rows into main\.t'),
        (7, r"1 rows of main\.t came on the branch"),
        (8, r"changed the definition of main\.t"),
    ):
        with pytest.raises(dl.UnsupportedFeatureError, match=text):
            session.cherry_pick("fix", snapshot)
    for snapshot in (2, 1, 99):
        with pytest.raises(dl.SnapshotNotFoundError):
            session.cherry_pick("fix", snapshot)
    with pytest.raises(dl.UsageError, match="takes a snapshot of the branch"):
        session.cherry_pick("fix")
    with pytest.raises(dl.EntryNotFoundError, match="did not change tt"):
        session.cherry_pick("fix", 3, rows={"tt": [1]})
    with pytest.raises(dl.UnsupportedFeatureError, match=r"main\.t has columns that came on the branch"):
        session.cherry_pick("fix", rows={"t": [2]})
    assert session.current_snapshot().snapshot_id == newest


def test_a_pick_into_an_empty_table_is_a_conflict(session: dl.Session) -> None:
    session.sql("DELETE FROM t")
    with pytest.raises(dl.MergeConflictError, match="2 conflicts"):
        session.cherry_pick("fix", 3)
    assert session.cherry_pick("fix", 3, on_conflict="ours") is None
    session.cherry_pick("fix", 3, on_conflict="theirs")
    assert rows(session, "FROM t ORDER BY i") == [(2, "first"), (200, "first")]
