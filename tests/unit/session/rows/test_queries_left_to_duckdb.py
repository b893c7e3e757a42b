"""Queries that DuckDB runs as they were written, beside the reference."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

_TABLES = (
    "CREATE TABLE t (k INTEGER, s VARCHAR, v INTEGER)",
    "INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'b', 30)",
    "CREATE TABLE b (k INTEGER, w INTEGER)",
    "INSERT INTO b VALUES (1, 5)",
)
_QUERIES = (
    # a query as an argument
    "FROM summary((FROM t)) ORDER BY ALL",
    "SELECT s.k, b.w FROM summary((TABLE t)) s JOIN b ON b.k = s.k",
    "FROM summary((WITH c AS (FROM lake.main.t) FROM c)) ORDER BY ALL",
    "FROM summary((VALUES (1)))",
    # a share of the rows that a query says
    "SELECT k FROM t ORDER BY k LIMIT (SELECT 67) %",
    "FROM (SELECT k FROM t ORDER BY k LIMIT (SELECT max(w) * 10 FROM b)%)",
    "SELECT (SELECT max(k) FROM (SELECT k FROM t ORDER BY k LIMIT (SELECT 34)%)) AS m",
    "WITH c AS (SELECT k FROM t ORDER BY k LIMIT (30 + 37)% OFFSET 1) FROM c",
    # a query in an expression names its column
    "SELECT (SELECT max(k) FROM t TABLESAMPLE 100%)",
    "SELECT (SELECT max(x.k) + count(*) FROM lake.main.t AS x TABLESAMPLE 100%) + 1, k FROM b",
    'SELECT (SELECT max(k) FROM t AT (VERSION => 2) TABLESAMPLE 100%), (SELECT count(*) FROM t "T x")',
    "SELECT k, EXISTS (FROM b TABLESAMPLE 100%) FROM t ORDER BY k",
    "SELECT k IN (SELECT k FROM b TABLESAMPLE 100%) FROM t ORDER BY k",
    "SELECT (SELECT finalize(sum(k) EXPORT_STATE) FROM t)",
    "SELECT (SELECT max(a) FROM (PIVOT t ON s IN ('a') USING sum(v)))",
    "SELECT (SELECT count(*) FROM (FROM t TABLESAMPLE 100%) JOIN b USING (k))",
)


@pytest.mark.parametrize("query", _QUERIES)
def test_answers_and_names(tmp_path: Path, reference: duckdb.DuckDBPyConnection, query: str) -> None:
    reference.execute(f"ATTACH 'ducklake:{tmp_path}/r.ducklake' AS lake (DATA_PATH '{tmp_path}/r'); USE lake")
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        for text in _TABLES:
            session.sql(text)
            reference.execute(text)
        found, expected = session.sql(query), reference.sql(query)
        assert (list(found.columns), found.fetchall()) == (expected.columns, expected.fetchall())
    reference.execute("USE memory; DETACH lake")
