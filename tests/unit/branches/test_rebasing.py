"""Rebases of branches: their changes on top of the lake as it is now, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.branches import rebasing
from tests.unit.branches.test_merging import on_branch, one, rows


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(100) r(i); INSERT INTO t VALUES (200, 'few')")
        session.branch("fix")
        yield session


def test_a_branch_begins_at_the_newest_snapshot(session: dl.Session, tmp_path: Path) -> None:
    session.sql("UPDATE t SET v = 'lake' WHERE i = 1; INSERT INTO t VALUES (300, 'lake')")
    newest = session.current_snapshot().snapshot_id
    on_branch(session, "UPDATE t SET v = 'branch' WHERE i = 2; INSERT INTO t SELECT 400 + i, 'b' FROM range(50) r(i)")
    branch = session.rebase("fix")
    assert (branch.name, branch.snapshot_id) == ("fix", newest)
    assert one(session, "SELECT count(*) FROM t") == 102
    session.switch("fix")
    assert session.current_snapshot().snapshot_id == newest + 1
    assert session.snapshots()[-1].info.commit_message == "rebase of branch fix"
    found = rows(session, "SELECT i, v FROM t WHERE i IN (1, 2, 300, 400) ORDER BY i")
    assert found == [(1, "lake"), (2, "branch"), (300, "lake"), (400, "b")]
    assert one(session, "SELECT count(*) FROM t") == 152
    session.switch(None)
    session.merge("fix")
    assert one(session, "SELECT count(*) FROM t") == 152
    assert len({path.name for path in Path(f"{tmp_path}/data.branches").iterdir()}) == 1


def test_a_merge_after_a_rebase_is_the_merge(session: dl.Session) -> None:
    session.branch("other")
    for name in ("fix", "other"):
        on_branch(session, "UPDATE t SET v = 'b' WHERE i < 5; DELETE FROM t WHERE i = 9", name=name)
        on_branch(session, "INSERT INTO t VALUES (500, 'new'); CREATE TABLE u AS SELECT 1 AS a", name=name)
    session.sql("UPDATE t SET v = 'lake' WHERE i > 90; DELETE FROM t WHERE i = 10")
    before = session.current_snapshot().snapshot_id
    session.merge("other")
    merged = rows(session, "FROM t ORDER BY ALL")
    session.revert(session.current_snapshot().snapshot_id)
    session.rebase("fix")
    session.merge("fix")
    assert rows(session, "FROM t ORDER BY ALL") == merged
    assert session.current_snapshot().snapshot_id == before + 3


def test_a_branch_that_was_merged_goes_on(session: dl.Session) -> None:
    on_branch(session, "INSERT INTO t VALUES (500, 'first')")
    session.merge("fix")
    session.rebase("fix")
    on_branch(session, "UPDATE t SET v = 'second' WHERE i = 500; INSERT INTO t VALUES (501, 'x')")
    session.merge("fix")
    assert rows(session, "FROM t WHERE i >= 500 ORDER BY i") == [(500, "second"), (501, "x")]
    session.rebase("fix")
    session.rebase("fix")
    assert session.merge("fix") is None


def test_conflicts_leave_the_branch_as_it_is(session: dl.Session, tmp_path: Path) -> None:
    session.sql("UPDATE t SET v = 'lake' WHERE i = 1")
    on_branch(session, "UPDATE t SET v = 'branch' WHERE i = 1")
    places = sorted(path.name for path in Path(f"{tmp_path}/data.branches").iterdir())
    with pytest.raises(dl.MergeConflictError, match="1 conflict"):
        session.rebase("fix")
    assert sorted(path.name for path in Path(f"{tmp_path}/data.branches").iterdir()) == places
    session.switch("fix")
    assert one(session, "SELECT v FROM t WHERE i = 1") == "branch"
    session.switch(None)
    session.rebase("fix", on_conflict="theirs")
    session.merge("fix")
    assert one(session, "SELECT v FROM t WHERE i = 1") == "branch"


def test_what_a_killed_rebase_leaves_is_removed(
    session: dl.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_branch(session, "UPDATE t SET v = 'branch' WHERE i = 1")
    monkeypatch.setattr(rebasing, "_publish", lambda *_: (_ for _ in ()).throw(SystemExit))
    monkeypatch.setattr(rebasing, "remove_place", lambda *_: None)
    with pytest.raises(SystemExit):
        session.rebase("fix")
    monkeypatch.undo()
    assert len(list(Path(f"{tmp_path}/data.branches").iterdir())) == 2
    session.switch("fix")
    assert one(session, "SELECT v FROM t WHERE i = 1") == "branch"
    session.switch(None)
    session.rebase("fix")
    assert len(list(Path(f"{tmp_path}/data.branches").iterdir())) == 1
    session.drop_branch("fix")
    assert not list(Path(f"{tmp_path}/data.branches").iterdir())
    assert one(session, "SELECT count(*) FROM t") == 101


def test_two_rebases_at_once(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    on_branch(session, "UPDATE t SET v = 'branch' WHERE i = 1")
    publish = rebasing._publish

    def late(*given: object) -> None:
        monkeypatch.undo()
        session.rebase("fix")
        publish(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(rebasing, "_publish", late)
    with pytest.raises(dl.TransactionConflictError, match='Another client rebased or dropped the branch "fix"'):
        session.rebase("fix")
    session.merge("fix")
    assert one(session, "SELECT v FROM t WHERE i = 1") == "branch"
