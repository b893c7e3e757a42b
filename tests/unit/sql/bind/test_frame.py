"""The text that DuckDB runs: the user's own, with names of sources in place of names of lakes."""

from __future__ import annotations

import pytest

from ducklake_lab.sql.plan import QueryPlan
from tests.unit.sql.lakes import any_plan, plan


def text(planned: QueryPlan) -> str:
    """The query for DuckDB with short names of sources and macros."""
    written = planned.duckdb_sql
    for number, source in enumerate(planned.sources, 1):
        written = written.replace(f'"{source.view}"', f"src{number}")
    for number, name in enumerate(planned.macros, 1):
        written = written.replace(f'"{name}"', f"macro{number}")
    return written


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("select  Year from planes -- all", 'select  Year from src1 AS "planes"'),
        ("FROM main.planes p", "FROM src1 AS p"),
        ("FROM lake.main.planes AT (VERSION => 2) AS p", "FROM src1 AS p"),
        ("SELECT main.planes.year FROM main.planes", 'SELECT "planes".year FROM src1 AS "planes"'),
        ("SELECT main.planes.* FROM main.planes", 'SELECT "planes".* FROM src1 AS "planes"'),
        ("SELECT main.planes.year+1 FROM main.planes", 'SELECT "planes".year+1 AS "(main.planes.""year"" + 1)" FROM src1 AS "planes"'),
        ("TABLE planes", 'FROM src1 AS "planes"'),
        ("SELECT 1 FROM snapshots(1, x => 2)", 'SELECT 1 FROM src1 AS "snapshots"'),
        ("SELECT plus(1), plus(2)", 'SELECT macro1(1) AS "plus(1)", macro1(2) AS "plus(2)"'),
        ("FROM of_month(3) o", "FROM macro1(3) AS o"),
        ("FROM range(3) SELECT range", "FROM range(3) SELECT range"),
        ("WITH planes AS (FROM planes) FROM planes", 'WITH planes AS (FROM src1 AS "planes") FROM planes'),
    ],
)  # fmt: skip
def test_only_names_of_lakes_are_replaced(query: str, written: str) -> None:
    assert text(any_plan(query)) == written


@pytest.mark.parametrize(
    "query",
    [
        "SELECT rowid, * FROM planes",  # hidden columns
        "SELECT oldest(p.year) AS v FROM planes p",  # DuckDB's own macro would read the year in its body
        "SELECT * EXCLUDE (main.planes.year) FROM main.planes",  # a name that no alias replaces
    ],
)
def test_a_bound_tree_is_printed_where_no_text_is_certain(query: str) -> None:
    assert '"planes"' in plan(query).duckdb_sql or '"p"' in plan(query).duckdb_sql
    assert plan(query).duckdb_sql.startswith("SELECT")
    assert not plan(query).macros


def test_a_qualified_name_behind_an_equal_alias_is_no_text() -> None:
    inner = "SELECT (SELECT max(main.planes.year) FROM airlines AS planes) AS v FROM main.planes"
    assert '"planes_2"' in any_plan(inner).duckdb_sql
