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
    """CREATE TABLE d AS SELECT i, v::JSON AS v FROM (VALUES
        (1, '{"a.b": 1, "a": {"b": 2, "c d": [1, {"x": null}]}, "0": "zero", "*": 7}'), (2, '[10, 20, {"a": 1}]'),
        (3, NULL), (4, '"text"')) AS t(i, v)""",
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
        # parameters of lambdas, and the fields of structs
        "SELECT list_transform([{'i': i + 5}], lambda t: t.i) AS a, list_filter([{'a': {'b': i}}], lambda x: x.a.b > 2) AS b FROM t",
        "SELECT [x.k + 1 FOR x IN [{'k': i}] IF x.k > 1] AS a FROM t",
        "SELECT s.*, s.* EXCLUDE (a) FROM (SELECT {'a': i, 'b': [j]} AS s FROM t) AS q ORDER BY ALL",
        # texts of intervals, and what is added to them
        "SELECT interval '14 months ago', INTERVAL '1 day 04:05:06', INTERVAL '1.5 days', INTERVAL '1.5' DAY, INTERVAL '90 m', "
        "INTERVAL '5 days', INTERVAL '-5 days', INTERVAL '1y 2mons ago', INTERVAL '04:05:06', INTERVAL '1 century' FROM u",
        "SELECT INTERVAL '1.5' MILLENNIA, INTERVAL 2 CENTURIES, INTERVAL '1.5' SECOND, INTERVAL 5 MILLISECONDS, INTERVAL 1 HOUR FROM u",
        "SELECT INTERVAL 1 DAY + '2020-01-01'::DATE, INTERVAL '1' DAY + '2020-01-01'::TIMESTAMP, INTERVAL (i) HOURS FROM t ORDER BY i",
        "SELECT * FROM range(3) WITH ORDINALITY AS o(x, y), u WHERE y > u.i ORDER BY ALL",
        "SELECT i, o.* FROM t, unnest([i, j]) WITH ORDINALITY o ORDER BY ALL",
        # ordered-set aggregates
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY j), percentile_disc(0.25) WITHIN GROUP (ORDER BY j DESC) FROM t",
        "SELECT k, percentile_disc([0.2, 0.9]) WITHIN GROUP (ORDER BY i) FILTER (WHERE i > 0) AS p FROM t GROUP BY k ORDER BY k",
        "SELECT mode() WITHIN GROUP (ORDER BY j DESC) AS m, chr(65) COLLATE NOCASE = 'a' FROM t",
        # NULL in a list is a value like others
        "SELECT i, i IN [NULL, 2], i NOT IN [NULL, 2], i IN [], NULL IN [i], [i] IN [[1]], i IN [2] AND true FROM t ORDER BY i",
        # values without names, of types that Arrow carries otherwise
        "SELECT list_zip(['14:59:37'::TIMETZ]), list_zip([INTERVAL 1 YEAR]), row(uuid(), 1) IS NULL, row(NULL::UUID, i) FROM t ORDER BY i",
        # what stands after -> is the name of a field, unless it begins with $ or /
        "SELECT v->'a.b', v->>'a.b', v->'$.a.b', v->>'/a/b', v->>'0', v->0, v->>1, v->(-1) FROM d ORDER BY i",
        "SELECT v->'a'->>'c d', (v->'a'->'c d')->1->'x', v->'', v->lower('A'), v->['a', 'a.b'] FROM d ORDER BY i",
        "SELECT v->'*' FROM d ORDER BY i",
        "SELECT json_array_length(v->'a'->'c d'), coalesce(v->'x', v->'0'), upper(v->>'0'), concat((v->'0'), '!') FROM d ORDER BY i",
        "SELECT count(v->'a'), max(v->>'0'), count(DISTINCT v->'a'), list(v->>'0' ORDER BY i DESC) AS l FROM d",
        "SELECT list_transform([1], x -> json_array_length(v->'a'->'c d') + x), list_transform([i], x -> x + i) FROM d ORDER BY i",
        "SELECT v->>'a.b' AS k, count(*) FROM d GROUP BY k ORDER BY k",
        # how operators group
        "SELECT v->'a' || 'b', v->>'0' || 'b', '{}' = v->>'0', i == 1 || 'x' FROM d ORDER BY ALL",
        "SELECT v->>'0' AS z FROM d WHERE v->>'0' IS NOT NULL ORDER BY i",
        "SELECT trim(v->>'0'), substring(v->>'0', 1, 1), substring(v->>'0' FROM 1 FOR 1) FROM d ORDER BY i",
        "SELECT @ i || 'a', @ -i - 5, ~i + 1, -i ^ 2, 2 ** i ^ 2, i & 1 | 2 << 1, upper('a') ^@ 'a' || 'b' FROM t ORDER BY i",
        "SELECT [1.0, i] <=> [1, 2], [1.0, i] <-> [1, 2], i IS NOT NULL < (k IS NULL) FROM t ORDER BY i",
        "SELECT chr(65) COLLATE nocase.noaccent = 'á' AS c FROM t ORDER BY upper(i::VARCHAR) COLLATE nocase.noaccent",
        # numbers, and the names of types
        "SELECT 1e3+1e3, i*1e6-1e-3, 1.5e3-2, .5e1+.5e1 FROM t ORDER BY i",
        "SELECT .34, typeof(.34), 42., -.5, .5e3, '0.1'::DECIMAL, [1]::DECIMAL[], [1]::DOUBLE[] FROM u",
        "SELECT [[i, 2]]::UINTEGER[2][], {'a': i}::STRUCT(a DOUBLE, \"b c\" DECIMAL(4,2)) FROM t ORDER BY i",
        "SELECT MAP {'a': i}::MAP(VARCHAR, TINYINT), [row(i, 1)], 'a'::ENUM('a', 'b') FROM t ORDER BY i",
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
        ("SELECT MAP(['1', '01'], [i, i])::MAP(INTEGER, INTEGER) FROM t", "Map keys must be unique"),
        ("SELECT 1::DECIMAL('x') FROM t", "DECIMAL"),
    ],
)
def test_what_duckdb_refuses_is_refused(both: Both, text: str, said: str) -> None:
    session, plain = both
    with pytest.raises(duckdb.Error):
        plain.execute(text).fetchall()
    with pytest.raises(dl.DuckLakeError, match=said):
        session.sql(text).fetchall()
