"""Messages between a page and the widgets behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipywidgets
import pyarrow as pa
import pytest
from ipywidgets.widgets.widget import _instances

import ducklake_lab as dl
from ducklake_lab.web.comms import packed
from ducklake_lab.web.conversation import Conversation
from tests.browser import hostile
from tests.unit.web.talking import unpacked

pytestmark = pytest.mark.sampled(3)


class Talk:
    """A conversation with all that came to the page."""

    def __init__(self, session: dl.Session) -> None:
        self.arrived: list[tuple[dict[str, Any], list[bytes]]] = []
        self.conversation = Conversation(session, lambda data: self.arrived.append(unpacked(data)))

    def say(self, **message: Any) -> tuple[dict[str, Any], list[bytes]]:
        """Says something, and gives the last message that came back."""
        self.conversation.receive(json.dumps(message))
        return self.arrived[-1]

    def ask(self, comm: str, **content: Any) -> tuple[dict[str, Any], list[bytes]]:
        """A widget's own question."""
        message, buffers = self.say(type="comm_msg", comm=comm, data={"method": "custom", "content": content})
        return message["data"]["content"], buffers


@pytest.fixture
def lake(tmp_path: Path) -> str:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql(
            'CREATE TABLE t (i INTEGER); INSERT INTO t FROM range(3); CREATE SCHEMA s; CREATE TABLE s."a.b" (x INT)'
        )
    return uri


@pytest.fixture
def talk(lake: str) -> Iterator[Talk]:
    with dl.Session(engine="duckdb") as session:
        session.attach(lake, read_only=True)
        talk = Talk(session)
        yield talk
        talk.conversation.end()


def test_a_message_carries_its_buffers() -> None:
    assert unpacked(packed({"a": "ü"}, [b"12", b"", memoryview(b"3")])) == ({"a": "ü"}, [b"12", b"", b"3"])
    with pytest.raises(ValueError, match="JSON"):
        packed({"a": float("nan")})


def test_a_view_comes_with_its_state_and_the_heading_of_its_snapshot(talk: Talk) -> None:
    answer, _ = talk.say(type="open", request=1, view="snapshots")
    assert answer["request"] == 1
    assert answer["head"]["facts"].startswith("snapshot 4 · ")
    assert answer["head"]["snapshot"] == 4
    assert answer["head"]["tables"] == [["main", "t", "main.t"], ["s", "a.b", "s.a.b"]]
    (state, buffers), _ = talk.arrived
    assert state["comm"] == answer["comm"]
    assert state["data"]["buffer_paths"] == [["overview"]]
    assert pa.ipc.open_stream(buffers[0]).read_all()["id"].to_pylist() == [4, 3, 2, 1, 0]
    assert state["data"]["state"]["total"] == 5
    assert not {"_esm", "_css", "layout"} & set(state["data"]["state"])


def test_a_widget_is_asked_and_set(talk: Talk) -> None:
    answer, _ = talk.say(type="open", view="rows", schema="main", table="t")
    content, (page,) = talk.ask(answer["comm"], type="page", request="x", start=0, count=9, first=0, wide=1)
    assert content == {"request": "x"}
    assert pa.ipc.open_stream(page).read_all()["c0"].to_pylist() == ["0", "1", "2"]
    talk.say(type="comm_msg", comm=answer["comm"], data={"method": "update", "state": {"filters": {"i": "> 0"}}})
    passing = [
        message["data"]["state"].get("passing")
        for message, _ in talk.arrived
        if "data" in message and "state" in message["data"]
    ]
    assert passing[-1] == 2


def test_names_are_names_and_no_sql(talk: Talk) -> None:
    answer, _ = talk.say(type="open", view="rows", schema="s", table="a.b")
    assert answer["type"] == "answer"
    failed, _ = talk.say(type="open", request=7, view="files", schema="main", table='t"; DROP TABLE t; --')
    assert failed["type"] == "failed"
    assert failed["request"] == 7
    assert "There is no table" in failed["error"]
    assert "\n" not in failed["error"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "A page sends JSON"),
        ("[]", "A page sends JSON objects."),
        ("{}", 'A page sends no "None".'),
        ('{"type": "sql", "text": "SELECT 1"}', 'A page sends no "sql".'),
        ('{"type": "open", "view": "row"}', 'There is no view "row". Did you mean rows?'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(talk: Talk, text: str, error: str) -> None:
    talk.conversation.receive(text)
    ((message, _),) = talk.arrived
    assert message["type"] == "failed"
    assert error in message["error"]


def test_a_fault_of_ours_is_said_and_logged(
    talk: Talk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ipywidgets shows faults in the shell that tests of magics leave, rather than log them
    monkeypatch.setattr("ipywidgets.widgets.widget.get_ipython", lambda: None)
    answer, _ = talk.say(type="open", view="rows", schema="main", table="t")
    content, _ = talk.ask(answer["comm"], type="page", request="x")
    assert content == {"request": "x", "error": "DuckLake Lab failed here: KeyError. The log has the details."}
    logged = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert logged == ["'start'"]
    content, _ = talk.ask(answer["comm"], type="profile", request="y", column="nothing")
    assert 'no column "nothing"' in content["error"]


@pytest.mark.slow
def test_nothing_is_written(talk: Talk, lake: str) -> None:
    with dl.connect(lake, engine="duckdb") as other:
        other.sql("INSERT INTO t FROM range(100); INSERT INTO t FROM range(100)")
    answer, _ = talk.say(type="open", view="files", schema="main", table="t")
    state = talk.arrived[0][0]["data"]["state"]
    assert (len(state["findings"]), state["can_mend"]) == (1, False)
    content, _ = talk.ask(answer["comm"], type="mend", request="m", index=0)
    assert "read-only" in content["error"]
    assert talk.say(type="newest")[0]["snapshot"] == 6


def test_a_commit_elsewhere_is_seen(talk: Talk, lake: str) -> None:
    talk.say(type="open", view="schema")
    with dl.connect(lake, engine="duckdb") as other:
        other.sql("INSERT INTO t VALUES (9)")
    assert talk.say(type="newest")[0]["snapshot"] == 5
    assert "snapshot 5 · 2 schemas · 2 tables · 4 rows" in talk.say(type="open", view="schema")[0]["head"]["facts"]


@pytest.mark.slow
def test_a_commit_while_a_view_is_read_makes_it_be_read_again(
    talk: Talk, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ducklake_lab.widgets import browsers

    commits = iter(["INSERT INTO t VALUES (9)"])

    def schema(session: dl.Session) -> Any:
        for statement in commits:
            with dl.connect(lake, engine="duckdb") as other:
                other.sql(statement)
        return before(session)

    before = browsers.schema
    monkeypatch.setattr(browsers, "schema", schema)
    answer, _ = talk.say(type="open", view="schema")
    ((state, _),) = [one for one in talk.arrived if one[0]["type"] == "comm_msg"]
    assert answer["head"]["snapshot"] == 5
    assert state["data"]["state"]["note"].startswith("snapshot 5 ")


def test_a_closed_view_leaves_nothing_behind(talk: Talk) -> None:
    before = set(_instances)
    answers = [talk.say(type="open", view=view, schema="main", table="t")[0] for view in ("snapshots", "rows", "files")]
    assert len(set(_instances) - before) == 3
    assert all(isinstance(_instances[answer["comm"]], ipywidgets.DOMWidget) for answer in answers)
    closed, _ = talk.say(type="close", request=5, comm=answers[0]["comm"])
    assert closed == {"type": "answer", "request": 5}
    count = len(talk.arrived)
    talk.conversation.receive(
        json.dumps({"type": "comm_msg", "comm": answers[0]["comm"], "data": {"method": "request_state"}})
    )
    assert len(talk.arrived) == count
    talk.conversation.end()
    assert set(_instances) == before


@pytest.mark.slow
def test_hostile_names_open_by_name(tmp_path: Path) -> None:
    hostile.build(tmp_path).close()
    with dl.Session(engine="duckdb") as session:
        session.attach(f"ducklake:sqlite:{tmp_path}/hostile.sqlite", alias="lake", read_only=True)
        talk = Talk(session)
        head = talk.say(type="head")[0]["head"]
        assert ["main", hostile.NAME, f"main.{hostile.NAME}"] in head["tables"]
        for view in ("rows", "files"):
            assert talk.say(type="open", view=view, schema="main", table=hostile.NAME)[0]["type"] == "answer"
        talk.conversation.end()
