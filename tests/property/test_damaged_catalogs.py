"""Damaged catalogs: whatever is asked of one, the answer is rows or one line, and a failed statement writes nothing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.catalog import versions
from ducklake_lab.magics.questions import Questions
from ducklake_lab.widgets.schema import of_catalog
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

TABLES = versions.tables(versions.DEFAULT)
_SCRIPT = """
CREATE TABLE flights (id INTEGER, carrier VARCHAR, place STRUCT(x INTEGER, y VARCHAR), n DOUBLE DEFAULT 3);
COMMENT ON TABLE flights IS 'all of them'; COMMENT ON COLUMN flights.id IS 'an id';
CALL lake.set_option('data_inlining_row_limit', 0);
INSERT INTO flights SELECT i, 'UA', {'x': i, 'y': 'a'}, i FROM range(40) r(i);
DELETE FROM flights WHERE id < 3; DELETE FROM flights WHERE id = 30;
CALL lake.set_option('data_inlining_row_limit', 10);
INSERT INTO flights VALUES (50, 'AA', {'x': 1, 'y': 'b'}, 2); DELETE FROM flights WHERE id = 50;
DELETE FROM flights WHERE id = 31;
CREATE TABLE parts (a INTEGER, b VARCHAR); ALTER TABLE parts SET PARTITIONED BY (b);
ALTER TABLE parts SET SORTED BY (a ASC);
INSERT INTO parts SELECT i, i % 2 FROM range(30) r(i); INSERT INTO parts VALUES (1, 'x');
CREATE VIEW v AS SELECT id FROM flights; CREATE MACRO plus(a, b := 2) AS a + b; CREATE SCHEMA other;
ALTER TABLE parts ADD COLUMN c INTEGER; DROP VIEW v; CREATE VIEW v AS SELECT carrier FROM flights;
"""

_CALLS: dict[str, Callable[[dl.Session], Any]] = {
    "show tables": lambda session: session.sql("SHOW TABLES").fetchall(),
    "show all tables": lambda session: session.sql("SHOW ALL TABLES").fetchall(),
    "snapshots": lambda session: session.sql("FROM lake.snapshots()").fetchall(),
    "history": lambda session: [*session.history(), *session.table("flights").history()],
    "files": lambda session: [session.table(name).files()._repr_html_() for name in ("flights", "parts")],
    "column stats": lambda session: list(session.table("flights").column_stats()),
    "describe": lambda session: list(session.table("flights").describe()),
    "select": lambda session: session.sql("SELECT * FROM flights WHERE id > 5").fetchall(),
    "select parts": lambda session: session.sql("SELECT * FROM parts WHERE b = '1'").fetchall(),
    "past": lambda session: session.sql("FROM flights AT (VERSION => 6)").fetchall(),
    "by time": lambda session: session.sql("FROM flights AT (TIMESTAMP => now())").fetchall(),
    "table_changes": lambda session: session.sql("FROM lake.table_changes('flights', 0, 9)").fetchall(),
    "diff": lambda session: session.table("flights").diff(5, 7)._repr_html_(),
    "table_info": lambda session: session.sql("FROM lake.table_info()").fetchall(),
    "tables": lambda session: session.tables(),
    "options": lambda session: list(session.options()),
    "health": lambda session: list(session.health()._repr_html_()),
    "doctor": lambda session: session.doctor(deep=True)._repr_html_(),
    "repair": lambda session: session.repair("all").fetchall(),
    "schema browser": lambda session: of_catalog("lake", *session.catalog()),
    "information schema": lambda session: session.sql("FROM information_schema.columns").fetchall(),
    "view and macro": lambda session: session.sql("SELECT plus(1), carrier FROM v").fetchall(),
    "sidebar": lambda session: [
        Questions(lambda: {"": session}).ask(*question)
        for question in (
            ("lakes", {}),
            ("tree", {"alias": "lake"}),
            ("snapshots", {"alias": "lake"}),
            ("files", {"alias": "lake", "schema": "main", "table": "flights"}),
        )
    ],
    "rows to look through": lambda session: session.table("flights").view(),
    "insert": lambda session: session.sql("INSERT INTO flights VALUES (1, 'x', NULL, NULL)"),
    "insert rows": lambda session: session.sql("INSERT INTO parts SELECT i, 'x', 1 FROM range(20) r(i)"),
    "update": lambda session: session.sql("UPDATE flights SET carrier = 'z' WHERE id = 9"),
    "delete": lambda session: session.sql("DELETE FROM flights WHERE id = 8"),
    "alter": lambda session: session.sql("ALTER TABLE flights ADD COLUMN more INTEGER"),
    "create": lambda session: session.sql("CREATE TABLE made AS SELECT 1 AS a"),
    "flush": lambda session: session.sql("CALL lake.flush_inlined_data()"),
    "merge": lambda session: session.sql("CALL lake.merge_adjacent_files()"),
    "checkpoint": lambda session: session.sql("CHECKPOINT lake"),
    "clean up": lambda session: session.sql("CALL ducklake_expire_snapshots('lake', dry_run => true, versions => [2])"),
}


@pytest.fixture(scope="module", params=["sqlite", "duckdb"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A lake's kind of catalog, and its catalog file with something in nearly every metadata table."""
    folder = tmp_path_factory.mktemp(request.param)
    kind, path = request.param, folder / "lake.db"
    with dl.connect(f"ducklake:{kind}:{path}", "lake", data_path=f"{folder}/data", engine="duckdb") as session:
        session.sql(_SCRIPT)
    return kind, path


def _columns() -> list[tuple[str, str]]:
    return [(table.name, column.name) for table in TABLES.sorted_tables for column in table.columns]


_damages = st.one_of(
    st.tuples(st.just("drop table"), st.sampled_from(sorted(TABLES.tables))),
    st.tuples(st.just("drop column"), st.sampled_from(_columns())),
    st.tuples(st.sampled_from(["null", "text", "time"]), st.sampled_from(_columns()), st.integers(0, 10)),
    st.tuples(st.just("truncate"), st.floats(0, 1, exclude_max=True)),
)


def _open(kind: str, path: Path) -> Any:
    return sqlite3.connect(path, isolation_level=None) if kind == "sqlite" else duckdb.connect(str(path))


def damage(kind: str, path: Path, what: tuple[Any, ...]) -> bool:
    """Damages a catalog file; False where the database refuses to be damaged so."""
    if what[0] == "truncate":
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * what[1])])
        return True
    connection = _open(kind, path)
    try:
        if what[0] == "drop table":
            connection.execute(f"DROP TABLE {what[1]}")
        elif what[0] == "drop column":
            connection.execute(f'ALTER TABLE {what[1][0]} DROP COLUMN "{what[1][1]}"')
        else:
            (table, column), row = what[1], what[2]
            value = {"null": "NULL", "text": "'some text'", "time": "'2024-99-99 12:00:00+00'"}[what[0]]
            rows = f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {row}"
            connection.execute(f'UPDATE {table} SET "{column}" = {value} WHERE rowid IN ({rows})')
    except (sqlite3.Error, duckdb.Error):
        return False
    finally:
        connection.close()
    return True


def _check(path: Path, uri: str, name: str, call: Callable[[dl.Session], Any]) -> None:
    before, failed = path.read_bytes(), None
    try:
        with dl.Session(engine="duckdb") as session:
            session.attach(uri, "lake", create_if_not_exists=False)
            before = path.read_bytes()
            call(session)
    except dl.DuckLakeError as error:
        failed = str(error)
    if failed is not None:
        assert "\n" not in failed, name
        # CHECKPOINT is many commits; those before the one that fails are kept
        unchanged = path.read_bytes() == before
        assert unchanged or name == "checkpoint", (name, failed)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(what=_damages, names=st.sets(st.sampled_from(sorted(_CALLS)), min_size=5, max_size=8))
@example(what=("text", ("ducklake_data_file", "row_id_start"), 1), names={"flush", "merge", "checkpoint"})
@example(what=("null", ("ducklake_column", "column_id"), 0), names={"schema browser", "files", "alter", "checkpoint"})
@example(what=("null", ("ducklake_column", "column_type"), 0), names={"schema browser", "files", "by time", "alter"})
def test_a_damaged_catalog_is_an_error_of_one_line(
    whole: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory, what: tuple[Any, ...], names: set[str]
) -> None:
    kind, source = whole
    path = tmp_path_factory.mktemp("damaged") / "lake.db"
    shutil.copy(source, path)
    if not damage(kind, path, what):
        return
    damaged = path.read_bytes()
    for name in sorted(names):
        path.write_bytes(damaged)
        _check(path, f"ducklake:{kind}:{path}", name, _CALLS[name])
