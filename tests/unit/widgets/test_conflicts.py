"""Conflicts of reverts, merges, picks and rebases in a view: rules for each, many and all, and what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.conflicts import ConflictsView, of_error

pytestmark = pytest.mark.sampled(2)

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    """Snapshot 3 changes cells of rows 0 to 3; later ones change row 0 and 1 again, and delete row 2."""
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, v VARCHAR, w INTEGER)")
        session.sql("INSERT INTO t SELECT i, 'v' || i, i FROM range(5) r(i)")
        session.sql("UPDATE t SET v = 'bad', w = -1 WHERE i < 4")
        session.sql(f"UPDATE t SET v = '{EVIL}', w = 100 WHERE i = 0")
        session.sql("UPDATE t SET v = NULL WHERE i = 1")
        session.sql("DELETE FROM t WHERE i = 2")
        yield session


def conflicts(session: dl.Session, snapshot: int = 3, **choice: object) -> ConflictsView:
    with pytest.raises(dl.RevertConflictError) as error:
        session.revert(snapshot, **choice, message="undo")  # type: ignore[arg-type]
    return of_error(error.value)


def rows_of(view: ConflictsView) -> list[tuple[Any, ...]]:
    _, (page,) = view.answer_page({"start": 0, "count": 50})
    return list(zip(*(column.to_pylist() for column in pa.ipc.open_stream(page).read_all().columns), strict=True))


def table(session: dl.Session) -> list[tuple[Any, ...]]:
    return session.sql("FROM t ORDER BY i").fetchall()


def test_three_values_stand_side_by_side(session: dl.Session) -> None:
    view = conflicts(session)
    assert (view.passing, view.total, view.unsettled, view.state) == (4, 4, 4, "open")
    shown = "<script>alert(1)</script>⟨U+202E⟩"
    assert sorted(rows_of(view), key=lambda row: row[1:3]) == [
        ("main.t", "0", "v", "v0", "bad", shown, "changed since", None),
        ("main.t", "0", "w", "0", "-1", "100", "changed since", None),
        ("main.t", "1", "v", "v1", "bad", None, "changed since", None),
        ("main.t", "2", "", "v v2, w 2", "v bad, w -1", "–", "updated, and deleted since", None),
    ]
    html = view.still()
    assert "&lt;script&gt;" in html and "<script" not in html and "\u202e" not in html
    assert "4 conflicts" in html and "4 conflicts" in repr(view)


def place(view: ConflictsView, row_id: int, column: str | None) -> int:
    return next(at for at, one in enumerate(view.conflicts) if (one.row_id, one.column) == (row_id, column))


def test_each_conflict_is_settled_by_its_own_rule(session: dl.Session) -> None:
    view = conflicts(session)
    view.settle("revert", "cell", place(view, 0, "v"))
    view.settle("keep", "cell", place(view, 0, "w"))
    assert view.unsettled == 2
    with pytest.raises(dl.UsageError, match="2 conflicts not settled yet"):
        view.answer_apply({})
    view.settle("revert", "row", place(view, 1, "v"))
    view.settle("keep", "row", place(view, 2, None))
    assert view.on_conflict == {"main.t": {0: {"v": "revert", "w": "keep"}, 1: {"v": "revert"}, 2: "keep"}}
    before = session.current_snapshot().snapshot_id
    assert "not committed" in view.answer_preview({})["html"]
    assert session.current_snapshot().snapshot_id == before
    found = view.answer_apply({})
    assert table(session) == [(0, "v0", 100), (1, "v1", 1), (3, "v3", 3), (4, "v4", 4)]
    assert view.outcome == f"Reverted as snapshot {before + 1}: 2 conflicts kept, 2 reverted."
    assert session.snapshots()[-1].info.commit_message == "undo"
    assert f"{before} → {before + 1}" in found["html"] and view.outcome in view.still()
    with pytest.raises(dl.UsageError, match="applied already"):
        view.answer_apply({})


@pytest.mark.parametrize(
    ("scope", "row_id", "column", "settled"),
    [
        ("row", 0, "w", {(0, "v"), (0, "w")}),
        ("column", 0, "v", {(0, "v"), (1, "v")}),
        ("table", 2, None, {(0, "v"), (0, "w"), (1, "v"), (2, None)}),
        ("all", 1, "v", {(0, "v"), (0, "w"), (1, "v"), (2, None)}),
    ],
)
def test_a_rule_for_many(
    session: dl.Session, scope: str, row_id: int, column: str | None, settled: set[object]
) -> None:
    view = conflicts(session)
    view.answer_settle({"rule": "keep", "scope": scope, "place": place(view, row_id, column)})
    assert {
        (one.row_id, one.column) for one, rule in zip(view.conflicts, view.choices, strict=True) if rule == "keep"
    } == settled


@pytest.mark.parametrize("rule", ["keep", "revert"])
def test_one_rule_for_all_is_that_of_the_session(session: dl.Session, rule: str) -> None:
    view = conflicts(session)
    wanted = session.revert_preview(3, on_conflict=rule)
    view.settle(rule, "all")
    view.answer_apply({})
    now = session.current_snapshot().snapshot_id
    made = session.table("t").diff(now - 1, now)
    assert (made.summary, made.rows()) == (wanted.summary, wanted.rows())


def test_conflicts_that_came_since_are_no_part_of_it(session: dl.Session) -> None:
    view = conflicts(session)
    view.settle("keep", "all")
    session.sql("UPDATE t SET w = 7 WHERE i = 3; UPDATE t SET w = 101 WHERE i = 0")
    before = table(session)
    for act in (view.answer_apply, view.answer_preview):
        with pytest.raises(dl.UsageError, match=r"have changed the conflicts|2 conflicts not settled"):
            act({})
        assert (table(session), view.state) == (before, "open")
    # those that were settled stay so, and one with another value of today is none of them
    assert (view.passing, view.unsettled) == (5, 2)
    open_ones = [
        (one.row_id, one.column) for one, rule in zip(view.conflicts, view.choices, strict=True) if rule is None
    ]
    assert sorted(open_ones) == [(0, "w"), (3, "w")]
    view.settle("revert", "column", place(view, 3, "w"))
    view.answer_apply({})
    assert table(session) == [(0, EVIL, 0), (1, None, 1), (3, "v3", 3), (4, "v4", 4)]


def test_the_choice_of_rows_and_tables_stays(session: dl.Session) -> None:
    view = conflicts(session, rows=[0, 3])
    assert {one.row_id for one in view.conflicts} == {0}
    view.settle("revert", "all")
    view.answer_apply({})
    assert table(session)[:2] == [(0, "v0", 0), (1, None, -1)]


def test_a_definition_settles_with_its_table(session: dl.Session) -> None:
    session.sql("COMMENT ON TABLE t IS 'one'")
    commented = session.current_snapshot().snapshot_id
    session.sql("COMMENT ON TABLE t IS 'two'")
    view = conflicts(session, commented)
    assert rows_of(view)[0][1:3] == ("", "")
    view.settle("revert", "all")
    assert view.on_conflict == {"main.t": "revert"}
    view.answer_apply({})
    assert session.current_snapshot().snapshot_id == commented + 2


def test_in_a_transaction_it_is_staged(session: dl.Session) -> None:
    session.sql("BEGIN")
    view = conflicts(session)
    view.settle("keep", "all")
    assert view.answer_apply({}) == {"html": ""}
    assert "in the open transaction" in view.outcome
    session.sql("ROLLBACK")
    assert table(session)[2] == (3, "bad", -1)


def test_nonsense_is_refused(session: dl.Session) -> None:
    view = conflicts(session)
    for rule, scope, at in (("drop", "all", 0), ("keep", "lake", 0), ("keep", "cell", 4), ("keep", "cell", -1)):
        with pytest.raises(dl.UsageError, match="settled by keep or revert"):
            view.answer_settle({"rule": rule, "scope": scope, "place": at})
    assert view.unsettled == 4


def test_another_lake_in_use_is_not_reverted(session: dl.Session, tmp_path: Path) -> None:
    view = conflicts(session)
    view.settle("keep", "all")
    session.attach(f"ducklake:{tmp_path}/other.ducklake", alias="other")
    session.use("other.main")
    with pytest.raises(dl.UsageError, match="USE lake first"):
        view.answer_apply({})


def test_conflicts_of_a_merge_are_settled(session: dl.Session) -> None:
    session.branch("fix")
    session.switch("fix")
    session.sql("UPDATE t SET v = 'branch' WHERE i IN (3, 4)")
    session.switch(None)
    session.sql("UPDATE t SET v = 'lake' WHERE i IN (3, 4)")
    with pytest.raises(dl.MergeConflictError) as error:
        session.merge("fix")
    view = of_error(error.value)
    assert view.heading == "Conflicts of the merge of branch fix"
    assert [row[1:7] for row in rows_of(view)] == [
        ("3", "v", "bad", "lake", "branch", "changed on both sides"),
        ("4", "v", "v4", "lake", "branch", "changed on both sides"),
    ]
    view.settle("theirs", "cell", 1)
    view.settle("ours", "cell", 0)
    newest = session.current_snapshot().snapshot_id
    assert "branch" in view.answer_preview({})["html"]
    assert session.current_snapshot().snapshot_id == newest
    view.answer_apply({})
    assert view.outcome == f"Merged as snapshot {newest + 1}: 1 conflict as in the lake, 1 as on the branch."
    assert session.sql("SELECT v FROM t WHERE i IN (3, 4) ORDER BY i").fetchall() == [("lake",), ("branch",)]
    with pytest.raises(dl.UsageError, match="ours or theirs"):
        view.settle("keep", "all")


@pytest.fixture
def branched(session: dl.Session) -> dl.Session:
    """Rows 3 and 4 have other values on both sides, row 0 has been updated on the branch and deleted in the lake."""
    session.branch("fix")
    session.switch("fix")
    session.sql("UPDATE t SET v = 'branch' WHERE i IN (0, 3, 4)")
    session.sql("UPDATE t SET w = 50 WHERE i = 1; INSERT INTO t VALUES (9, 'new', 9)")
    session.switch(None)
    session.sql("UPDATE t SET v = 'lake' WHERE i IN (3, 4); DELETE FROM t WHERE i = 0")
    return session


def test_conflicts_of_a_rebase_are_settled(branched: dl.Session) -> None:
    session, newest = branched, branched.current_snapshot().snapshot_id
    with pytest.raises(dl.MergeConflictError, match='The branch "fix" is not rebased: 3 conflicts') as error:
        session.rebase("fix")
    with pytest.raises(dl.MergeConflictError) as previewed:
        session.rebase_preview("fix")
    assert (str(previewed.value), previewed.value.conflicts) == (str(error.value), error.value.conflicts)
    view = of_error(error.value)
    assert (view.heading, view.heads) == ("Conflicts of the rebase of branch fix", ["base", "lake", "branch"])
    view.settle("theirs", "all")
    view.settle("ours", "cell", place(view, 4, "v"))
    assert "not committed" in view.answer_preview({})["html"]
    assert session.branches()[0]["snapshot"] == 6
    shown = view.answer_apply({})["html"]
    assert view.outcome == f"Rebased onto snapshot {newest}: 1 conflict as in the lake, 2 as on the branch."
    # the diff of the branch, not of a snapshot of the lake
    assert "lake#fix" in shown and f"{newest} → {newest + 1}" in shown
    assert (session.current_snapshot().snapshot_id, session.branches()[0]["snapshot"]) == (newest, newest)
    assert table(session) == [(1, None, -1), (3, "lake", -1), (4, "lake", 4)]
    session.switch("fix")
    assert table(session) == [(0, "branch", 100), (1, None, 50), (3, "branch", -1), (4, "lake", 4), (9, "new", 9)]


def test_conflicts_of_a_pick_are_settled(branched: dl.Session) -> None:
    session, newest = branched, branched.current_snapshot().snapshot_id
    with pytest.raises(
        dl.MergeConflictError, match='Snapshot 7 of the branch "fix" is not picked: 3 conflicts'
    ) as error:
        session.cherry_pick("fix", 7, message="one of them")
    view = of_error(error.value)
    assert view.heading == "Conflicts of the pick of snapshot 7 of branch fix"
    view.settle("ours", "all")
    view.settle("theirs", "cell", place(view, 3, "v"))
    assert "branch" in view.answer_preview({})["html"] and session.current_snapshot().snapshot_id == newest
    shown = view.answer_apply({})["html"]
    assert view.outcome == f"Picked as snapshot {newest + 1}: 2 conflicts as in the lake, 1 as on the branch."
    assert f"{newest} → {newest + 1}" in shown
    assert session.snapshots()[-1].info.commit_message == "one of them"
    assert table(session) == [(1, None, -1), (3, "branch", -1), (4, "lake", 4)]


def test_a_pick_of_rows_stays_one(branched: dl.Session) -> None:
    session = branched
    with pytest.raises(dl.MergeConflictError) as error:
        session.cherry_pick("fix", rows={"t": [4, 1]})
    view = of_error(error.value)
    assert (view.heading, view.total) == ("Conflicts of the pick of rows of branch fix", 1)
    view.settle("ours", "all")
    session.sql("UPDATE t SET w = -50 WHERE i = 1")
    with pytest.raises(dl.UsageError, match="have changed the conflicts"):
        view.answer_apply({})
    view.settle("theirs", "cell", place(view, 1, "w"))
    view.answer_apply({})
    assert table(session) == [(1, None, 50), (3, "lake", -1), (4, "lake", 4)]


def test_a_pick_in_a_transaction_is_staged_and_a_rebase_is_refused(branched: dl.Session) -> None:
    session, before = branched, table(branched)
    with pytest.raises(dl.MergeConflictError) as error:
        session.rebase("fix")
    rebase = of_error(error.value)
    rebase.settle("ours", "all")
    session.sql("BEGIN")
    with pytest.raises(dl.MergeConflictError) as error:
        session.cherry_pick("fix", 7)
    view = of_error(error.value)
    view.settle("theirs", "all")
    with pytest.raises(dl.TransactionError, match="rebases no branch"):
        rebase.answer_apply({})
    assert view.answer_apply({}) == {"html": ""}
    assert view.outcome.startswith("Picked in the open transaction, until COMMIT or ROLLBACK")
    session.sql("ROLLBACK")
    assert table(session) == before
    rebase.answer_apply({})
    assert rebase.state == "settled"


def test_a_rebase_with_nothing_left_says_so(session: dl.Session) -> None:
    session.branch("fix")
    session.switch("fix")
    session.sql("UPDATE t SET v = 'branch' WHERE i = 3")
    session.switch(None)
    session.sql("UPDATE t SET v = 'lake' WHERE i = 3")
    newest = session.current_snapshot().snapshot_id
    with pytest.raises(dl.MergeConflictError) as error:
        session.rebase("fix")
    view = of_error(error.value)
    view.settle("ours", "all")
    assert "1 unchanged" in view.answer_apply({})["html"]
    assert view.outcome == f"Rebased onto snapshot {newest}: 1 conflict as in the lake, 0 as on the branch."


def test_an_error_of_python_shows_its_conflicts(session: dl.Session, capsys: pytest.CaptureFixture[str]) -> None:
    newest = session.current_snapshot()
    for act in (session.revert, session.revert_preview):
        with pytest.raises(dl.RevertConflictError) as error:
            act(3)
        (line,) = error.value._render_traceback_()  # type: ignore[attr-defined]
        assert line.startswith("RevertConflictError: ") and "Conflicts of the revert of snapshot 3: 4 conflicts" in (
            capsys.readouterr().out
        )
        error.value._ipython_display_()  # type: ignore[attr-defined]
        assert "4 conflicts" in capsys.readouterr().out
    assert session.current_snapshot() == newest
    # one that no session raised has no view
    assert not hasattr(dl.MergeConflictError("x"), "_render_traceback_")
