"""Names of computed columns are DuckDB's own, although nothing is bound."""

from __future__ import annotations

import duckdb
import pytest

from ducklake_lab.duckdb.canonical import item_name

ITEMS = [
    "CAST(d AS DECIMAL)",
    "d::DECIMAL(5)::DECIMAL(6,2)",
    "d::NUMERIC(4) + d::DEC",
    "d::VARCHAR(10) || 'a DECIMAL(3,1)'",
    "d::CHAR(3)",
    "d::TEXT",
    "[d]::DECIMAL[]",
    "d::DOUBLE",
    "{'a': d}::STRUCT(a DECIMAL)",
    "DATE '2020-01-01' + INTERVAL 1 MONTH",
    "DATE '2020-01-01' + INTERVAL (d::DOUBLE::INT) MONTH - INTERVAL '2' DAY",
    "to_months(CAST(trunc(CAST(d AS DOUBLE)) AS INTEGER))",
    "list_transform([d], lambda x: x + 1)",
]


@pytest.mark.skipif(int(duckdb.__version__.partition(".")[0]) > 1, reason="2.0 names types as they are written")
@pytest.mark.parametrize("sql", ITEMS)
def test_a_name_is_the_one_that_duckdb_gives(sql: str) -> None:
    with duckdb.connect() as connection:
        description = connection.execute(f"SELECT {sql} FROM (SELECT 1 AS d)").description
    assert item_name(sql) == description[0][0]
