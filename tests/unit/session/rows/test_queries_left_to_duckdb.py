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
    "CREATE VIEW bins AS FROM histogram_values(t, k)",
)
_QUERIES = (
    # a query as an argument
    "FROM summary((FROM t)) ORDER BY ALL",
    "SELECT s.k, b.w FROM summary((TABLE t)) s JOIN b ON b.k = s.k",
    "FROM summary((WITH c AS (FROM lake.main.t) FROM c)) ORDER BY ALL",
    "FROM summary((VALUES (1)))",
    # a table as an argument
    "FROM histogram_values(t, k) ORDER BY ALL",
    "FROM histogram_values(lake.main.t, v + 1, bin_count := 2) ORDER BY ALL",
    "FROM histogram_values(col_name := s, source := 't') ORDER BY ALL",
    "SELECT h.bin, h.count FROM histogram(t, v, technique := 'equi-height') h JOIN b ON b.k = h.count ORDER BY ALL",
    "SELECT (SELECT sum(count) FROM histogram_values(t, k)) AS n, k FROM b",
    "SELECT (SELECT sum(count) FROM histogram_values(t, k)) + k FROM b",
    "SELECT (SELECT sum(count) FROM histogram_values('t', k)) + 1, EXISTS (FROM query_table([t, main.t])) FROM b",
    "WITH c AS (SELECT k + 1 AS n FROM t) FROM histogram_values(c, n) ORDER BY ALL",
    "WITH b AS (SELECT k + 1 AS n FROM t) FROM histogram_values(b, n) ORDER BY ALL",
    "SELECT k FROM query_table(t) ORDER BY k",
    "SELECT k FROM query_table('ma' || 'in.t') ORDER BY k",
    "FROM query_table([t, main.t]) ORDER BY ALL",
    "FROM query_table(['t', 'b'], true) ORDER BY ALL",
    "FROM query('FROM ' || 't') ORDER BY ALL",
    "SELECT n FROM json_execute_serialized_sql(json_serialize_sql('SELECT k + 1 AS n FROM lake.t')) ORDER BY n",
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
    # in a view of the lake
    "FROM bins ORDER BY ALL",
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


def test_macros_of_the_session_take_tables(tmp_path: Path) -> None:
    macros = (
        "CREATE TEMP MACRO rows_of(source) AS TABLE FROM query_table(source)",
        "CREATE TEMP MACRO column_of(source, c) AS TABLE SELECT c FROM rows_of(source)",
    )
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake") as session, duckdb.connect() as beside:
        for text in (*_TABLES, *macros):
            session.sql(text)
            beside.execute(text)
        for query in (
            "FROM rows_of(t)",
            "FROM rows_of('b')",
            "FROM column_of(t, v)",
            "FROM column_of(c := s, source := t)",
        ):
            assert session.sql(f"{query} ORDER BY ALL").fetchall() == beside.sql(f"{query} ORDER BY ALL").fetchall()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("FROM histogram_values(seen, k)", "histogram_values of the view seen is not supported; write WITH v"),
        ("PRAGMA storage_info(t)", "pragma_storage_info of a table of a lake is not supported"),
        ("CALL histogram_values(t, k)", "CALL of DuckDB's function histogram_values is not supported"),
        ("CALL pragma_version()", "CALL of DuckDB's function pragma_version is not supported"),
        (
            "CREATE MACRO w(x) AS TABLE FROM query_table(x); FROM w('t') USING SAMPLE 100%",
            "query_table is not supported in macros of lakes",
        ),
    ],
)
def test_functions_of_tables_are_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql(";".join(_TABLES))
        session.sql("CREATE VIEW seen AS FROM t")
        with pytest.raises(dl.UnsupportedFeatureError, match=named):
            session.sql(text)


@pytest.mark.parametrize("text", ["FROM histogram_values(none, k)", "FROM histogram_values(t, none)", "CALL none(1)"])
def test_names_that_are_nowhere(tmp_path: Path, text: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql(";".join(_TABLES))
        with pytest.raises((dl.BindError, dl.EntryNotFoundError), match="none"):
            session.sql(text)
