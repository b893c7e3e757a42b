"""Outputs record in their metadata which tables of which lakes they show, and at which snapshots."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.widgets import browsers, grids, recorded
from ducklake_lab.widgets.preview import PreviewView
from tests import reference


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=str(tmp_path / "data"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE birds (name VARCHAR, weight INTEGER)")
        opened.sql("INSERT INTO birds VALUES ('mallard', 1100), ('teal', 330)")
        opened.sql("CREATE SCHEMA ponds")
        opened.sql("CREATE TABLE ponds.places AS SELECT 'north' AS place, 'teal' AS bird")
        opened.sql("CREATE VIEW light AS FROM birds WHERE weight < 500")
        yield opened


def record(shown: Any) -> dict[str, Any]:
    """The record of an output, after a way through the JSON of a notebook."""
    if isinstance(shown, dl.Result):
        metadata = recorded.record_of(shown)
    else:
        _, metadata = shown._repr_mimebundle_()
    found: dict[str, Any] = json.loads(json.dumps(metadata)).get(recorded.KEY, {})
    return found


def states(shown: Any) -> list[tuple[object, ...]]:
    """Each state: alias, snapshot, whether it is fixed, whether it is not committed, and the names of its tables."""
    return [
        (
            state["alias"],
            state["snapshot"],
            state.get("fixed", False),
            state.get("uncommitted", False),
            [".".join((*table["schema"], table["name"])) for table in state["tables"]],
        )
        for state in record(shown)["reads"]
    ]


def test_a_result_names_its_lake_and_tables(session: dl.Session) -> None:
    found = record(session.sql("FROM birds"))
    (state,) = found["reads"]
    entry = session.state().table("main", "birds")
    assert (found["form"], found["ducklake_lab"], found["duckdb"], found["engine"]) == (
        1,
        dl.__version__,
        duckdb.__version__,
        "process",
    )
    assert state["lake"] == session.state().schemas[0].uuid
    assert state["tables"] == [
        {"schema": ["main"], "name": "birds", "id": entry.table_id, "uuid": entry.uuid, "columns": "*"}
    ]
    assert (state["alias"], state["snapshot"]) == ("lake", 5)
    assert "wrote" not in found


def test_the_identity_is_one_that_the_reference_knows(tmp_path: Path) -> None:
    with reference.connect() as theirs:
        theirs.execute(f"ATTACH 'ducklake:{tmp_path}/lake.ducklake' AS theirs (DATA_PATH '{tmp_path}/data')")
        theirs.execute("CREATE TABLE theirs.t AS FROM range(3); DETACH theirs")
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="mine") as session:
        (state,) = record(session.sql("FROM t"))["reads"]
        table_id, uuid = session.sql(
            "SELECT table_id, table_uuid::VARCHAR FROM __ducklake_metadata_mine.ducklake_table"
        ).fetchall()[0]
        (lake,) = session.sql(
            "SELECT schema_uuid::VARCHAR FROM __ducklake_metadata_mine.ducklake_schema WHERE schema_id = 0"
        ).fetchall()[0]
    assert (state["lake"], state["tables"][0]["id"], state["tables"][0]["uuid"]) == (lake, table_id, uuid)


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("FROM light", ["main.birds"]),
        ("SELECT count(*) FROM birds", ["main.birds"]),
        ("SELECT * FROM light JOIN ponds.places ON bird = name", ["main.birds", "ponds.places"]),
        ("SELECT * FROM birds a, birds b WHERE a.name IN (SELECT bird FROM ponds.places)", ["main.birds", "ponds.places"]),
        ("WITH w AS (FROM lake.ponds.places) SELECT (SELECT max(weight) FROM birds) FROM w", ["main.birds", "ponds.places"]),
        ("FROM birds WHERE false", ["main.birds"]),
        ("PIVOT birds ON name USING sum(weight)", ["main.birds"]),
    ],
)  # fmt: skip
def test_tables_are_found_wherever_they_are_read(session: dl.Session, query: str, tables: list[str]) -> None:
    assert states(session.sql(query)) == [("lake", 5, False, False, tables)]


def test_views_and_macros_are_named_too(session: dl.Session) -> None:
    session.sql("CREATE MACRO twice(x) AS 2 * x; CREATE TEMP VIEW mine AS FROM light")
    (state,) = record(session.sql("SELECT twice(weight) FROM mine"))["reads"]
    view = session.state().view("main", "light")
    assert [table["name"] for table in state["tables"]] == ["birds"]
    macro, light = state["definitions"]
    assert light == {"kind": "view", "schema": ["main"], "name": "light", "id": view.view_id, "uuid": view.uuid}
    assert (macro["kind"], macro["name"], "uuid" in macro) == ("macro", "twice", False)
    (then,) = record(session.sql("FROM light AT (VERSION => 5)"))["reads"]
    assert then["fixed"] and [one["name"] for one in then["definitions"]] == ["light"]


def test_what_shows_no_rows_of_a_lake_has_no_record(session: dl.Session) -> None:
    for text in (
        "SELECT 1",
        "FROM duckdb_tables()",
        "INSERT INTO birds SELECT * FROM birds",
        "CREATE TABLE u AS FROM birds",
    ):
        assert record(session.sql(text)) == {}


def test_a_named_snapshot_is_fixed(session: dl.Session) -> None:
    assert states(session.sql("FROM birds AT (VERSION => 2)")) == [("lake", 2, True, False, ["main.birds"])]
    assert states(session.sql("FROM birds", at=2)) == [("lake", 2, True, False, ["main.birds"])]
    both = session.sql("SELECT * FROM birds AT (VERSION => 2) a JOIN birds b USING (name)")
    assert states(both) == [("lake", 2, True, False, ["main.birds"]), ("lake", 5, False, False, ["main.birds"])]
    changes = session.sql("FROM lake.table_changes('birds', 0, 4)")
    assert states(changes) == states(session.table("birds").changes(0, 4)) == [("lake", 4, True, False, ["main.birds"])]


def test_a_lake_attached_at_a_snapshot_is_fixed(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    uri = lake_uri()
    with dl.connect(uri, data_path=str(tmp_path / "data"), engine="duckdb") as made:
        made.sql("CREATE TABLE t AS FROM range(2)")
        made.sql("DELETE FROM t")
    with dl.Session(engine="duckdb") as other:
        other.attach(uri, alias="old", snapshot_version=1)
        assert states(other.sql("FROM old.t")) == [("old", 1, True, False, ["main.t"])]


def test_uncommitted_changes_are_said(session: dl.Session) -> None:
    session.sql("BEGIN")
    assert states(session.sql("FROM birds")) == [("lake", 5, False, False, ["main.birds"])]
    session.sql("DELETE FROM birds WHERE name = 'teal'; CREATE TABLE nests (n INTEGER)")
    found = session.sql("SELECT * FROM birds, nests")
    assert states(found) == [("lake", 5, False, True, ["main.birds", "main.nests"])]
    assert [table["id"] is None for table in record(found)["reads"][0]["tables"]] == [False, True]
    session.sql("ROLLBACK")


def test_a_text_that_writes_is_known(session: dl.Session) -> None:
    assert record(session.sql("INSERT INTO birds VALUES ('swan', 9800); FROM birds"))["wrote"]
    assert record(session.sql("CALL lake.merge_adjacent_files(); FROM birds"))["wrote"]
    assert record(session.sql("FROM lake.merge_adjacent_files(); FROM birds"))["wrote"]
    assert "wrote" not in record(session.sql("USE lake; SHOW TABLES; DESCRIBE birds; FROM birds; FROM birds"))


def test_browsers_and_diffs_have_records(session: dl.Session) -> None:
    session.sql("UPDATE birds SET weight = 340 WHERE name = 'teal'")
    now, fixed = ("lake", 6, False, False, ["main.birds"]), ("lake", 6, True, False, ["main.birds"])
    then = ("lake", 5, True, False, ["main.birds"])
    assert states(browsers.rows(session, "birds")) == states(browsers.files(session, "birds")) == [now]
    assert states(browsers.rows(session, "birds", 5)) == [then]
    assert states(session.table("birds").view()) == states(session.table("birds").files()) == [now]
    assert states(session.table("birds").diff()) == states(session.table("birds").diff(5)) == [then, now]
    assert states(session.table("birds").diff(5, 6)) == [then, fixed]
    assert states(session.table("birds").diff(2, 5)) == [("lake", 2, True, False, ["main.birds"]), then]
    assert states(session.diff(5)) == [then, now]
    assert states(session.diff(5, 6)) == [then, fixed]


def test_a_preview_is_of_uncommitted_changes(session: dl.Session) -> None:
    shown = PreviewView(session.preview("DELETE FROM birds WHERE weight < 500"))
    assert states(shown) == [("lake", 5, True, False, ["main.birds"]), ("lake", 5, True, True, ["main.birds"])]
    before = record(shown)
    shown.commit()
    assert record(shown) == before


def test_equal_answers_have_equal_records(session: dl.Session) -> None:
    queries = ("SELECT * FROM birds, ponds.places", "SELECT * FROM ponds.places, birds")
    first, second, again = (recorded.record_of(session.sql(text)) for text in (*queries, queries[0]))
    assert first == second == again


def test_no_secret_and_no_path_is_recorded(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/secret_place.sqlite"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/secret_data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 'secret value' AS s")
        assert "secret" not in json.dumps(recorded.record_of(session.sql("SELECT s AS secret_name FROM t")))


def test_a_lake_without_its_first_schema_has_an_identity_without_secrets(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE SCHEMA other; CREATE TABLE other.t AS FROM range(2); USE lake.other; DROP SCHEMA main")
        (state,) = record(session.sql("FROM other.t"))["reads"]
    assert len(state["lake"]) == 32 and str(tmp_path) not in state["lake"]


def in_loop(main: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine in a thread without a loop: a browser of other tests leaves one in the main thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, main).result()


async def in_kernel(shell: InteractiveShell, shown: object) -> dict[str, Any]:
    shell.kernel = object()  # type: ignore[attr-defined]
    assert shell.display_formatter is not None
    _, metadata = shell.display_formatter.format(shown)
    grids._waiting.clear()
    found: dict[str, Any] = metadata.get(recorded.KEY, {})
    return found


def test_every_form_of_output_has_the_record(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    try:
        for grid in ("quiet", "open", "none"):
            result = session.sql("SELECT name, name FROM birds" if grid == "quiet" else "FROM birds")
            result.grid = grid
            assert in_loop(in_kernel(shell, result))["reads"][0]["snapshot"] == 5
        assert in_loop(in_kernel(shell, session.table("birds").diff(5, 5)))["reads"][0]["snapshot"] == 5
        assert in_loop(in_kernel(shell, session.diff(5, 5))) == {}
        monkeypatch.setattr(recorded, "wanted", False)
        assert in_loop(in_kernel(shell, session.sql("FROM birds"))) == {}
        assert in_loop(in_kernel(shell, session.table("birds").diff(5, 5))) == {}
    finally:
        shell.reset(new_session=False)  # type: ignore[no-untyped-call]
        InteractiveShell.clear_instance()
