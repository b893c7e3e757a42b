"""UPDATE, DELETE, INSERT and MERGE after WITH: they change the rows that DuckDB changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

SETUP = (
    "CREATE TABLE a (id INTEGER, v INTEGER)",
    "INSERT INTO a VALUES (1, 10), (2, 20), (3, NULL)",
    "CREATE TABLE b (id INTEGER, v INTEGER)",
    "INSERT INTO b VALUES (2, 21), (3, 31), (4, 41)",
)
STATEMENTS = (
    "WITH c AS (SELECT id, v * 2 AS v FROM b) UPDATE a SET v = c.v FROM c WHERE c.id = a.id",
    "WITH c AS (SELECT id FROM b), d AS (SELECT max(id) AS m FROM c) UPDATE a SET v = (SELECT m FROM d) WHERE id IN (FROM c)",
    "WITH c AS (SELECT id FROM b) DELETE FROM a WHERE id IN (FROM c)",
    "WITH c AS (SELECT id FROM b WHERE v > 25) DELETE FROM a USING c WHERE c.id = a.id",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2) DELETE FROM a WHERE id IN (SELECT n FROM c)",
    "WITH c AS (SELECT 7 AS id) INSERT INTO a SELECT id, 1 FROM c",
    "WITH c AS (FROM b) MERGE INTO a USING c ON a.id = c.id WHEN MATCHED THEN UPDATE SET v = c.v "
    "WHEN NOT MATCHED THEN INSERT VALUES (c.id, c.v)",
)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> dl.Session:
    session = dl.connect(lake_uri(), data_path=f"{tmp_path}/data")
    for statement in SETUP:
        session.sql(statement)
    return session


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_are_those_of_duckdb(statement: str, session: dl.Session) -> None:
    with duckdb.connect() as alone, session:
        for text in (*SETUP, statement):
            alone.execute(text)
        session.sql(statement)
        assert session.sql("FROM a ORDER BY ALL").fetchall() == alone.execute("FROM a ORDER BY ALL").fetchall()


def test_a_query_called_like_the_table_is_refused(session: dl.Session) -> None:
    with session:
        with pytest.raises(dl.UnsupportedFeatureError, match="a in WITH is called like the table that changes"):
            session.sql("WITH a AS (SELECT 1 AS id) UPDATE a SET v = 0 WHERE id IN (SELECT id FROM a)")
        assert session.current_snapshot().snapshot_id == len(SETUP)
