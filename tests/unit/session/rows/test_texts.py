"""Queries in process are the user's text: names, types and rows are DuckDB's, whatever stands for names of lakes."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.canonical import is_one
from ducklake_lab.errors import SqlSyntaxError

pytestmark = pytest.mark.sampled(3)

_MADE = (
    "CREATE SCHEMA s; CREATE TABLE t AS SELECT i AS a, 'x' || i AS b FROM range(20) r(i); "
    "CREATE TABLE s.t AS SELECT 7 AS a, {'f': 1} AS st; CREATE TABLE u AS SELECT 1 AS a, 2.5 AS c; "
    "CREATE VIEW v AS SELECT a, count(*), a + 1 FROM t GROUP BY ALL; "
    "CREATE MACRO m(x, y := 2) AS x * y; CREATE MACRO biggest(x) AS (SELECT max(a) FROM t WHERE a < 10) + x; "
    "CREATE MACRO mm(z) AS m(z) + biggest(z); CREATE MACRO tm(k) AS TABLE SELECT * FROM t WHERE a = k; "
    "CREATE MACRO several(x) AS x, (x, y) AS x - y; CREATE MACRO typed(x INTEGER) AS 'number', (x VARCHAR) AS 'text'; CREATE MACRO s.m(x) AS x + 100; "
    "CREATE MACRO sized(a TINYINT) AS 1, (a SMALLINT) AS 2, (a HUGEINT) AS 16, (a DOUBLE) AS 8; "
    "CREATE VIEW vv AS SELECT mm(a) AS q, a FROM v WHERE a < 3"
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    """A lake and a DuckDB database of that name with equal contents."""
    folder = tmp_path_factory.mktemp("texts")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", engine="duckdb") as session, duckdb.connect() as connection:
        session.sql(_MADE)
        connection.execute(f"ATTACH ':memory:' AS lake; USE lake; {_MADE}")
        yield session, connection


@pytest.mark.parametrize(
    "query",
    [
        "SELECT lake.main.t.a, main.t.a + 1, t.b FROM main.t WHERE main.t.a < 3 ORDER BY main.t.a",
        "SELECT main.t.a, s.t.a, s.t.a + main.t.a, s.t.st.f FROM main.t, s.t WHERE main.t.a = s.t.a",
        "SELECT main.t.a FROM main.t WHERE EXISTS (FROM s.t WHERE s.t.a = main.t.a AND s.t.a = 7)",
        "SELECT (SELECT max(a) FROM lake.main.t), (SELECT a FROM s.t) + 1, 1 IN (SELECT a FROM u) FROM u",
        "SELECT m(a), m(a, y := 3), lake.main.m(2), s.m(1), a.m() FROM t WHERE a = 5",
        "SELECT mm(3), biggest(1), several(3), several(5, 2), m(m(2))",
        "SELECT sum(m(a)) OVER (ORDER BY a), list_transform([1, 2], lambda x: m(x)) FROM t ORDER BY a LIMIT 3",
        "SELECT typed(1 + 1), typed('a' || 'b'), typed(b), typed((SELECT 1)) FROM t WHERE a = 1",
        "SELECT sized(1), sized(1::BIGINT), sized(a), sized(1.5), sized(a := 3::UTINYINT) FROM t WHERE a = 1",
        "SELECT s.*, s.f.g FROM (SELECT {'f': {'g': a}, 'h': b} AS s FROM t) ORDER BY ALL LIMIT 2",
        "SELECT x, r + 1 FROM (SELECT unnest({'x': a, 'y': b}) FROM t), range(2) q(r) WHERE x = 3 ORDER BY ALL",
        "SELECT l.k FROM unnest([{'k': 1}, {'k': 2}]) u(l), (VALUES ({'m': 1})) v(w) WHERE w.m = 1 ORDER BY ALL",
        "FROM tm(3)",
        "SELECT x.b FROM lake.main.tm(1 + 3) x",
        "SELECT b FROM tm((SELECT 2))",
        "SELECT * FROM v WHERE a = 3",
        "SELECT v.*, lake.main.v.a FROM lake.main.v ORDER BY ALL LIMIT 2",
        "SELECT * FROM vv ORDER BY ALL",
        "SELECT w.q FROM vv w(q, r) WHERE r = 1",
        "WITH t AS (SELECT * FROM t WHERE a < 2) SELECT * FROM t ORDER BY a",
        "SELECT * FROM u, (WITH u AS (SELECT 5 AS z) SELECT * FROM u)",
        "TABLE u",
        "FROM u SELECT a, c, u",
        "SELECT COLUMNS(*) + (SELECT max(a) FROM lake.main.t) FROM u",
        "SELECT * EXCLUDE (b) REPLACE (a * (SELECT max(a) FROM t) AS a) FROM t ORDER BY a LIMIT 1",
        "SELECT a AS x, x + 1, 'it''s' AS b /* FROM t */ FROM t -- FROM t\n ORDER BY a LIMIT 1",
        "SELECT count(*), count(*) FILTER (a > 3), 1e3, true, NOT a = 1, CAST(max(a) AS DECIMAL(9,2)) FROM t GROUP BY a = 1, a ORDER BY a LIMIT 2",
        "SELECT a FROM t UNION BY NAME SELECT c FROM u ORDER BY a, c LIMIT 2",
        "SELECT current_date IS NULL, b.upper(), a BETWEEN 1 AND 2 FROM t ORDER BY a LIMIT 1",
        "VALUES ((SELECT max(a) FROM t)), (1)",
    ],
)
def test_names_types_and_rows_are_duckdbs(both: tuple[dl.Session, duckdb.DuckDBPyConnection], query: str) -> None:
    session, connection = both
    found, expected = session.sql(query), connection.sql(query)
    assert list(found.columns) == expected.columns
    assert list(found.types) == [str(kind) for kind in expected.types]
    assert found.fetchall() == expected.fetchall()


def test_a_macro_is_gone_after_its_query(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    session, _ = both
    session.sql("SELECT mm(1) FROM tm(3)")
    made = session.sql("SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'ducklake_%'")
    assert made.fetchall() == [(0,)]


def test_an_argument_is_that_of_the_call(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    # DuckDB's own macros would read the column of the table in the body
    session, _ = both
    assert session.sql("SELECT biggest(a) FROM u").fetchall() == [(10,)]
    session.sql("CREATE MACRO raised(x) AS list_transform([1, 2], lambda y: y + x)")
    assert session.sql("SELECT raised(y) FROM (SELECT 10 AS y)").fetchall() == [([11, 12],)]
    assert session.sql("SELECT (SELECT b FROM tm(u.a)) FROM u").fetchall() == [("x1",)]


def test_files_are_skipped_by_conditions_inside_of_macros_and_views(
    both: tuple[dl.Session, duckdb.DuckDBPyConnection],
) -> None:
    session, _ = both
    for query in ("FROM tm(3)", "SELECT biggest(1)", "FROM vv"):
        explained = session.sql(f"EXPLAIN {query}").fetchall()[0][1]
        assert "files skipped by" in explained, query


def test_copies_of_a_name_read_the_same_rows(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    session, connection = both
    query = "SELECT COLUMNS(*) + (SELECT count(*) FROM t WHERE t.a < 3) FROM (SELECT 1 AS p, 3 AS q)"
    assert session.sql(query).fetchall() == connection.sql(query).fetchall()


def test_reserved_words_are_names_in_quotes() -> None:
    with dl.Session(engine="duckdb") as session:
        query = 'SELECT "at", "both".at + 1 FROM (SELECT 1 AS at) AS "both"'
        assert session.sql(query).fetchall() == duckdb.sql(query).fetchall() == [(1, 2)]
        query = "SELECT at, at + 1 FROM (SELECT 1 AS at)"
        with pytest.raises(duckdb.ParserException):
            duckdb.sql(query)
        with pytest.raises(SqlSyntaxError, match=r"^Syntax error at \",\""):
            session.sql(query)


@pytest.mark.parametrize(
    ("condition", "count"),
    [("a IN (:v)", 2), ("a IN :v", 2), ("a NOT IN (:v, 3)", 17), ("a IN (:e)", 0), ("a = :n", 1)],
)
def test_values_of_parameters(both: tuple[dl.Session, duckdb.DuckDBPyConnection], condition: str, count: int) -> None:
    session, _ = both
    found = session.sql(f"SELECT count(*) FROM t WHERE {condition}", params={"v": [1, 2], "e": [], "n": 5})
    assert found.fetchall() == [(count,)]


def test_errors_name_the_macro_of_the_lake(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    session, _ = both
    session.sql('CREATE MACRO "one; more"(x INTEGER) AS x + 1')
    with pytest.raises(dl.DuckLakeError, match=r"^Macro one; more\(\) does not support"):
        session.sql("SELECT \"one; more\"('q')").fetchall()


@pytest.mark.parametrize(
    "text", ["SELECT 1); COPY t TO 'x'; (SELECT 1", "SELECT 1; SELECT 2", "SELECT (1", "DROP TABLE t"]
)
def test_a_stored_text_is_one_query(text: str) -> None:
    assert not is_one("SELECT", f"({text})")
    assert is_one("SELECT", "(SELECT 1 UNION ALL VALUES (2) ORDER BY 1)")
