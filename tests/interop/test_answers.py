"""Queries over a lake, in process, and over the same table in DuckDB: the same names, rows and refusals."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import ducklake_lab as dl

Both = tuple[dl.Session, duckdb.DuckDBPyConnection]

_TABLES = (
    "CREATE TABLE t AS SELECT range AS i, range * 3 % 7 AS j, range % 2 AS k FROM range(6)",
    "CREATE TABLE u AS SELECT range AS i, range + 10 AS v FROM range(4)",
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("answers")
    with (
        dl.connect(f"ducklake:{folder}/x.ducklake", alias="lake", engine="duckdb") as session,
        duckdb.connect() as plain,
    ):
        for statement in _TABLES:
            session.sql(statement)
            plain.execute(statement)
        yield session, plain


@pytest.mark.parametrize(
    "text",
    [
        # the last of several columns that are named alike
        "SELECT i AS x, -i AS x FROM t ORDER BY x",
        "SELECT -i AS x, i AS x FROM t WHERE x > 3 ORDER BY x",
        "SELECT i, -i AS i FROM t ORDER BY i",
        "SELECT i, -i AS i FROM t ORDER BY t.i",
        "SELECT *, -i AS i FROM t ORDER BY i",
        "SELECT i AS x, -i AS x, x AS y FROM t ORDER BY 1",
        "SELECT k AS g, -k AS g, count(*) FROM t GROUP BY g, k ORDER BY 1",
        # DISTINCT ON
        "SELECT DISTINCT ON (1) k, i FROM t ORDER BY 1, 2 DESC",
        "SELECT DISTINCT ON (k) i, j % 2 AS k FROM t ORDER BY k, i",
        "SELECT DISTINCT ON (a, 2) k AS a, j % 2 AS b, i FROM t ORDER BY a, b, i",
        # columns by their position
        "SELECT #1, #2 + 1 AS x FROM t WHERE #3 = 1 ORDER BY #2",
        "SELECT j, i FROM t ORDER BY #1",
        "SELECT #4, #5 FROM t JOIN u USING (i) ORDER BY ALL",
        "SELECT i, j FROM t UNION ALL SELECT v, i FROM u ORDER BY #2, #1",
        # changes of *
        "SELECT COLUMNS(* REPLACE (i + 100 AS i)) FROM t ORDER BY ALL",
        "SELECT COLUMNS(* EXCLUDE (k) REPLACE (i + 100 AS i)) * 2 FROM t ORDER BY ALL",
        "SELECT COLUMNS(* REPLACE (i + 10 AS i, v + 20 AS v)) FROM t NATURAL JOIN u ORDER BY ALL",
        "SELECT COLUMNS(* RENAME (i AS n)) FROM t ORDER BY ALL",
        "SELECT * EXCLUDE (t.i, k) FROM t, u ORDER BY ALL",
    ],
)
def test_the_answer_is_duckdbs(both: Both, text: str) -> None:
    session, plain = both
    expected = plain.execute(text)
    names = [column[0] for column in expected.description or ()]
    result = session.sql(text)
    assert (list(result.columns), result.fetchall()) == (names, expected.fetchall())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * EXCLUDE (u.i) FROM t", 'No table "u" of FROM has a column "i"'),
        ("SELECT * EXCLUDE (i, I) FROM t", 'Duplicate entry "I" in EXCLUDE'),
        ("SELECT * EXCLUDE (i) REPLACE (j AS i) FROM t", "cannot occur in both"),
        ("SELECT #4 FROM t", "no column #4; FROM has 3"),
    ],
)
def test_what_duckdb_refuses_is_refused(both: Both, text: str, said: str) -> None:
    session, plain = both
    with pytest.raises(duckdb.Error):
        plain.execute(text)
    with pytest.raises(dl.DuckLakeError, match=said):
        session.sql(text).fetchall()
