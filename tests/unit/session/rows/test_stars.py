"""Stars with all that DuckDB takes after them, and columns whose names a table around or inside has, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

SETUP = (
    "CREATE TABLE a (id INTEGER, v INTEGER, s STRUCT(id INTEGER, w INTEGER))",
    "INSERT INTO a VALUES (1, 10, {'id': 100, 'w': 5}), (2, 20, {'id': 200, 'w': 6}), (3, NULL, NULL)",
    "CREATE TABLE b (id INTEGER, v INTEGER, z VARCHAR)",
    "INSERT INTO b VALUES (2, 21, 'x'), (3, 31, 'y'), (4, 41, NULL)",
    "CREATE TABLE p (id INTEGER, a STRUCT(id INTEGER, v INTEGER, z VARCHAR), s INTEGER)",
    "INSERT INTO p VALUES (2, {'id': 2, 'v': 21, 'z': 'x'}, 2)",
)
QUERIES = (
    "SELECT * EXCLUDE (a.v) FROM a JOIN b ON a.id = b.id ORDER BY ALL",
    "SELECT * EXCLUDE (b.id, v) FROM a JOIN b ON a.id = b.id ORDER BY ALL",
    "SELECT * EXCLUDE (a.id) FROM a FULL JOIN b USING (id) ORDER BY ALL",
    "SELECT * RENAME (a.id AS k) FROM a JOIN b ON a.id = b.id ORDER BY ALL",
    "SELECT * RENAME (id AS k) FROM a JOIN b ON a.id = b.id ORDER BY ALL",
    "SELECT * REPLACE (a.v + 1 AS v) FROM a JOIN b ON a.id = b.id ORDER BY ALL",
    "SELECT * LIKE 'v%' FROM a ORDER BY ALL",
    "SELECT * ILIKE 'V%', id FROM a ORDER BY ALL",
    "SELECT * NOT LIKE 'v%' FROM a ORDER BY ALL",
    "SELECT * SIMILAR TO 'v|id' FROM a ORDER BY ALL",
    "SELECT * GLOB 'v*' FROM a ORDER BY ALL",
    "SELECT a.* LIKE 'v%' FROM a ORDER BY ALL",
    "SELECT (*) FROM b ORDER BY ALL",
    "SELECT COLUMNS(lambda c: c LIKE 'v%') FROM a ORDER BY ALL",
    "SELECT COLUMNS(['v', 'id']) FROM a ORDER BY ALL",
    "SELECT COLUMNS('[[:alpha:]]d$') FROM a ORDER BY ALL",
    "SELECT COLUMNS('(.*)d') AS 'x_\\1' FROM a ORDER BY ALL",
    "SELECT COALESCE(*COLUMNS('id|v')) AS first FROM a ORDER BY ALL",
    "SELECT struct_pack(*COLUMNS('id|v')) AS both FROM a ORDER BY ALL",
    "SELECT count(*), count(COLUMNS(* EXCLUDE (s))) FROM a",
    "SELECT id FROM p WHERE EXISTS (FROM b AS s WHERE p.s = s.id) ORDER BY ALL",
    "SELECT id FROM p WHERE EXISTS (FROM b AS a WHERE p.a = a AND a.id = 2) ORDER BY ALL",
    "SELECT id, (SELECT max(a) FROM b AS a) AS row FROM p",
    "SELECT sum(v) AS v FROM a HAVING v > 5",
    "SELECT id % 2 AS m, sum(v) AS v FROM a GROUP BY m HAVING v > 5 ORDER BY m",
    "SELECT id % 2 AS v, count(*) AS n FROM a GROUP BY id % 2 HAVING v = 1",
    "SELECT -id AS id, count(*) AS c FROM a GROUP BY id HAVING id > 1 ORDER BY ALL",
    "SELECT count(*) AS id, v FROM a GROUP BY v HAVING id > 0 AND v > 5 ORDER BY ALL",
    "SELECT sum(v) AS s FROM a HAVING s > 5 AND sum(v) > 3",
    "SELECT sum(v) AS v, id FROM a GROUP BY ALL HAVING v IN (10, 20) ORDER BY id",
    "SELECT max(v) AS v, id FROM a GROUP BY id HAVING v > (SELECT min(v) FROM b WHERE b.id > a.id) ORDER BY ALL",
)


@pytest.fixture(scope="module")
def alone() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for statement in SETUP:
            connection.execute(statement)
        yield connection


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder: Path = tmp_path_factory.mktemp("stars")
    with dl.connect(f"ducklake:{folder}/lake.ducklake") as opened:
        for statement in SETUP:
            opened.sql(statement)
        yield opened


@pytest.mark.parametrize("query", QUERIES)
def test_stars_are_those_of_duckdb(query: str, session: dl.Session, alone: duckdb.DuckDBPyConnection) -> None:
    done = alone.execute(query)
    result = session.sql(query)
    assert (result.columns, result.fetchall()) == ([column[0] for column in done.description], done.fetchall())


def test_patterns_that_duckdb_cannot_read_are_refused(session: dl.Session) -> None:
    with pytest.raises(dl.BindError):
        session.sql("SELECT COLUMNS('(') FROM a")
