"""Values that a PIVOT lists, written out for Spark and for views as DuckDB takes them."""

from __future__ import annotations

import duckdb
import pytest

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.bind.pivots import stored, written_out
from ducklake_lab.sql.dialect import DuckLakeSql

_TABLE = "CREATE TABLE t AS SELECT range AS n, 'v' || range AS s, range % 2 = 0 AS b, range * 3 AS x FROM range(4)"


@pytest.mark.parametrize(
    "values",
    [
        "s IN ('v1', 'v2' AS z)",
        "n IN (1, '2', 3.0)",
        "n IN (-1, 1)",
        "s IN ('v1', 'V1')",
        "b IN (true, NULL) s IN (v1)",
    ],
)
def test_values_become_columns(values: str) -> None:
    query = f"SELECT * FROM (SELECT s, n, b, x FROM t) PIVOT (sum(x) FOR {values}) ORDER BY ALL"
    with duckdb.connect() as plain:
        plain.execute(_TABLE)
        expected = plain.sql(query)
        found = plain.sql(stored(parse_query(query).tree).sql(dialect=DuckLakeSql))
        assert found.fetchall() == expected.fetchall()
        assert found.columns == expected.columns


@pytest.mark.parametrize(
    "values",
    [
        "s IN ('v1', 'v1')",
        "s IN ('v1' AS a, v1 AS b)",
        "n IN (-1, 2, -1)",
        "b IN (NULL, NULL)",
        "s IN ('a') n IN (1, 1)",
    ],
)
def test_a_value_is_listed_once(values: str) -> None:
    query = f"FROM t PIVOT (sum(x) FOR {values})"
    with duckdb.connect() as plain:
        plain.execute(_TABLE)
        with pytest.raises(duckdb.BinderException, match="specified multiple times"):
            plain.sql(query)
    with pytest.raises(BindError, match=r"PIVOT lists the value .* twice"):
        stored(parse_query(query).tree)


def test_numbers_and_truth_values_are_refused() -> None:
    # DuckDB takes 1 and true for one value
    with pytest.raises(UnsupportedFeatureError, match="PIVOT by numbers and truth values"):
        stored(parse_query("FROM t PIVOT (sum(x) FOR n IN (1, true))").tree)


@pytest.mark.parametrize(
    "query",
    [
        "FROM t PIVOT (sum(t.x) FOR n IN (1))",
        "FROM t PIVOT (sum(x + (SELECT 1)) FOR n IN (1))",
        "FROM t PIVOT (sum(sum(x) OVER ()) FOR n IN (1))",
        "FROM (PIVOT t ON 'n' IN (1) USING sum(x))",
    ],
)
def test_what_duckdb_refuses_is_refused(query: str) -> None:
    with duckdb.connect() as plain:
        plain.execute(_TABLE)
        with pytest.raises((duckdb.BinderException, duckdb.ParserException)):
            plain.sql(query)
    with pytest.raises(BindError, match="PIVOT"):
        stored(parse_query(query).tree)


def test_queries_of_a_pivot_go_with_it() -> None:
    query = "WITH c AS (FROM t) FROM (WITH c AS (SELECT n + 1 AS n, x FROM t) PIVOT c ON n IN (1, 2) USING sum(x))"
    with duckdb.connect() as plain:
        plain.execute(_TABLE)
        found = plain.sql(stored(parse_query(query).tree).sql(dialect=DuckLakeSql))
        assert found.fetchall() == plain.sql(query).fetchall()


def test_values_that_a_query_of_its_own_would_give_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"PIVOT without IN \(…\) inside of WITH"):
        written_out(parse_query("FROM (WITH c AS (FROM t) PIVOT c ON n USING sum(x))").tree, lambda query: ["1"])
