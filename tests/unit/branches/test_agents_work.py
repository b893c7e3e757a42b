"""Work of agents: commits on branches by who, when, with which statement and rows; read again after a change alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.agents.door import Door
from ducklake_lab.widgets.agents import AgentsView

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def uri(lake_uri: Callable[..., str], tmp_path: Path) -> str:
    made = lake_uri()
    with dl.connect(made, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(50) r(i)")
        session.branch("plain")
        session.switch("plain")
        session.sql("DELETE FROM t")
    return made


@pytest.fixture
def session(uri: str) -> Iterator[dl.Session]:
    with dl.Session(engine="duckdb") as session:
        session.attach(uri, alias="lake")
        yield session


def test_commits_of_agents_are_listed_and_stay_current(session: dl.Session, uri: str) -> None:
    assert list(session.agents()) == []
    with Door(uri, "fix", client="robot <b>", alias="lake") as door:
        door.change("UPDATE t SET v = 'x' WHERE i < 20", f"mend {EVIL}")
        work = session.agents()
        (one,) = work
        assert (one.branch.name, one.agents, one.others, one.to_merge, one.verdict) == ("fix", ("robot b",), 0, 1, None)
        (entry,) = one.commits
        assert entry.info.author == "agent:robot b" and entry.info.commit_message == f"mend {EVIL}"
        assert (entry.rows_added, entry.rows_removed) == (20, 20)
        assert entry.note is not None and entry.note.statement == "UPDATE t SET v = 'x' WHERE i < 20"
        assert work.newer() is work
        view = AgentsView(work)
        assert view.answer_look({}) == {"changed": False}
        door.change("INSERT INTO t SELECT 100 + i, 'n' FROM range(30) r(i)")
        assert view.answer_look({}) == {"changed": True}
    commits = view.branches[0]["commits"]
    assert [(row["rows"], row["agent"]) for row in commits] == [("+20 −20", "robot b"), ("+30", "robot b")]  # type: ignore[index, attr-defined]
    html = view.still()
    assert "&lt;img" in html and "<img" not in html and "%ducklake review fix" in html and "2 to merge" in html
    assert "&lt;img" in view.answer_review({"branch": "fix"})["html"]
    with pytest.raises(dl.UsageError, match="no such branch"):
        view.answer_review({"branch": "plain"})
    # people's commits on the same branch are counted, not listed
    session.switch("fix")
    session.sql("DELETE FROM t WHERE i = 1")
    session.switch(None)
    session.review("fix").ask_for_changes("no", author="ann")
    (one,) = session.agents()
    assert (len(one.commits), one.others, one.to_merge, one.verdict) == (2, 1, 3, "changes asked for")
    session.merge("fix")
    (one,) = session.agents()
    assert (one.to_merge, one.rows) == (0, (50, 20))
    found = json.loads(session.agents().to_json())["branches"][0]
    assert (found["branch"], found["agents"], [c["rows_added"] for c in found["commits"]]) == (
        "fix",
        ["robot b"],
        [20, 30],
    )
    assert repr(session.agents()).splitlines()[1] == "<Branch fix: 2 commits by robot b>"
