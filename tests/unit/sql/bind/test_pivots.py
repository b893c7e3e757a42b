"""Values that a PIVOT lists, written out for Spark and for views as DuckDB takes them."""

from __future__ import annotations

import duckdb
import pytest

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.bind.pivots import stored
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
