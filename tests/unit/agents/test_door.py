"""The agents' door: what it does, its limits, and what a hostile agent and a hostile lake get from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.agents.door import Door
from ducklake_lab.agents.limits import Limits
from ducklake_lab.errors import DuckLakeError, UsageError
from tests.unit.agents.conftest import CANARY, Prepared, prepare
from tests.unit.agents.hostile import CHANGES, READS


@pytest.fixture
def lake(tmp_path: Path) -> str:
    uri = f"ducklake:{tmp_path / 'shop.ducklake'}"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE TABLE orders (id INTEGER, name VARCHAR)")
        session.sql("INSERT INTO orders SELECT i, 'n' || i FROM range(1000) r(i)")
        session.sql("CREATE VIEW small AS FROM orders WHERE id < 3")
    return uri


@pytest.fixture
def door(lake: str) -> Iterator[Door]:
    with Door(lake, client="test") as door:
        yield door


def test_from_a_list_to_a_review(door: Door, lake: str) -> None:
    listed = door.list_tables()
    assert listed["tables"] == [{"table": "main.orders", "rows": 1000, "columns": {"id": "int32", "name": "varchar"}}]
    assert listed["branch"] is None
    assert [row["column_name"] for row in door.describe("orders")["columns"]] == ["id", "name"]
    assert door.query("SELECT max(id) AS m, NULL AS n FROM orders")["rows"] == [["999", None]]
    made = door.change("UPDATE orders SET name = 'x' WHERE id = 7", "fix seven")
    assert made["branch"].startswith("agent-") and made["changed_rows"] == 1
    assert door.query("SELECT name FROM orders WHERE id = 7")["rows"] == [["x"]]
    door.change("CREATE TABLE notes AS SELECT 1 AS a")
    newest = door.history(last=2)["snapshots"]
    assert [one["author"] for one in newest] == ["agent:test", "agent:test"]
    assert newest[0]["message"] == "fix seven"
    assert "orders" in door.diff()
    asked = door.ask_review()
    page = Path(unquote(urlparse(asked["link"]).path))
    assert "orders" in page.read_text() and page.parent.stat().st_mode & 0o077 == 0
    assert asked["mergeable"]
    with dl.connect(lake, engine="duckdb") as session:
        assert session.sql("SELECT name FROM orders WHERE id = 7").fetchall() == [("n7",)]
        assert [row["branch"] for row in session.branches()] == [made["branch"]]
        session.merge(made["branch"])
        assert session.sql("SELECT name FROM orders WHERE id = 7").fetchall() == [("x",)]


def test_a_named_branch_is_made_once_and_found_again(lake: str) -> None:
    with Door(lake, "fix") as door:
        assert door.branch is None
        door.change("DELETE FROM orders WHERE id > 9")
    with Door(lake, "fix") as door:
        assert door.branch == "fix"
        assert door.query("SELECT count(*) FROM orders")["rows"] == [["10"]]
        assert door.change("TRUNCATE orders")["branch"] == "fix"


def test_two_doors_have_two_branches(lake: str) -> None:
    with Door(lake) as one, Door(lake) as other:
        names = {door.change("DELETE FROM orders WHERE id = 1")["branch"] for door in (one, other)}
    assert len(names) == 2


def test_a_refused_change_makes_no_branch(door: Door, lake: str) -> None:
    for text in ("DELETE FROM nothing", "COPY orders TO '/tmp/x'", "UPDATE orders SET nothing = 1 WHERE"):
        with pytest.raises(DuckLakeError):
            door.change(text)
    assert door.branch is None
    with dl.connect(lake, engine="duckdb") as session:
        assert len(session.branches()) == 0


def test_an_answer_has_limits(lake: str) -> None:
    limits = Limits(rows=10, characters=2000, cell=50)
    with Door(lake, limits=limits) as door:
        found = door.query("FROM orders")
        assert len(found["rows"]) == 10 and found["has_more_rows"]
        assert len(door.query("FROM orders", limit=3)["rows"]) == 3
        assert len(door.query("FROM orders", limit=10**9)["rows"]) == 10
        (row,) = door.query("SELECT repeat('x', 10000)")["rows"]
        assert row == ["x" * 50 + "…"]
        wide = ", ".join(f"repeat('{i}', 45)" for i in range(10))
        cut = door.query(f"SELECT {wide} FROM orders")
        assert len(json.dumps(cut)) < 4000 and "cut" in cut


def test_a_long_query_is_stopped_and_the_door_goes_on(lake: str) -> None:
    with Door(lake, limits=Limits(seconds=1)) as door:
        with pytest.raises(UsageError, match="stopped after 1 seconds"):
            door.query("SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11")
        assert door.query("SELECT 1 AS one")["rows"] == [["1"]]


def test_columns_of_one_name_are_both_there(door: Door) -> None:
    found = door.query("SELECT 1 AS a, 2 AS a")
    assert [one["name"] for one in found["columns"]] == ["a", "a"] and found["rows"] == [["1", "2"]]


def test_a_snapshot_is_read_with_the_views_of_then(door: Door) -> None:
    assert door.query("SELECT count(*) FROM orders", at=1)["rows"] == [["0"]]
    with pytest.raises(DuckLakeError):
        door.query("FROM small", at=1)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prepared, Door]]:
    made = prepare(tmp_path_factory.mktemp("door"))
    with Door(made.uri, limits=Limits(seconds=20)) as door:
        yield made, door


def _asked(prepared: Prepared, door: Door, text: str) -> str:
    """Return all that an agent gets from a text, whatever function it gives it to."""
    text = text.replace("\\n", "\n").format(canary=prepared.canary, marker=prepared.marker)
    answers = []
    for ask in (door.query, door.change, door.describe, door.history):
        try:
            answers.append(json.dumps(ask(text)))
        except DuckLakeError as error:
            answers.append(str(error))
    return "\n".join(answers)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", [*READS, *CHANGES])
def test_a_hostile_request_reaches_nothing(text: str, hostile: tuple[Prepared, Door], tmp_path: Path) -> None:
    prepared, door = hostile
    before = prepared.digests(), sorted(prepared.folder.parent.iterdir())
    answers = _asked(prepared, door, text)
    assert CANARY not in answers and "/root" not in answers
    assert not prepared.marker.exists()
    assert (prepared.digests(), sorted(prepared.folder.parent.iterdir())) == before
    assert door.branch is None


def test_changes_on_a_branch_leave_the_rows_and_files_of_the_lake(tmp_path: Path) -> None:
    prepared = prepare(tmp_path)
    files = {path: digest for path, digest in prepared.digests().items() if "lake.ducklake" not in path}

    def contents() -> list[object]:
        with dl.connect(prepared.uri, "lake", read_only=True, engine="duckdb") as session:
            rows = session.sql("FROM orders ORDER BY id").fetchall()
            return [rows, session.current_snapshot(), [one.table for one in session.tables()]]

    before = contents()
    with Door(prepared.uri) as door:
        for text in (
            "UPDATE orders SET name = 'taken'",
            "DELETE FROM orders WHERE id > 10",
            "ALTER TABLE orders ADD COLUMN more INTEGER",
            "DROP VIEW leaky_view",
            "CREATE OR REPLACE TABLE orders AS SELECT 1 AS id",
            "DROP TABLE orders",
            "CREATE SCHEMA more",
            "DROP SCHEMA more",
        ):
            door.change(text)
        for text in CHANGES:
            assert CANARY not in _asked(prepared, door, text)
        door.ask_review()
    assert contents() == before
    assert files == {path: digest for path, digest in prepared.digests().items() if "lake.ducklake" not in path}
    assert not prepared.marker.exists()


@pytest.mark.parametrize("schema", ["main", "sales"])
@pytest.mark.parametrize("path", ["../../../../outside/", "a/../../../../../outside/", "..\\\\outside/"])
def test_a_catalog_cannot_move_files_of_a_branch_elsewhere(path: str, schema: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    uri = f"ducklake:{folder / 'shop.ducklake'}"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE SCHEMA sales")
        session.sql(f"CREATE TABLE {schema}.t (a INTEGER)")
    with duckdb.connect(str(folder / "shop.ducklake")) as catalog:
        if schema == "main":
            catalog.execute("UPDATE ducklake_table SET path = $1", [path])
        else:
            catalog.execute("UPDATE ducklake_schema SET path = $1 WHERE schema_name = 'sales'", [path])
    with Door(uri) as door:
        with pytest.raises(UsageError, match="outside of the lake's folder"):
            door.change(f"INSERT INTO {schema}.t SELECT i FROM range(1000) r(i)")
        if schema == "sales":
            with pytest.raises(UsageError, match="outside of the lake's folder"):
                door.change("CREATE TABLE sales.more AS SELECT i FROM range(1000) r(i)")
    assert not list(tmp_path.rglob("*outside*"))


def test_a_branch_keeps_its_files_in_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    uri = f"ducklake:{tmp_path / 'lake' / 'shop.ducklake'}"
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("CREATE TABLE t (a INTEGER)")
    with duckdb.connect(str(tmp_path / "lake" / "shop.ducklake")) as catalog:
        catalog.execute("UPDATE ducklake_table SET path = $1, path_is_relative = false", [f"{tmp_path}/outside/"])
    with Door(uri) as door:
        door.change("INSERT INTO t SELECT i FROM range(1000) r(i)")
    assert not (tmp_path / "outside").exists()
