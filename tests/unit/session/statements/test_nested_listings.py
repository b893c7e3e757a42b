"""Listings of schemas and tables with nested schemas, on every kind of catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.1") as session:
        session.sql("CREATE SCHEMA a; CREATE SCHEMA a.b; CREATE SCHEMA a.b.c; CREATE SCHEMA b; CREATE SCHEMA a.main")
        for schema in ("a", "a.b", "a.b.c", "b", "main", "a.main"):
            name = schema.replace(".", "_")
            session.sql(f"CREATE TABLE {schema}.n ({name} INTEGER); CREATE VIEW {schema}.v_{name} AS SELECT 1 AS i")
        session.sql('CREATE SCHEMA "a.b"')
        yield session
        assert not session.spark_started


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


@pytest.mark.slow
def test_schemas_name_their_parent(session: dl.Session) -> None:
    listed = "SELECT schema_name, parent_schema FROM duckdb_schemas() WHERE database_name = 'lake' ORDER BY ALL"
    assert rows(session, listed) == [
        ("a", None),
        ("a.b", None),
        ("b", "a"),
        ("b", None),
        ("c", "b"),
        ("main", "a"),
        ("main", None),
    ]
    own = "SELECT DISTINCT parent_schema FROM duckdb_schemas() WHERE database_name != 'lake'"
    assert rows(session, own) == [(None,)]
    assert "parent_schema" in session.sql("FROM duckdb_schemas").columns


@pytest.mark.slow
def test_tables_of_schemas_with_the_same_last_name_are_apart(session: dl.Session) -> None:
    assert rows(session, "SHOW TABLES") == [("n",), ("v_main",)]
    assert rows(session, "SHOW TABLES FROM lake.b") == [("n",), ("v_b",)]
    session.sql("USE lake.b")
    assert rows(session, "SHOW TABLES") == [("n",), ("n",), ("v_b",), ("v_main",)]
    everything = [(row[1], row[2], row[3]) for row in rows(session, "SHOW ALL TABLES") if row[2] == "n"]
    assert sorted(everything) == [
        ("a", "n", ["a"]),
        ("b", "n", ["a_b"]),
        ("b", "n", ["b"]),
        ("c", "n", ["a_b_c"]),
        ("main", "n", ["a_main"]),
        ("main", "n", ["main"]),
    ]
    counts = "SELECT column_count FROM duckdb_views() WHERE database_name = 'lake'"
    assert rows(session, counts) == [(1,)] * 6


@pytest.mark.slow
def test_describe_and_the_information_schema_descend(session: dl.Session) -> None:
    assert rows(session, "DESCRIBE a.b.c.n")[0][:2] == ("a_b_c", "INTEGER")
    assert rows(session, "DESCRIBE lake.a.b.c.v_a_b_c")[0][:2] == ("i", "INTEGER")
    columns = (
        "SELECT table_schema, column_name FROM information_schema.columns WHERE table_catalog = 'lake' "
        "AND table_name = 'n' AND table_schema IN ('b', 'c') ORDER BY ALL"
    )
    assert rows(session, columns) == [("b", "a_b"), ("b", "b"), ("c", "a_b_c")]


@pytest.mark.slow
def test_a_name_with_quotes_is_no_path(session: dl.Session) -> None:
    flat = '"""a"".""b"""'
    session.sql(f"CREATE SCHEMA {flat}; CREATE TABLE {flat}.n AS SELECT 1 AS flat; CREATE VIEW {flat}.w AS FROM n")
    session.sql(f'CREATE MACRO {flat}.f(x) AS x + 1; CREATE SCHEMA """"; CREATE TABLE """".t (i INTEGER)')
    assert rows(session, f"SELECT flat, {flat}.f(flat) FROM lake.{flat}.w") == [(1, 2)]
    assert session.sql("FROM a.b.n").columns == ["a_b"]
    assert rows(session, f"DESCRIBE {flat}.n")[0][0] == "flat"
    session.sql(f"ALTER TABLE {flat}.n ALTER flat SET NOT NULL; ALTER TABLE a.b.n ALTER a_b SET NOT NULL")
    session.sql(f"INSERT INTO {flat}.n VALUES (2); USE lake.{flat}")
    assert rows(session, "SELECT sum(flat) FROM n") == [(3,)]
    assert rows(session, "SHOW TABLES") == [("n",), ("n",), ("v_main",), ("w",)]
    session.sql('USE lake.main; DROP SCHEMA """"  CASCADE; ALTER TABLE a.b.n RENAME TO m')
    assert rows(session, f"SELECT count(*) FROM {flat}.n") == [(2,)]
    listed = "SELECT schema_name, parent_schema FROM duckdb_schemas() WHERE database_name = 'lake' AND schema_name ILIKE '%b%'"
    assert sorted(rows(session, listed), key=str) == [('"a"."b"', None), ("a.b", None), ("b", "a"), ("b", None)]
    assert session.state().find_schema_in_text('"a"."b"') == session.state().find_schema_in_text("a.b")
