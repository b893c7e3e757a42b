"""Functions with a syntax of their own, and the same names in quotes, as DuckDB has them: rows and column names."""

from __future__ import annotations

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
