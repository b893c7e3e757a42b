"""Statements about schemas in schemas: macros, options, drops, copies and diffs by their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.1") as session:
        session.sql(
            "CREATE SCHEMA a; CREATE SCHEMA a.b; CREATE TABLE a.b.t AS SELECT i::INTEGER AS i FROM range(3) r(i)"
        )
        yield session


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


@pytest.mark.slow
def test_macros_are_called_by_any_of_their_paths(session: dl.Session) -> None:
    session.sql("CREATE MACRO a.b.more(x) AS x + (SELECT max(i) FROM t)")
    session.sql("CREATE MACRO a.b.above(x) AS TABLE SELECT i FROM t WHERE i >= x")
    for path in ("a.b", "lake.a.b", '"a"."b"'):
        assert rows(session, f"SELECT {path}.more(40)") == [(42,)]
        assert rows(session, f"FROM {path}.above(1) ORDER BY i") == [(1,), (2,)]
    session.sql("CREATE TABLE structs AS SELECT {'b': {'c': ['x']}} AS a")
    assert rows(session, "SELECT a.b.c.len() FROM structs") == [(1,)]
    with pytest.raises(dl.DuckLakeError):
        session.sql("SELECT a.more(1)")
    session.sql("DROP MACRO a.b.more; DROP MACRO TABLE a.b.above")
    with pytest.raises(dl.DuckLakeError):
        session.sql("FROM a.b.above(1)")


@pytest.mark.slow
def test_options_of_a_schema_hold_there_only(session: dl.Session) -> None:
    session.sql('CREATE SCHEMA "a.b"; CREATE TABLE "a.b".t (i INTEGER); CREATE TABLE a.u (i INTEGER)')
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0, schema => 'a.b')")
    session.sql("""CALL lake.set_option('data_inlining_row_limit', 7, schema => '"a.b"')""")
    for table, files in (("a.b.t", 1), ('"a.b".t', 0), ("a.u", 0)):
        session.sql(f"INSERT INTO {table} VALUES (5)")
        assert len(session.table(table).files()) == files, table
    with pytest.raises(dl.EntryNotFoundError, match="no schema"):
        session.sql("CALL lake.set_option('data_inlining_row_limit', 4, schema => 'a.c')")


@pytest.mark.slow
def test_a_schema_that_holds_only_another_is_not_empty(session: dl.Session) -> None:
    session.sql("CREATE SCHEMA o; CREATE SCHEMA o.i")
    with pytest.raises(dl.EntryExistsError, match="The schema o is not empty"):
        session.sql("DROP SCHEMA o")
    session.sql("DROP SCHEMA o.i; DROP SCHEMA o; CREATE SCHEMA o; CREATE SCHEMA o.i; DROP SCHEMA o CASCADE")
    assert rows(session, "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake' ORDER BY 1") == [
        ("a",),
        ("b",),
        ("main",),
    ]


def test_a_copy_of_the_database_is_refused_by_name(session: dl.Session, tmp_path: Path) -> None:
    session.attach(f"ducklake:{tmp_path}/other.ducklake", alias="other", data_path=f"{tmp_path}/other")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"nested schema a\.b; create its tables by CREATE TABLE AS"):
        session.sql("COPY FROM DATABASE lake TO other")
    assert rows(session, "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'other'") == [(0,)]


@pytest.mark.slow
def test_tables_are_compared(session: dl.Session) -> None:
    before = session.current_snapshot().snapshot_id
    session.sql("INSERT INTO a.b.t VALUES (7); DELETE FROM a.b.t WHERE i = 0; ALTER TABLE a.b.t ADD COLUMN s VARCHAR")
    diff = session.table("a.b.t").diff(before, session.current_snapshot().snapshot_id)
    assert (diff.summary.inserted, diff.summary.deleted, diff.summary.unchanged) == (1, 1, 2)
    assert sorted((row.kind, (row.after or row.before or {})["i"]) for row in diff.rows()) == [
        ("deleted", 0),
        ("inserted", 7),
    ]
    assert "a.b.t" in repr(diff)


@pytest.mark.parametrize("name", ["a.b.t", "lake.a.b.t", 'lake."a.b"."t.t"', '"a.b"."t.t"', "lake.main.t", "t"])
def test_a_merge_writes_to_a_table_by_any_of_its_names(session: dl.Session, name: str) -> None:
    session.sql('CREATE SCHEMA "a.b"; CREATE TABLE IF NOT EXISTS t (i INTEGER)')
    session.sql('CREATE TABLE "a.b"."t.t" (i INTEGER)')
    session.sql(f"DELETE FROM {name}; INSERT INTO {name} VALUES (0), (1), (2)")
    merged = f"MERGE INTO {name} AS x USING (VALUES (2), (3)) s(i) ON x.i = s.i WHEN MATCHED THEN UPDATE SET i = 20"
    changed = session.sql(f"{merged} WHEN NOT MATCHED THEN INSERT")
    assert changed.fetchall() == [(2,)]
    assert rows(session, f"SELECT i FROM {name} ORDER BY i") == [(0,), (1,), (3,), (20,)]
    deleted = f"MERGE INTO {name} USING {name} s USING (i) WHEN MATCHED AND s.i < 5 THEN DELETE"
    assert rows(session, deleted) == [(3,)]


def test_a_view_of_a_table_in_a_nested_schema_says_sql_that_runs(session: dl.Session) -> None:
    assert rows(session, session.table("a.b.t").view().sql) == [(0,), (1,), (2,)]
