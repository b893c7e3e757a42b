"""Queries in LIMIT and OFFSET on Spark, beside DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.spark.beside import beside_duckdb

Both = tuple[dl.Session, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("limits")
    with beside_duckdb(folder, spark, {"t": {"a": "INTEGER"}}, {"t": "(3), (1), (2), (4)"}) as sessions:
        yield sessions


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t ORDER BY a LIMIT (SELECT max(a) FROM t) - 2",
        "SELECT a FROM t ORDER BY a LIMIT (SELECT a FROM t WHERE a = 2) OFFSET (SELECT min(a) FROM t)",
        "SELECT a FROM t ORDER BY a OFFSET (SELECT 1)",
        "SELECT a FROM t ORDER BY a LIMIT (SELECT NULL) OFFSET (SELECT a FROM t WHERE false)",
        "SELECT a FROM t ORDER BY a LIMIT (SELECT '2')",
        "SELECT a FROM t ORDER BY a LIMIT (SELECT 2.5)",
        "SELECT a FROM t ORDER BY a LIMIT (SELECT max(a) * 15.5 FROM t)%",
        "SELECT a FROM t ORDER BY a FETCH FIRST (SELECT 2) ROWS ONLY",
        "SELECT a, (SELECT u.a FROM t u ORDER BY u.a LIMIT 1 OFFSET (SELECT 2)) FROM t ORDER BY a",
        "(SELECT a FROM t ORDER BY a LIMIT (SELECT 1)) UNION ALL SELECT a FROM t ORDER BY 1",
        "WITH c AS (SELECT 2 AS n), d AS (SELECT a FROM t ORDER BY a LIMIT (SELECT n FROM c)) SELECT sum(a) FROM d",
        "WITH c AS (SELECT 1 AS n) SELECT * FROM (WITH c AS (SELECT n + 1 AS n FROM c) SELECT a FROM t ORDER BY a "
        "LIMIT (SELECT n FROM c)) ORDER BY a",
    ],
)
def test_a_limit_is_the_value_of_a_query(both: Both, text: str) -> None:
    session, plain = both
    result = session.sql(text)
    assert not result.in_process
    assert result.fetchall() == plain.execute(text).fetchall()


@pytest.mark.parametrize("value", ["SELECT -1", "SELECT 'x'", "SELECT a FROM t", "SELECT DATE '2020-01-01'"])
def test_a_value_that_is_no_limit_is_an_error(both: Both, value: str) -> None:
    session, plain = both
    text = f"SELECT a FROM t ORDER BY a LIMIT ({value})"
    with pytest.raises(duckdb.Error):
        plain.execute(text).fetchall()
    with pytest.raises(dl.DuckLakeError):
        session.sql(text).fetchall()


def test_a_view_with_such_a_limit_is_refused_by_name(both: Both) -> None:
    session, _ = both
    session.sql("CREATE VIEW first AS SELECT a FROM t ORDER BY a LIMIT (SELECT 2)")
    with pytest.raises(dl.UnsupportedFeatureError, match="LIMIT or OFFSET over a query, in a view or macro"):
        session.sql("SELECT sum(a) FROM first").fetchall()


def test_an_insert_takes_the_first_rows(both: Both) -> None:
    session, _ = both
    session.sql(
        "CREATE TABLE u (a INTEGER); INSERT INTO u SELECT a FROM t ORDER BY a LIMIT (SELECT count(*) - 2 FROM t)"
    )
    assert session.sql("SELECT a FROM u ORDER BY a").fetchall() == [(1,), (2,)]
