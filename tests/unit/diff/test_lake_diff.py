"""Diffs of whole lakes: tables that came, went and changed; what is read for them; views and commands."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.diff import lake
from ducklake_lab.magics.ducklake import DuckLakeMagics

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE SCHEMA s; CREATE TABLE t AS SELECT i AS k, i % 7 AS v FROM range(50) r(i)")
        for name in ("same", "gone", "s.old", "noted", "s.still"):
            session.sql(f"CREATE TABLE {name} AS SELECT 1 AS a")
        yield session


def change(session: dl.Session) -> int:
    """Changes all kinds of tables; gives the snapshot before."""
    start = session.current_snapshot().snapshot_id
    session.sql("UPDATE t SET v = v + 1 WHERE k < 3; DELETE FROM t WHERE k > 44; INSERT INTO t VALUES (100, 1)")
    session.sql('DROP TABLE gone; CREATE TABLE "a <b>" AS FROM range(20) r(i); ALTER TABLE s.old RENAME TO new')
    session.sql("COMMENT ON TABLE noted IS 'hi'; INSERT INTO same VALUES (2); DELETE FROM same WHERE a = 2")
    session.sql("CREATE TABLE never (i INTEGER); DROP TABLE never; CALL lake.merge_adjacent_files()")
    return start


def listed(found: lake.LakeDiff) -> list[tuple[str, str, int, int, int]]:
    return [(one.kind, one.name, one.summary.deleted, one.summary.inserted, one.summary.updated) for one in found]


EXPECTED = [
    ("dropped", "main.gone", 1, 0, 0),
    ("created", "main.a <b>", 0, 20, 0),
    ("altered", "main.noted", 0, 0, 0),
    ("altered", "s.new", 0, 0, 0),
    ("changed", "main.t", 5, 1, 3),
]


@pytest.mark.slow
def test_tables_that_differ(session: dl.Session) -> None:
    start = change(session)
    found = session.diff(start)
    assert listed(found) == EXPECTED
    assert found.unchanged == 2 and len(found) == 5 and not found.is_empty
    assert found.table("NEW").renamed_from == "s.old"
    assert [one.name for one in found.of_kind("altered")] == ["main.noted", "s.new"]
    assert found.table("main.t").diff.rows(kind="inserted")[0].after == {"k": 100, "v": 1}
    assert found.table("gone").diff.summary.deleted == 1 and found.table("a <b>").diff.summary.inserted == 20
    assert repr(found).splitlines()[1] == "dropped main.gone: 1 deleted, 0 inserted, 0 updated"
    with pytest.raises(dl.EntryNotFoundError, match=r"No table main\.x differs"):
        found.table("main.x")
    assert json.loads(found.to_json())["tables"][4]["summary"]["updated"] == 3
    newest = session.current_snapshot().snapshot_id
    assert session.diff(newest).is_empty and session.diff(newest).unchanged == 6
    back = {one.name: one.kind for one in session.diff(newest, start)}
    assert back == {
        "main.gone": "created",
        "main.a <b>": "dropped",
        "main.noted": "altered",
        "s.old": "altered",
        "main.t": "changed",
    }


@pytest.mark.slow
def test_only_touched_tables_are_read(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    start = change(session)
    read: list[str] = []
    compute = lake.diff_sides

    def counted(before: object, after: object, name: str, **given: object) -> object:
        read.append(name)
        return compute(before, after, name, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(lake, "diff_sides", counted)
    found = session.diff(start)
    assert sorted(read) == ["main.noted", "main.same", "main.t", "s.new"]
    assert found.table("gone").diff.summary.deleted == 1
    assert read[-1] == "main.gone"


@pytest.mark.slow
def test_snapshots_that_expired_in_between(session: dl.Session) -> None:
    start = change(session)
    newest = session.current_snapshot().snapshot_id
    between = ", ".join(map(str, range(start + 1, newest)))
    session.sql(f"CALL lake.expire_snapshots(versions => [{between}])")
    found = session.diff(start, newest)
    assert listed(found) == EXPECTED and found.unchanged == 2


@pytest.mark.slow
def test_states_are_named_by_tags(session: dl.Session) -> None:
    session.tag("before", change(session))
    session.tag("after")
    assert listed(session.diff("before", "after")) == EXPECTED
    with session.transaction() as tx:
        session.sql("DELETE FROM t")
        with pytest.raises(dl.UsageError, match=r"tx\.diffs\(\)"):
            session.diff("before")
        assert listed(session.diff("before", "after")) == EXPECTED
        tx.rollback()


@pytest.mark.slow
def test_views(session: dl.Session, tmp_path: Path) -> None:
    found = session.diff(change(session))
    text = " ".join(html.unescape(re.sub("<style>.*?</style>|<[^>]+>", " ", found._repr_html_())).split())
    assert "1 table dropped · 1 table created · 2 tables altered · 1 table changed · 2 unchanged" in text
    assert "main.gone dropped − 1 – – –" in text and "main.t changed − 5 + 1 → 3 3" in text
    assert "s.new was s.old altered" in text and "main.a <b> created" in text
    assert "45 unchanged" not in text and "42 unchanged" in text  # the diff of t
    start, end = found.start.snapshot_id, found.end.snapshot_id
    assert f"1 created table: %ducklake preview 'main.a <b>' --at {end}" in text
    assert f"1 dropped table: %ducklake preview main.gone --at {start}" in text
    found.save(tmp_path / "lake.html")
    found.save(tmp_path / "lake.json")
    page = (tmp_path / "lake.html").read_text()
    assert page.startswith("<!doctype html>") and "a <b>" not in page
    with pytest.raises(dl.UsageError, match=r"as \.html or \.json"):
        found.save(tmp_path / "lake.sql")


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    DuckLakeMagics(shell)
    import ducklake_lab

    ducklake_lab.load_ipython_extension(shell)

    def run(cell: str) -> object:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    run(f"%ducklake connect ducklake:sqlite:{tmp_path}/lake.sqlite --alias lake")
    run("%config DuckLakeMagics.engine = 'duckdb'")
    run("%%ducklake\nCREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2); CREATE TABLE u (i INTEGER)")
    for cell in ("diff 1 3", "diff 1", f"diff 1 3 --html {tmp_path}/lake.html"):
        found = run(f"%ducklake {cell}")
        assert isinstance(found, lake.LakeDiff)
        assert [(one.kind, one.name) for one in found] == [("created", "main.u"), ("changed", "main.t")]
    run("%ducklake tag first 1")
    assert len(run("%ducklake diff first 2")) == 1  # type: ignore[arg-type]
    assert run("%ducklake diff t 1 2").summary.inserted == 1  # type: ignore[attr-defined]
    assert run("%ducklake diff t 1").summary.inserted == 1  # type: ignore[attr-defined]
    last: Any = run("%ducklake diff t")
    assert (last.start.snapshot_id, last.end.snapshot_id, last.summary.inserted) == (1, 2, 1)
    for cell, message in (
        ("diff u", "Snapshot 3 made main.u; there is no earlier state to compare with."),
        ("diff t --with u", "Say which snapshot of main.t is compared with u."),
        ("diff nowhere 2", 'no table "nowhere"'),
        ("diff 1 2 --patch x.sql", "--patch is of one table; name it: %ducklake diff TABLE 1"),
        ("diff 1 2 --with t", "--with is of one table"),
    ):
        with pytest.raises(Exception, match=re.escape(message)):
            run(f"%ducklake {cell}")
    shell.reset(new_session=False)
    InteractiveShell.clear_instance()


def test_at_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/lake.sqlite"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i; INSERT INTO t VALUES (2); CREATE TABLE u (i INTEGER)")
    assert main(["diff", uri, "1", "-1", "--exit-code"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "lake  snapshot 1 → 2",
        "0 tables unchanged",
        "changed main.t: 0 deleted, 1 inserted, 0 updated",
    ]
    assert main(["diff", uri, "3", "--exit-code"]) == 0
    assert main(["diff", uri, "1", "--json"]) == 0
    assert '"kind": "created"' in capsys.readouterr().out
    assert main(["diff", uri, "1", "2", "--key", "i"]) == 2
    assert "--key is of one table" in capsys.readouterr().err
