"""Answers to the sidebar about lakes, and about a kernel that is busy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.magics.questions import Questions
from ducklake_lab.magics.sidebar import SidebarComm, sessions_of


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=str(tmp_path / "data")) as opened:
        opened.sql("CREATE TABLE t (a INTEGER NOT NULL, b STRUCT(x VARCHAR, y DOUBLE[]))")
        opened.sql("INSERT INTO t VALUES (1, NULL), (2, NULL)")
        opened.sql("CREATE SCHEMA other")
        yield opened


@pytest.fixture
def questions(session: dl.Session) -> Questions:
    return Questions(lambda: {"": session}, lambda: {"production": {"uri": "ducklake:x.ducklake"}})


def test_lakes_say_where_statements_read(session: dl.Session, questions: Questions):
    (lake,) = questions.ask("lakes", {})["lakes"]
    assert (lake["alias"], lake["snapshot"], lake["current"], lake["schema"]) == ("lake", 3, True, "main")
    assert not lake["travelling"] and not lake["in_transaction"] and not lake["read_only"]
    assert questions.ask("lakes", {})["connections"] == ["production"]
    session.sql("BEGIN; CREATE TABLE u (c INTEGER)")
    assert questions.ask("lakes", {})["lakes"][0]["in_transaction"]
    tables = questions.ask("tree", {"alias": "lake"})["schemas"][0]["tables"]
    assert [table["name"] for table in tables] == ["t", "u"]
    session.sql("ROLLBACK")


def test_a_lake_says_how_to_come_back_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLACE", str(tmp_path))
    saved = {"kept": {"uri": "ducklake:${PLACE}/kept.ducklake"}, "broken": {"uri": "ducklake:${NOT_SET}.ducklake"}}
    with dl.Session() as session:
        for name, alias in (("new", "new"), ("kept", "kept"), ("new2", "other")):
            session.attach(f"ducklake:{tmp_path}/{name}.ducklake", alias=alias)
        lakes = Questions(lambda: {"": session}, lambda: saved).ask("lakes", {})["lakes"]
    assert [(lake["uri"], lake["named"]) for lake in lakes] == [
        (f"ducklake:{tmp_path}/new.ducklake", False),
        (None, False),
        (f"ducklake:{tmp_path}/new2.ducklake", True),
    ]


def test_a_lake_that_two_sessions_see_alike_is_listed_once(lake_uri: Callable[..., str], tmp_path: Path):
    uri, elsewhere = lake_uri(), f"ducklake:sqlite:{tmp_path}/other.sqlite"
    data = {"data_path": str(tmp_path / "data"), "engine": "duckdb"}
    with dl.connect(uri, alias="lake", **data) as own, dl.connect(uri, alias="same", **data) as held:
        held.attach(elsewhere, alias="other", data_path=str(tmp_path / "more"))
        questions = Questions(lambda: {"": own, "held": held})

        def listed() -> list[tuple[str, str]]:
            return [(lake["session"], lake["alias"]) for lake in questions.ask("lakes", {})["lakes"]]

        assert listed() == [("", "lake"), ("held", "other")]
        held.sql("BEGIN; CREATE TABLE same.main.t (a INTEGER)")
        assert listed() == [("", "lake"), ("held", "same"), ("held", "other")]
        held.sql("COMMIT")
        assert listed() == [("", "lake"), ("held", "other")]
        held.attach(uri, alias="old", snapshot_version=0)
        assert ("held", "old") in listed()


def test_a_lake_at_an_old_snapshot_is_travelling(lake_uri: Callable[..., str], tmp_path: Path):
    uri = lake_uri()
    with dl.connect(uri, data_path=str(tmp_path / "data")) as made:
        made.sql("CREATE TABLE t (a INTEGER)")
        made.sql("CREATE TABLE u (a INTEGER)")
    with dl.Session() as session:
        session.attach(uri, alias="old", snapshot_version=1)
        questions = Questions(lambda: {"mine": session})
        (lake,) = questions.ask("lakes", {})["lakes"]
        assert (lake["session"], lake["snapshot"], lake["travelling"], lake["read_only"]) == ("mine", 1, True, True)
        given = {"alias": "old", "session": "mine"}
        assert [table["name"] for table in questions.ask("tree", given)["schemas"][0]["tables"]] == ["t"]
        assert [entry["id"] for entry in questions.ask("snapshots", given)["snapshots"]] == [1, 0]


def test_the_tree_has_types_and_counts(questions: Questions):
    main, other = questions.ask("tree", {"alias": "lake"})["schemas"]
    assert (main["name"], other["name"], other["tables"]) == ("main", "other", [])
    (table,) = main["tables"]
    assert (table["name"], table["rows"]) == ("t", 2)
    assert [(column["name"], column["type"], column["required"]) for column in table["columns"]] == [
        ("a", "INTEGER", True),
        ("b", "STRUCT(x VARCHAR, y DOUBLE[])", False),
    ]


def test_schemas_come_before_those_inside_of_them(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.1") as session:
        session.sql('CREATE SCHEMA a; CREATE SCHEMA a.b; CREATE SCHEMA "a.b"; CREATE TABLE a.b.n AS FROM range(50)')
        session.sql(
            "CREATE VIEW a.b.v (x) AS SELECT 1 AS i; COMMENT ON COLUMN a.b.v.x IS 'one'; COMMENT ON VIEW a.b.v IS 'v'"
        )
        questions = Questions(lambda: {"": session}, list)
        schemas = questions.ask("tree", {"alias": "lake"})["schemas"]
        assert [list(schema["path"]) for schema in schemas] == [["a"], ["a", "b"], ["a.b"], ["main"]]
        inner = schemas[1]
        assert (inner["name"], inner["views"]) == ("b", ["v"])
        assert inner["view_comments"] == {"v": {"comment": "v", "columns": {"x": "one"}}}
        assert questions.ask("files", {"alias": "lake", "schema": inner["key"], "table": "n"})["count"] == 1


def test_snapshots_come_newest_first(questions: Questions):
    newest, *_ = questions.ask("snapshots", {"alias": "lake", "limit": 2})["snapshots"]
    assert (newest["id"], newest["kind"], newest["changes"]) == (3, "schema", ["created schema other"])
    assert len(questions.ask("snapshots", {"alias": "lake", "limit": 2})["snapshots"]) == 2


def test_files_are_listed(session: dl.Session, questions: Questions):
    import pyarrow as pa

    assert questions.ask("files", {"alias": "lake", "schema": "main", "table": "t"}) == {"count": 0, "files": []}
    session.write(pa.table({"n": range(100)}), "other.numbers", mode="create")
    answer = questions.ask("files", {"alias": "lake", "schema": "other", "table": "numbers"})
    assert answer["count"] == len(answer["files"]) >= 1
    assert sum(file["rows"] for file in answer["files"]) == 100


@pytest.mark.slow
def test_what_snapshots_touched_says_how_to_look_at_it(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE kept (a INTEGER); CREATE TABLE gone (a INTEGER)")
        session.sql("BEGIN; INSERT INTO kept VALUES (1); INSERT INTO gone VALUES (1); COMMIT")
        session.sql(
            'CREATE SCHEMA "s.1"; DROP TABLE gone; ALTER TABLE kept RENAME TO "a b"; INSERT INTO "a b" VALUES (2)'
        )
        questions = Questions(lambda: {"": session}, dict)

        def changed(end: int, start: int | None = None) -> list[dict[str, Any]]:
            answer = questions.ask("changed", {"alias": "lake", "end": end, "start": start})
            assert answer["start"] == (end - 1 if start is None else start)
            return [{**table, "path": list(table["path"])} for table in answer["tables"]]

        kept = {"path": ["main"], "name": "a b", "diff": True}
        assert changed(1) == [{"path": ["main"], "name": "kept", "at": 1}]
        assert changed(3) == [kept, {"path": ["main"], "name": "gone", "at": 3}]
        assert changed(4) == []
        assert changed(7, 2) == [kept, {"path": ["main"], "name": "gone", "at": 2}]
        session.sql("CALL lake.expire_snapshots(versions => [3])")
        assert questions.ask("changed", {"alias": "lake", "end": 4})["start"] == 2
        assert questions.ask("changed", {"alias": "lake", "end": 0})["tables"] == []


def test_the_last_change_of_a_table_is_one_of_its_contents(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        questions = Questions(lambda: {"": session}, dict)
        given = {"alias": "lake", "schema": "main", "table": "t"}
        session.sql("CREATE TABLE t (a INTEGER)")
        assert questions.ask("last_change", given) == {"start": None, "end": 1}
        session.sql("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); CREATE TABLE other (a INTEGER)")
        assert questions.ask("last_change", given) == {"start": 2, "end": 3}
        session.sql("CALL lake.flush_inlined_data()")
        assert session.current_snapshot().snapshot_id == 5
        assert questions.ask("last_change", given) == {"start": 2, "end": 3}


@pytest.mark.parametrize(
    ("question", "given", "message"),
    [
        ("tre", {}, "tree"),
        ("sql", {"text": "DROP TABLE t"}, "no question"),
        ("tree", {"sql": "DROP TABLE t"}, "wrong arguments"),
        ("tree", {"alias": "lake'; --"}, "is attached"),
        ("snapshots", {"alias": "gone"}, "is attached any more"),
        ("tree", {"alias": "lake", "session": "gone"}, "refresh the sidebar"),
        ("files", {"alias": "lake", "schema": "main", "table": "nothing"}, "no table"),
    ],
)
def test_other_questions_are_refused(questions: Questions, question: str, given: dict[str, Any], message: str):
    with pytest.raises(dl.DuckLakeError, match=message):
        questions.ask(question, given)


class Comm:
    """Keeps what is sent over it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self.receive = lambda data: callback({"content": {"data": data}})

    def send(self, data: dict[str, Any]) -> None:
        self.sent.append(data)


class Shell:
    def __init__(self) -> None:
        self.events = self
        self.user_ns: dict[str, object] = {}
        self.callbacks: dict[str, Callable[..., None]] = {}

    def register(self, event: str, callback: Callable[..., None]) -> None:
        self.callbacks[event] = callback


def test_a_question_during_a_cell_is_told_to_wait():
    shell, comm = Shell(), Comm()
    SidebarComm(shell, lambda question, given: {"asked": question}, comm)  # type: ignore[arg-type]
    comm.receive({"id": "1", "question": "lakes"})
    shell.callbacks["pre_run_cell"]()
    comm.receive({"id": "2", "question": "lakes"})
    shell.callbacks["post_run_cell"]()
    comm.receive({"id": "3", "question": "lakes"})
    assert comm.sent == [
        {"id": "1", "answer": {"asked": "lakes"}},
        {"id": "2", "busy": True},
        {"event": "ran"},
        {"id": "3", "answer": {"asked": "lakes"}},
    ]


def test_what_runs_is_sent_until_it_is_done():
    comm = Comm()
    page = SidebarComm(Shell(), lambda question, given: {}, comm)  # type: ignore[arg-type]
    page.show_running("SELECT 1", {"text": "stage 1/2", "share": 0.5})
    page.show_running("SELECT 1", None)
    assert comm.sent == [
        {"event": "running", "statement": "SELECT 1", "text": "stage 1/2", "share": 0.5},
        {"event": "done"},
    ]


def test_an_error_is_an_answer():
    def ask(question: str, given: object) -> dict[str, Any]:
        raise dl.UsageError("There is no such thing.")

    comm = Comm()
    SidebarComm(Shell(), ask, comm)  # type: ignore[arg-type]
    comm.receive({"id": "1", "question": "lakes"})
    assert comm.sent == [{"id": "1", "error": "There is no such thing."}]


def test_sessions_of_variables_are_found_once():
    shell = Shell()
    with dl.Session() as own, dl.Session() as other:
        shell.user_ns = {"a": own, "b": other, "c": other, "_": other, "d": 1}
        assert sessions_of(shell, lambda: own)() == {"": own, "b": other}  # type: ignore[arg-type]
        assert sessions_of(shell, lambda: None)() == {"a": own, "b": other}  # type: ignore[arg-type]
