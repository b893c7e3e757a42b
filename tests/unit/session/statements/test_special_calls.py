"""Functions with a syntax of their own, and the same names in quotes, as DuckDB has them: rows and column names."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl


@pytest.mark.parametrize(
    "query",
    [
        "SELECT position('a' IN 'bab')",
        "SELECT position('a' IN s), 'x' FROM (SELECT 'xa' AS s)",
        "SELECT position('a' IN 'b' || 'a')",
        "SELECT count(*) FILTER (position('a' IN s) > 1) FROM (SELECT 'xa' AS s)",
        """SELECT "position"('bab', 'a')""",
        """SELECT "trim"('xax', 'x') AS t, "substring"('abc', 2, 1) AS s""",
        "SELECT trim('xax', 'x'), trim(LEADING 'x' FROM 'xax'), substring('abc', 2), substring('abc' FROM 2 FOR 1)",
        "SELECT extract('year' FROM DATE '2020-01-01'), extract(year FROM DATE '2020-01-01')",
    ],
)
def test_as_in_duckdb(query: str) -> None:
    with dl.Session(engine="duckdb") as session:
        found = session.sql(query)
        expected = duckdb.sql(query)
        assert found.fetchall() == expected.fetchall()
        assert list(found.columns) == expected.columns


def test_position_takes_in_alone() -> None:
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.SqlSyntaxError, match='Syntax error at ","'):
        session.sql("SELECT position('bab', 'a')")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["interval", "date", "timestamp", "time", "map", "struct", "if", "position", "values"])
def test_keywords_name_fields(name: str, tmp_path: Path) -> None:
    query = f"SELECT {{{name}: 1}}, {{a: {{{name}: [MAP {{'x': 1}}]}}, {name}: 2}}"
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        found, expected = session.sql(query), duckdb.sql(query)
        assert found.fetchall() == expected.fetchall()
        assert list(found.columns) == expected.columns
        session.sql(f'CREATE TABLE t (s STRUCT("{name}" INTEGER))')
        session.sql(f"INSERT INTO t SELECT {{{name}: 1}}; INSERT INTO t VALUES ({{{name}: 2}})")
        assert session.sql("SELECT s FROM t ORDER BY s").fetchall() == [({name: 1},), ({name: 2},)]


def test_maps_take_expressions_for_keys() -> None:
    query = "SELECT MAP {map: 1}, MAP {}, map(['a'], [1]), MAP {1 + 1: map} FROM (SELECT 5 AS map)"
    with dl.Session(engine="duckdb") as session:
        found, expected = session.sql(query), duckdb.sql(query)
        assert found.fetchall() == expected.fetchall()
        assert list(found.columns) == expected.columns


def test_fields_of_values_are_named_as_written() -> None:
    source = "(SELECT {x: {y: 1}} AS s, [{z: 1}] AS ls)"
    wanted = "{x: 1}.x, (s).x, s.x.y, (s).x.y, (s.x).y, ls[1].z, struct_pack(a := 1).a, s.x, s['x'].y, s.x.y + 1, (s).x.y + 1"
    with dl.Session(engine="duckdb") as session:
        for item in wanted.split(", "):
            query = f"SELECT {item} FROM {source}"
            found, expected = session.sql(query), duckdb.sql(query)
            assert found.fetchall() == expected.fetchall()
            assert list(found.columns) == expected.columns


def test_a_row_may_begin_with_numbers_and_texts(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (r STRUCT(a INTEGER, b VARCHAR), l STRUCT(a INTEGER, b VARCHAR)[])")
        session.sql(
            "INSERT INTO t VALUES (ROW(1, 'x'), [ROW(2, 'y')]), (ROW(NULL, 'z')::STRUCT(a INTEGER, b VARCHAR), [])"
        )
        assert session.sql("FROM t").fetchall() == [
            ({"a": 1, "b": "x"}, [{"a": 2, "b": "y"}]),
            ({"a": None, "b": "z"}, []),
        ]


def test_macros_may_have_names_that_are_words_of_statements(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="duckdb") as session:
        session.sql("CREATE MACRO percent(a, b) AS a * 100 / b; CREATE MACRO rename(a) AS TABLE SELECT a AS cube")
        assert session.sql("SELECT percent(1, 4), lake.main.percent(x.cube, 8) FROM rename(2) x").fetchall() == [
            (25, 25)
        ]
        assert session.sql(
            "WITH merge AS (SELECT 1 AS lock) SELECT lock, count(*) FROM merge GROUP BY lock"
        ).fetchall() == [(1, 1)]


@pytest.mark.parametrize(
    "text", ["CREATE TABLE q (from INTEGER)", "CREATE TABLE order (a INTEGER)", "DROP TABLE group"]
)
def test_words_that_duckdb_reserves_take_quotes_in_definitions(tmp_path: Path, text: str) -> None:
    reserved = "is a reserved word; as a name it takes quotes"
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        with pytest.raises(dl.SqlSyntaxError, match=reserved):
            session.sql(text)
        assert session.sql("SHOW TABLES").fetchall() == []
