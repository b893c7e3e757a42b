"""The kernel says which tables have moved on since an output was made; what it cannot prove, it calls unknown."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.magics.questions import Questions
from ducklake_lab.magics.watching import Watch
from ducklake_lab.widgets.recorded import KEY, record_of


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=str(tmp_path / "data"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE birds (name VARCHAR, weight INTEGER); CREATE TABLE places (place VARCHAR)")
        opened.sql("INSERT INTO birds VALUES ('mallard', 1100); INSERT INTO places VALUES ('pond')")
        yield opened


def reads(session: dl.Session, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = record_of(session.sql(text))[KEY]["reads"]
    return found


def ask(recorded: list[dict[str, Any]], **sessions: dl.Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Questions(lambda: sessions).ask("moved_on", {"reads": recorded})["reads"]
    return found


def tables(session: dl.Session, recorded: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """State of each table, and by how many snapshots it is ahead."""
    return [(table["state"], table["ahead"]) for one in ask(recorded, s=session) for table in one["tables"]]


def test_only_snapshots_that_change_the_table_count(session: dl.Session) -> None:
    both = reads(session, "SELECT * FROM birds, places")
    assert tables(session, both) == [("same", 0), ("same", 0)]
    session.sql("INSERT INTO birds VALUES ('teal', 330)")
    session.sql("CREATE TABLE other (i INTEGER)")
    session.sql("UPDATE birds SET weight = 340 WHERE name = 'teal'")
    assert tables(session, both) == [("ahead", 2), ("same", 0)]
    before = session.current_snapshot().snapshot_id
    session.sql("CALL lake.flush_inlined_data(); CALL lake.merge_adjacent_files(); CALL lake.rewrite_data_files()")
    assert session.current_snapshot().snapshot_id > before
    assert tables(session, both) == [("ahead", 2), ("same", 0)]
    session.sql("ALTER TABLE places ADD COLUMN height DOUBLE")
    assert tables(session, both) == [("ahead", 2), ("ahead", 1)]
    assert tables(session, reads(session, "SELECT * FROM birds, places")) == [("same", 0), ("same", 0)]


def test_counts_are_those_of_the_reads_own_snapshot(session: dl.Session) -> None:
    recorded = []
    for weight in range(4):
        recorded += reads(session, "FROM birds")
        session.sql(f"UPDATE birds SET weight = {weight}")
    assert tables(session, recorded) == [("ahead", 4), ("ahead", 3), ("ahead", 2), ("ahead", 1)]


def test_tables_that_are_gone_or_have_other_names(session: dl.Session) -> None:
    both = reads(session, "SELECT * FROM birds, places")
    session.sql("ALTER TABLE birds RENAME TO fowl; DROP TABLE places")
    assert tables(session, both) == [("renamed", 0), ("dropped", 1)]
    (answer,) = ask(both, s=session)
    assert (answer["tables"][0]["name"], answer["tables"][0]["diff"]) == ("fowl", True)
    assert "diff" not in answer["tables"][1]
    session.sql("CREATE TABLE places (place VARCHAR); INSERT INTO fowl VALUES ('swan', 1)")
    assert tables(session, both) == [("ahead", 1), ("replaced", 1)]


def test_views_and_macros_are_followed(session: dl.Session) -> None:
    session.sql("CREATE VIEW light AS FROM birds WHERE weight < 500; CREATE MACRO twice(x) AS 2 * x")
    session.sql("CREATE MACRO heavy(least) AS TABLE FROM birds WHERE weight > least")
    recorded = reads(session, "SELECT twice(weight) FROM light UNION ALL SELECT weight FROM heavy(1)")

    def definitions() -> list[str]:
        return [one["state"] for one in ask(recorded, s=session)[0]["definitions"]]

    assert [(one["kind"], one["name"]) for one in recorded[0]["definitions"]] == [
        ("macro", "heavy"),
        ("macro", "twice"),
        ("view", "light"),
    ]
    assert definitions() == ["same", "same", "same"]
    session.sql("CREATE TABLE other (i INTEGER); COMMENT ON VIEW light IS 'small'")
    assert definitions() == ["same", "same", "same"]
    session.sql("CREATE OR REPLACE VIEW light AS FROM birds WHERE weight < 400")
    session.sql("CREATE OR REPLACE MACRO twice(x) AS 3 * x")
    session.sql("DROP MACRO TABLE heavy")
    assert definitions() == ["dropped", "replaced", "replaced"]
    assert tables(session, recorded) == [("same", 0)]


def test_a_lake_is_found_under_another_name_and_in_a_variable(session: dl.Session, tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/other.ducklake"
    with dl.connect(uri, alias="first", data_path=f"{tmp_path}/more", engine="duckdb") as made:
        made.sql("CREATE TABLE t AS FROM range(3)")
        recorded = reads(made, "FROM t")
    with dl.connect(uri, alias="second", engine="duckdb") as other:
        (answer,) = ask(recorded, **{"": session, "mine": other})
        assert (answer["known"], answer["alias"], answer["session"]) == (True, "second", "mine")


def test_a_lake_that_is_not_attached_is_unknown(session: dl.Session, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/other.ducklake", data_path=f"{tmp_path}/more", engine="duckdb") as made:
        made.sql("CREATE TABLE t AS FROM range(3)")
        recorded = reads(made, "FROM t")
    for sessions in ({"s": session}, {}):
        assert ask(recorded, **sessions) == [{"known": False, "reason": "its lake is not attached"}]


def test_a_copy_with_another_history_is_unknown(tmp_path: Path) -> None:
    first, second = f"{tmp_path}/first.ducklake", f"{tmp_path}/second.ducklake"
    with dl.connect(f"ducklake:{first}", data_path=f"{tmp_path}/data", engine="duckdb") as made:
        made.sql("CREATE TABLE t (i INTEGER)")
        common = reads(made, "FROM t")
    shutil.copy(first, second)
    with dl.connect(f"ducklake:{second}", alias="copy", engine="duckdb") as copy:
        copy.sql("INSERT INTO t VALUES (1)")
        of_copy = reads(copy, "FROM t")
        with dl.connect(f"ducklake:{first}", alias="first", engine="duckdb") as original:
            assert not ask(of_copy, s=original)[0]["known"]
            original.sql("CREATE TABLE u (i INTEGER)")
            assert not ask(of_copy, s=original)[0]["known"]
            assert ask(of_copy, s=original, c=copy)[0]["alias"] == "copy"
            assert ask(common, s=original, c=copy)[0]["alias"] == "first"
            renamed = [{**common[0], "alias": "neither"}]
            assert not ask(renamed, s=original, c=copy)[0]["known"]
            original.sql("CREATE TABLE v (i INTEGER)")
            assert tables(original, common) == [("same", 0)]


def test_expired_snapshots_prove_nothing(session: dl.Session) -> None:
    session.sql("CALL lake.flush_inlined_data()")
    both = reads(session, "SELECT * FROM birds, places")
    session.sql("INSERT INTO birds SELECT 'teal', i FROM range(100) AS r(i)")
    session.sql("DELETE FROM birds WHERE weight = 5")
    at = session.current_snapshot().snapshot_id
    session.sql(f"CALL lake.expire_snapshots(versions => [{at - 1}])")
    (answer,) = ask(both, s=session)
    birds = answer["tables"][0]
    assert (birds["state"], birds["ahead"], birds["at_least"]) == ("ahead", 1, True)
    session.sql(f"CALL lake.expire_snapshots(versions => [{both[0]['snapshot']}])")
    (answer,) = ask(both, s=session)
    assert answer["expired"]
    assert [(one["state"], one["ahead"], one["diff"]) for one in answer["tables"]] == [
        ("ahead", 1, False),
        ("unknown", 0, False),
    ]


def test_a_snapshot_without_changes_proves_nothing(session: dl.Session) -> None:
    both = reads(session, "SELECT * FROM birds, places")
    session.sql("INSERT INTO birds SELECT 'teal', i FROM range(100) AS r(i)")
    at = session.current_snapshot().snapshot_id
    session.sql(f"DELETE FROM __ducklake_metadata_lake.ducklake_snapshot_changes WHERE snapshot_id = {at}")
    assert tables(session, both)[0] == ("unknown", 0)


def test_a_table_that_no_commit_had_made_is_unknown(session: dl.Session) -> None:
    session.sql("BEGIN; CREATE TABLE nests (i INTEGER)")
    recorded = reads(session, "FROM nests")
    session.sql("COMMIT")
    assert tables(session, recorded) == [("unknown", 0)]


def test_a_lake_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/gone.ducklake", alias="gone", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        recorded = reads(session, "FROM t")
        (tmp_path / "gone.ducklake").unlink()
        (answer,) = ask(recorded, s=session)
        assert not answer["known"] and "gone.ducklake" in answer["reason"]


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        [1],
        [{}],
        [{"lake": "x", "alias": "y", "snapshot": "1; DROP TABLE t", "time": "", "tables": []}],
        [{"lake": "x", "alias": "y", "snapshot": True, "time": "", "tables": []}],
        [{"lake": "x", "alias": "y", "snapshot": 1 << 80, "time": "", "tables": []}],
        [{"lake": "x", "alias": "y", "snapshot": 1, "time": "", "tables": [{"id": -1, "schema": [], "name": "t"}]}],
        [{"lake": "x", "alias": "y", "snapshot": 1, "time": "", "tables": [{"id": 1, "schema": "main", "name": "t"}]}],
        [{"lake": "x", "alias": "y", "snapshot": 1, "time": "", "tables": [], "definitions": [{"kind": "x"}]}],
        [{"lake": "x", "alias": "y", "snapshot": 1, "time": "", "tables": [], "definitions": {}}],
    ],
)
def test_other_records_are_refused(session: dl.Session, given: Any) -> None:
    with pytest.raises(dl.UsageError, match="form"):
        ask(given, s=session)


@pytest.mark.every_catalog
def test_a_commit_of_another_session_is_noticed(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    noticed, idle, uri = threading.Event(), [True], lake_uri()
    watch = Watch(noticed.set, lambda: idle[0])
    with (
        dl.connect(uri, alias="lake", data_path=str(tmp_path / "data"), engine="duckdb") as session,
        dl.connect(uri, alias="other", engine="duckdb") as other,
    ):
        questions = Questions(lambda: {"": session}, dict, watch)
        assert questions.ask("watch", {"seconds": 60}) == {"watching": True}
        questions.ask("lakes", {})
        assert not noticed.wait(2)
        other.sql("CREATE TABLE noticed (i INTEGER)")
        assert noticed.wait(30)
        questions.ask("lakes", {})
        noticed.clear()
        # during a cell nothing is said, and after it what happened meanwhile
        idle[0] = False
        other.sql("INSERT INTO noticed VALUES (2)")
        assert not noticed.wait(2)
        idle[0] = True
        assert noticed.wait(30)
        watch.go_on(0, [])
    assert Questions(lambda: {"": session}).ask("watch", {"seconds": 60}) == {"watching": False}
