"""Reverts of changes of rows: what becomes of them, and what is a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.merging.merge import Merge

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Any) -> Iterator[dl.Session]:
    """A lake with `t (i, v, n)`: 50 rows in a file at snapshot 2, three inlined ones at 3."""
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, v VARCHAR, n DOUBLE)")
        session.sql("INSERT INTO t SELECT i, 'a', i / 2 FROM range(50) r(i)")
        session.sql("INSERT INTO t VALUES (100, 'x', NULL), (101, 'x', 1), (102, NULL, 'nan')")
        yield session
        assert not session.spark_started


def rows(session: dl.Session, at: int | None = None) -> list[str]:
    """Texts of all rows with their row ids."""
    when = "" if at is None else f" AT (VERSION => {at})"
    return [text for (text,) in session.sql(f"SELECT (rowid, t)::VARCHAR FROM t{when} ORDER BY rowid").fetchall()]


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


CHANGES = [
    "UPDATE t SET v = 'b' WHERE i < 20",
    "UPDATE t SET v = 'b' WHERE i > 45",
    "UPDATE t SET v = NULL, n = n + 1",
    "DELETE FROM t WHERE i < 20",
    "DELETE FROM t WHERE i IN (3, 100)",
    "DELETE FROM t",
    "TRUNCATE t",
    "INSERT INTO t SELECT i, 'new', 0 FROM range(30) r(i)",
    "INSERT INTO t VALUES (7, 'new', 0)",
    "MERGE INTO t USING (SELECT * FROM range(40, 60) r(i)) s ON t.i = s.i WHEN MATCHED AND t.i < 45 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (s.i, 'm', 0)",
]
LATER = ["CALL lake.flush_inlined_data()", "CALL lake.merge_adjacent_files()", "CALL lake.rewrite_data_files()"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_revert_is_the_inverse_and_its_revert_the_original(session: dl.Session, change: str) -> None:
    before = rows(session)
    session.sql(change)
    changed = newest(session)
    after = rows(session)
    back = session.revert(changed)
    assert back is not None and back.snapshot_id == changed + 1
    assert rows(session) == before
    again = session.revert(back.snapshot_id)
    assert again is not None and rows(session) == after
    assert [rows(session, at) for at in (changed - 1, changed)] == [before, after]


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_maintenance_since_makes_no_difference(session: dl.Session, change: str, vectors: bool) -> None:
    session.sql(f"CALL lake.set_option('write_deletion_vectors', {str(vectors).lower()})")
    before = rows(session)
    session.sql(change)
    changed = newest(session)
    for statement in LATER:
        session.sql(statement)
    session.revert(changed)
    assert rows(session) == before


def test_later_changes_of_other_rows_and_cells_stay(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'wrong' WHERE i < 30")
    changed = newest(session)
    session.sql("UPDATE t SET n = 0 WHERE i < 10")
    session.sql("DELETE FROM t WHERE i > 40")
    session.sql("INSERT INTO t VALUES (200, 'late', 2)")
    session.revert(changed)
    found = session.sql("SELECT v, n, count(*) FROM t WHERE i < 10 GROUP BY ALL").fetchall()
    assert found == [("a", 0.0, 10)]
    assert session.sql("SELECT count(*) FROM t WHERE v = 'wrong'").fetchall() == [(0,)]
    assert session.sql("SELECT max(i), count(*) FROM t").fetchall() == [(200, 42)]


def test_only_cells_that_changed_are_taken_back(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = v, n = n + 1 WHERE i = 5")
    changed = newest(session)
    session.sql("UPDATE t SET v = 'mine' WHERE i = 5")
    session.revert(changed)
    assert session.sql("SELECT v, n FROM t WHERE i = 5").fetchall() == [("mine", 2.5)]


def test_a_cell_changed_again_is_a_conflict_that_says_base_then_and_now(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 3")
    changed = newest(session)
    session.sql("UPDATE t SET v = 'now' WHERE i = 1")
    with pytest.raises(dl.RevertConflictError, match=r"main\.t row 1 v \(changed since\)") as caught:
        session.revert(changed)
    (conflict,) = caught.value.conflicts
    found = (conflict.table, conflict.row_id, conflict.column, conflict.base, conflict.then, conflict.now)
    assert found == ("main.t", 1, "v", "a", "then", "now")
    assert newest(session) == changed + 1, "nothing is written"
    assert session.sql("SELECT v FROM t WHERE i < 3 ORDER BY i").fetchall() == [("then",), ("now",), ("then",)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("keep", "now"),
        ("revert", "a"),
        ({"t": "keep"}, "now"),
        ({"main.t": "revert"}, "a"),
        ({"t": {1: "keep"}}, "now"),
        ({"t": {1: {"v": "revert"}}}, "a"),
        ({"t": {"V": "revert"}}, "a"),
        ({"t": {1: {"v": "keep"}, "v": "revert"}}, "now"),
    ],
)
def test_rules_settle_conflicts(session: dl.Session, rule: Any, expected: str) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 3")
    changed = newest(session)
    session.sql("UPDATE t SET v = 'now' WHERE i = 1")
    session.revert(changed, on_conflict=rule)
    assert session.sql("SELECT v FROM t WHERE i < 3 ORDER BY i").fetchall() == [("a",), (expected,), ("a",)]


def test_a_rule_for_one_row_leaves_the_conflicts_of_others(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 3")
    changed = newest(session)
    session.sql("UPDATE t SET v = 'now' WHERE i < 3")
    with pytest.raises(dl.RevertConflictError) as caught:
        session.revert(changed, on_conflict={"t": {0: "keep", 2: "revert"}})
    assert [one.row_id for one in caught.value.conflicts] == [1]


def test_a_value_that_is_back_already_is_no_conflict(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 3")
    changed = newest(session)
    session.sql("UPDATE t SET v = 'a' WHERE i < 3")
    assert session.revert(changed) is None
    session.sql("UPDATE t SET v = 'then' WHERE i < 2")
    session.revert(changed)
    assert session.sql("SELECT DISTINCT v FROM t WHERE i < 3").fetchall() == [("a",)]


def test_an_updated_row_that_was_deleted_since_is_a_conflict(session: dl.Session) -> None:
    before = rows(session)
    session.sql("UPDATE t SET v = 'then' WHERE i < 3")
    changed = newest(session)
    session.sql("DELETE FROM t WHERE i = 1")
    with pytest.raises(dl.RevertConflictError, match=r"row 1 .*updated, and deleted since") as caught:
        session.revert(changed)
    (conflict,) = caught.value.conflicts
    assert (conflict.column, conflict.base, conflict.then, conflict.now) == (None, {"v": "a"}, {"v": "then"}, None)
    session.revert(changed, on_conflict="keep")
    assert session.sql("SELECT i, v FROM t WHERE i < 3 ORDER BY i").fetchall() == [(0, "a"), (2, "a")]
    session.revert(changed, on_conflict="revert")
    assert rows(session) == before


def test_an_inserted_row_that_changed_since_is_a_conflict(session: dl.Session) -> None:
    session.sql("INSERT INTO t VALUES (200, 'then', 1), (201, 'then', 1), (202, 'then', 1)")
    changed = newest(session)
    session.sql("UPDATE t SET v = 'now' WHERE i = 201")
    session.sql("DELETE FROM t WHERE i = 202")
    with pytest.raises(dl.RevertConflictError) as caught:
        session.revert(changed)
    (conflict,) = caught.value.conflicts
    assert (conflict.base, conflict.now) == (None, {"i": 201, "v": "now", "n": 1.0})
    session.revert(changed, on_conflict="keep")
    assert session.sql("FROM t WHERE i >= 200").fetchall() == [(201, "now", 1.0)]
    session.revert(changed, on_conflict="revert")
    assert session.sql("FROM t WHERE i >= 200").fetchall() == []


def test_a_deleted_row_that_is_back_stays_as_it_is(session: dl.Session) -> None:
    session.sql("DELETE FROM t WHERE i < 5")
    changed = newest(session)
    session.revert(changed)
    session.sql("UPDATE t SET v = 'later' WHERE i = 2")
    assert session.revert(changed) is None


def test_reverts_in_any_order_equal_a_replay_without_the_snapshots(session: dl.Session) -> None:
    """Twelve changes of rows and cells that do not touch, every second taken back, last ones first and mixed."""
    changes = []
    for number in range(4):
        low = 10 * number
        changes += [
            f"UPDATE t SET v = 'u{number}' WHERE i BETWEEN {low} AND {low + 4}",
            f"UPDATE t SET n = -{number} WHERE i BETWEEN {low} AND {low + 6}",
            f"DELETE FROM t WHERE i BETWEEN {low + 7} AND {low + 8}",
        ]
    session.sql("CREATE TABLE replay AS FROM t")
    made = []
    for change in changes:
        session.sql(change)
        made.append(newest(session))
    for at in (made[0], made[10], made[4], made[2], made[6], made[8]):
        session.revert(at)
    for change in changes[1::2]:
        session.sql(change.replace(" t ", " replay "))
    found, expected = (session.sql(f"SELECT {x}::VARCHAR FROM {x} ORDER BY i").fetchall() for x in ("t", "replay"))
    assert found == expected


def test_only_some_rows(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 5")
    changed = newest(session)
    session.revert(changed, rows=[1, 3, 999])
    assert session.sql("SELECT i FROM t WHERE v = 'then' ORDER BY i").fetchall() == [(0,), (2,), (4,)]
    session.revert(changed, rows={"main.t": range(3)})
    assert session.sql("SELECT i FROM t WHERE v = 'then' ORDER BY i").fetchall() == [(4,)]


def test_only_some_tables(session: dl.Session) -> None:
    session.sql("CREATE TABLE u AS SELECT 1 AS i")
    with session.transaction():
        session.sql("UPDATE t SET v = 'then' WHERE i < 5")
        session.sql("INSERT INTO u VALUES (2)")
    changed = newest(session)
    with pytest.raises(dl.UsageError, match="changed 2 tables; say whose rows"):
        session.revert(changed, rows=[1])
    session.revert(changed, tables=["u"])
    assert session.sql("FROM u").fetchall() == [(1,)]
    assert session.sql("SELECT count(*) FROM t WHERE v = 'then'").fetchall() == [(5,)]
    with pytest.raises(dl.EntryNotFoundError, match=r"did not change x\."):
        session.revert(changed, tables=["x"])


def test_the_commit_is_one_snapshot_with_a_note(session: dl.Session) -> None:
    session.author = "ann"
    session.sql("UPDATE t SET v = 'then' WHERE i < 5")
    changed = newest(session)
    made = session.revert(changed)
    entry = session.snapshots()[-1]
    assert made is not None and entry.info.snapshot_id == made.snapshot_id == changed + 1
    assert (entry.info.author, entry.info.commit_message) == ("ann", f"revert of snapshot {changed}")
    assert entry.note is not None and entry.note.reverted == (changed,)
    assert entry.changes[0] == f"reverted snapshot {changed}"
    session.revert(made.snapshot_id, message="back again")
    assert session.snapshots()[-1].info.commit_message == "back again"


def test_a_transaction_takes_it_with_its_other_statements(session: dl.Session) -> None:
    before = rows(session)
    session.sql("UPDATE t SET v = 'then' WHERE i < 5")
    changed = newest(session)
    with session.transaction(message="both"):
        session.sql("DELETE FROM t WHERE i > 40")
        assert session.revert(changed) is None
        assert session.sql("SELECT count(*) FROM t WHERE v = 'then'").fetchall() == [(0,)]
        session.sql("UPDATE t SET n = 7 WHERE i = 0")
    entry = session.snapshots()[-1]
    assert (entry.info.snapshot_id, entry.info.commit_message) == (changed + 1, "both")
    assert entry.note is not None and entry.note.reverted == (changed,)
    assert session.sql("SELECT n FROM t WHERE i = 0").fetchall() == [(7.0,)]
    assert len(rows(session)) == len(before) - 12


def test_changes_of_the_open_transaction_conflict_and_it_goes_on(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 5")
    changed = newest(session)
    with session.transaction():
        session.sql("UPDATE t SET v = 'mine' WHERE i = 2")
        with pytest.raises(dl.RevertConflictError):
            session.revert(changed)
        session.revert(changed, on_conflict="keep")
    assert session.sql("SELECT v FROM t WHERE i < 4 ORDER BY i").fetchall() == [("a",), ("a",), ("mine",), ("a",)]


def test_a_preview_commits_nothing(session: dl.Session, tmp_path: Any) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 20")
    changed = newest(session)
    files = sorted(tmp_path.rglob("*.parquet"))
    diff = session.revert_preview(changed)
    assert (diff.summary.updated, diff.summary.inserted, diff.summary.deleted) == (20, 0, 0)
    assert diff.end is None and diff.rows(1)[0].after["v"] == "a"
    assert newest(session) == changed
    assert sorted(tmp_path.rglob("*.parquet")) == files
    session.revert(changed)
    assert session.revert_preview(changed).is_empty


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CALL lake.flush_inlined_data()", "only wrote files of main.t anew"),
        ("CALL lake.rewrite_data_files(delete_threshold => 0)", "only wrote files of main.t anew"),
    ],
)
def test_maintenance_is_nothing_to_revert(session: dl.Session, statement: str, message: str) -> None:
    session.sql("DELETE FROM t WHERE i < 30")
    session.sql(statement)
    made = newest(session)
    with pytest.raises(dl.UnsupportedFeatureError, match=message):
        session.revert(made)
    assert newest(session) == made


def test_what_cannot_be_reverted_is_named(session: dl.Session) -> None:
    session.sql("DELETE FROM t WHERE i < 30")
    changed = newest(session)
    with pytest.raises(dl.UnsupportedFeatureError, match="Snapshot 0 made the lake"):
        session.revert(0)
    with pytest.raises(dl.SnapshotNotFoundError):
        session.revert(99)
    session.sql(f"CALL lake.expire_snapshots(versions => [{changed - 1}])")
    with pytest.raises(dl.SnapshotNotFoundError, match=f"snapshot {changed - 1} has expired"):
        session.revert(changed)
    with pytest.raises(dl.UsageError, match="on_conflict takes"):
        session.revert(changed - 2, on_conflict="theirs")  # type: ignore[arg-type]
    assert newest(session) == changed


def test_rules_and_rows_that_name_nothing_are_refused(session: dl.Session) -> None:
    session.sql("UPDATE t SET v = 'then' WHERE i < 3")
    changed = newest(session)
    with pytest.raises(dl.UsageError, match="on_conflict names u"):
        session.revert(changed, on_conflict={"u": "keep"})
    with pytest.raises(dl.UsageError, match='has no column "w"'):
        session.revert(changed, on_conflict={"t": {"w": "keep"}})
    with pytest.raises(dl.EntryNotFoundError, match="did not change u"):
        session.revert(changed, rows={"u": [1]})


def test_a_tag_names_the_snapshot(session: dl.Session) -> None:
    before = rows(session)
    session.sql("DELETE FROM t WHERE i < 30")
    session.tag("oops")
    session.revert("oops")
    assert rows(session) == before


def test_a_commit_in_between_makes_it_run_again(
    session: dl.Session, uri: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client deletes from the same file before the commit: what it deleted stays deleted."""
    session.sql("UPDATE t SET v = 'then' WHERE i < 40")
    changed = newest(session)
    stage, done = Merge.stage, []

    def staged(self: Merge, bring: Any) -> None:
        stage(self, bring)
        if not done:
            done.append(True)
            session._lakes.release()
            with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as other:
                other.sql("DELETE FROM t WHERE i = 45")
                other.sql("INSERT INTO t VALUES (300, 'late', 0)")

    monkeypatch.setattr(Merge, "stage", staged)
    session.revert(changed)
    assert session.sql("SELECT max(i), count(*) FROM t").fetchall() == [(300, 53)]
    assert session.sql("SELECT count(*) FROM t WHERE v = 'then' OR i = 45").fetchall() == [(0,)]
