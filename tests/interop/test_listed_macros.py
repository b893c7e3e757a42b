"""Macros of a lake in DuckDB's listings of functions: the same rows as in the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(1)

_MACROS = (
    "CREATE MACRO plus(a, b := 2) AS a + b",
    "CREATE MACRO many() AS 0, (a) AS a, (a, b) AS a * b",
    "CREATE MACRO typed(a INTEGER, b DECIMAL(4, 2) := 1.5) AS a + b",
    "CREATE MACRO rows_of(n) AS TABLE SELECT * FROM range(n)",
    "CREATE SCHEMA s",
    "CREATE TABLE s.t (i INTEGER)",
    "CREATE MACRO s.highest(x) AS (SELECT max(i) + x FROM s.t)",
)
_QUERIES = (
    # ids differ by client
    "SELECT * EXCLUDE (database_oid, function_oid) FROM duckdb_functions() WHERE database_name = 'lake' ORDER BY ALL",
    "SELECT proname, pronargs, proargnames, prosrc FROM pg_catalog.pg_proc WHERE proname IN ('plus', 'many', 'highest') ORDER BY ALL",
    "SELECT count(*) > 1000 FROM duckdb_functions() WHERE internal",
)


@pytest.mark.parametrize("author", ["ours", "theirs"])
def test_functions_list_the_macros_of_a_lake(tmp_path: Path, author: str) -> None:
    lake = f"ducklake:{tmp_path}/lake.ducklake"
    if author == "ours":
        with dl.connect(lake, "lake", data_path=f"{tmp_path}/data") as session:
            for statement in _MACROS:
                session.sql(statement)
    with connect() as reference:
        reference.execute(f"ATTACH '{lake}' AS lake (DATA_PATH '{tmp_path}/data')")
        reference.execute("USE lake")
        if author == "theirs":
            for statement in _MACROS:
                reference.execute(statement)
        expected = [reference.execute(query).fetchall() for query in _QUERIES]
    with dl.connect(lake, "lake") as session:
        assert [session.sql(query).fetchall() for query in _QUERIES] == expected
    assert [len(rows) for rows in expected] == [7, 5, 1]
