"""Items of FROM with several columns of one name: each keeps its own values, under the names that DuckDB gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

SETUP = (
    "CREATE TABLE orders (id INTEGER, customer INTEGER, name VARCHAR)",
    "INSERT INTO orders VALUES (1, 7, 'bolt'), (2, 8, 'nut')",
    "CREATE TABLE customers (id INTEGER, name VARCHAR, id_1 INTEGER)",
    "INSERT INTO customers VALUES (7, 'Ada', 70), (8, 'Ben', 80)",
    "CREATE VIEW both_ids AS SELECT id, customer AS other FROM orders",
    "CREATE MACRO pairs() AS TABLE SELECT id AS a, customer AS b FROM orders",
)
QUERIES = (
    "SELECT * FROM (SELECT * FROM orders o JOIN customers c ON o.customer = c.id) ORDER BY 1",
    "WITH j AS (SELECT * FROM orders o JOIN customers c ON o.customer = c.id) SELECT * FROM j ORDER BY 1",
    "WITH j AS (SELECT * FROM orders o JOIN customers c ON o.customer = c.id) SELECT name_1, id_1 FROM j ORDER BY ALL",
    "SELECT j.id_1_1, j.* FROM (SELECT * FROM orders, customers) AS j ORDER BY ALL",
    "SELECT * FROM (FROM orders, customers, customers AS more) ORDER BY ALL",
    "SELECT * FROM orders AS o(name) ORDER BY 1",
    "SELECT name_1, name FROM orders AS o(name) ORDER BY 1",
    "SELECT * FROM orders AS o(NAME, Name) ORDER BY 1",
    "SELECT * FROM customers AS c(id_1) ORDER BY 1",
    "SELECT * FROM orders AS o(name) JOIN orders AS p(name) USING (name) ORDER BY 1",
    "SELECT * FROM (VALUES (1, 2, 3)) AS v(t, t, t)",
    "SELECT t_2, t FROM (VALUES (1, 2, 3)) AS v(t, t, t)",
    "SELECT * FROM (SELECT 1 AS a, 2 AS A, 3 AS a_1)",
    "SELECT * FROM (SELECT 1 AS a, 2 AS a, 3 AS a_1) AS v(b)",
    "SELECT * FROM both_ids AS v(other) ORDER BY 1",
    "SELECT * FROM pairs() AS p(b) ORDER BY 1",
    "WITH c(q, q) AS (SELECT 1, 2) SELECT q_1, * FROM c",
    "WITH c AS (SELECT id, id FROM orders) SELECT * FROM c AS d(id_1) ORDER BY 1",
    "SELECT * EXCLUDE (name_1) FROM (SELECT * FROM orders, customers) ORDER BY ALL",
    "SELECT * REPLACE (name_1 || '!' AS name) FROM (SELECT * FROM orders, customers) ORDER BY ALL",
    "SELECT COLUMNS('name') FROM (SELECT * FROM orders, customers) ORDER BY ALL",
    "SELECT sum(id_1) FROM (SELECT id, customer AS id FROM orders)",
    "SELECT * FROM (SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 4) ORDER BY 1",
    "SELECT o.id, (SELECT max(a_1) FROM (SELECT o.id AS a, o.customer AS a)) AS m FROM orders o ORDER BY 1",
)


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[list[str], list[tuple[object, ...]]]]:
    """Of DuckDB alone: the names of the columns, and the rows."""
    found = {}
    with duckdb.connect() as connection:
        for statement in SETUP:
            connection.execute(statement)
        for query in QUERIES:
            done = connection.execute(query)
            found[query] = ([column[0] for column in done.description], done.fetchall())
    return found


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder: Path = tmp_path_factory.mktemp("names")
    with dl.connect(f"ducklake:{folder}/lake.ducklake") as opened:
        for statement in SETUP:
            opened.sql(statement)
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_each_column_keeps_its_values(
    query: str, session: dl.Session, answers: dict[str, tuple[list[str], list[tuple[object, ...]]]]
) -> None:
    result = session.sql(query)
    assert (result.columns, result.fetchall()) == answers[query]


def test_tables_of_such_rows_have_the_same_values(session: dl.Session) -> None:
    session.sql(
        "CREATE OR REPLACE TABLE copy AS WITH j AS (FROM orders o JOIN customers c ON o.customer = c.id) FROM j"
    )
    rows = session.sql("SELECT name, name_1, id_1, id_1_1 FROM copy ORDER BY ALL").fetchall()
    assert rows == [("bolt", "Ada", 7, 70), ("nut", "Ben", 8, 80)]
