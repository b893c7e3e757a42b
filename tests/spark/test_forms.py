"""Forms of DuckDB's SQL, on Spark and in process, compared with DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError
from tests.spark.beside import beside_duckdb, comparable

pytestmark = pytest.mark.sampled(5)

TABLES = {
    "t": {"k": "INTEGER", "s": "VARCHAR", "x": "DOUBLE", "l": "INTEGER[]", "m": "VARCHAR[]"},
    "b": {"K": "INTEGER", "y": "VARCHAR"},
    "d": {"k": "INTEGER", "z": "VARCHAR"},
}
ROWS = {
    "t": "(1, 'a', 1.5, [1,2,3], ['p']), (2, 'b', 2.5, [], ['q', 'r']), (3, 'a', NULL, [NULL, 7], []), "
    "(NULL, 'c', 4.0, NULL, NULL)",
    "b": "(1, 'one'), (2, 'two'), (3, 'three'), (3, 'drei'), (9, 'nine')",
    "d": "(1, 'eins'), (9, 'neun'), (4, 'vier')",
}
QUERIES = [
    # a column of USING beside a relation with its name
    "SELECT k FROM t JOIN b USING (k) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT * FROM t JOIN b USING (k) JOIN b c ON c.k = k ORDER BY ALL",
    "SELECT * FROM t LEFT JOIN b USING (k) LEFT JOIN b c ON c.k = b.k ORDER BY ALL",
    "SELECT * FROM t RIGHT JOIN b USING (k) LEFT JOIN d c ON c.k = b.k ORDER BY ALL",
    "SELECT * FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT K, * FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = d.k ORDER BY ALL",
    "SELECT * EXCLUDE (k) FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = d.k ORDER BY ALL",
    "SELECT * REPLACE (k + 1 AS k) FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = d.k ORDER BY ALL",
    "SELECT * RENAME (s AS r) FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = d.k ORDER BY ALL",
    "SELECT COLUMNS('k|s') FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = d.k ORDER BY ALL",
    "SELECT COLUMNS(*)::VARCHAR FROM t FULL JOIN d USING (k) LEFT JOIN b c ON c.k = d.k ORDER BY ALL",
    "SELECT * FROM t JOIN b USING (k) LEFT JOIN b c ON c.k = t.k AND c.y <> b.y ORDER BY ALL",
    "SELECT k, t.k, c.k FROM t FULL JOIN b USING (k) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k, t.k, c.k FROM t FULL JOIN b USING (k) LEFT JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k, count(*) AS n FROM t FULL JOIN b USING (k) LEFT JOIN b c ON c.k = t.k GROUP BY k HAVING k > 0 ORDER BY k DESC",
    "SELECT * FROM ((VALUES (1, 'p'), (2, 'q')) v(k, n) JOIN t ON t.k = v.k) ORDER BY ALL",
    "SELECT * FROM ((VALUES (1, 'p'), (2, 'q')) v JOIN t ON t.k = v.col0) ORDER BY ALL",
    "SELECT v.col1, s FROM ((VALUES (1, 'p'), (2, 'q')) v JOIN t ON t.k = v.col0) ORDER BY ALL",
    "SELECT * FROM ((VALUES (1, 'p'), (2, 'q')) v JOIN t ON t.k = v.col0) j ORDER BY ALL",
    "SELECT * FROM t JOIN ((VALUES (1, 'p'), (2, 'q')) v(k, n) JOIN b USING (k)) USING (k) ORDER BY ALL",
    "SELECT DISTINCT ON (s) k, s, x FROM t QUALIFY row_number() OVER (PARTITION BY s ORDER BY k) >= 1 ORDER BY s, k DESC",
    "SELECT DISTINCT ON (s) k, s, x FROM t QUALIFY row_number() OVER (PARTITION BY s ORDER BY k DESC NULLS LAST) > 1 ORDER BY s, k DESC",
    "SELECT DISTINCT ON (upper(s), 1) k % 2, s, x FROM t QUALIFY sum(k) OVER () > 1 ORDER BY 2, x DESC LIMIT 2 OFFSET 1",
    "SELECT DISTINCT ON (s) s, count(*) AS n, max(k) AS most FROM t GROUP BY s, k QUALIFY row_number() OVER (ORDER BY most) < 4 ORDER BY s, most DESC",
    "SELECT DISTINCT ON (s) * FROM t QUALIFY count(*) OVER (PARTITION BY s) > 1 ORDER BY s, k",
    "SELECT DISTINCT ON (k) k, x AS s FROM t QUALIFY count(*) OVER (PARTITION BY s) > 1 ORDER BY s",
    "SELECT k FROM t FULL JOIN b USING (k) JOIN b c ON c.k = t.k AND c.k = b.k ORDER BY ALL",
    "SELECT k FROM t JOIN b USING (k) LEFT JOIN b c ON c.k = t.k WHERE t.k > 1 ORDER BY ALL",
    "SELECT k, count(*) FROM t JOIN b USING (k) JOIN b c ON c.k = t.k GROUP BY k ORDER BY k",
    "SELECT k FROM t SEMI JOIN b USING (k) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k FROM t ANTI JOIN d USING (k) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k FROM t JOIN b USING (k) CROSS JOIN b c ORDER BY ALL",
    "SELECT k FROM t NATURAL JOIN b JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k FROM t JOIN b USING (k), b c WHERE c.k = t.k ORDER BY ALL",
    "SELECT k FROM b c, t JOIN b USING (k) WHERE c.k = t.k ORDER BY ALL",
    "SELECT k FROM (t JOIN b USING (k)) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k FROM t JOIN (b JOIN b d USING (k)) USING (k) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k, t.k, b.k, c.k, d.k FROM t JOIN b USING (k) JOIN b c ON c.k = t.k JOIN d USING (k) ORDER BY ALL",
    "SELECT * FROM t FULL JOIN b USING (k) LEFT JOIN b c ON c.k = t.k LEFT JOIN d USING (k) ORDER BY ALL",
    "SELECT * FROM t FULL JOIN b USING (k) LEFT JOIN b c ON c.k = t.k FULL JOIN d USING (k) ORDER BY ALL",
    "SELECT * FROM t RIGHT JOIN b USING (k) LEFT JOIN b c ON c.k = t.k RIGHT JOIN d USING (k) ORDER BY ALL",
    "SELECT * FROM t JOIN b USING (k) JOIN b c ON c.k = t.k ANTI JOIN d USING (k) ORDER BY ALL",
    "SELECT * FROM t RIGHT JOIN b USING (k) ORDER BY ALL",
    "SELECT (SELECT max(z) FROM d WHERE d.k = t.k), k FROM t JOIN b USING (k) JOIN b c ON c.k = t.k ORDER BY ALL",
    "SELECT k, r.* FROM t JOIN b USING (k), range(k) r ORDER BY ALL",
    "SELECT k, (SELECT count(*) FROM b WHERE b.k = k) FROM t JOIN d USING (k) JOIN b c ON true ORDER BY ALL",
    "SELECT k FROM t JOIN b USING (k) JOIN b c ON c.k = t.k WHERE k IN (SELECT k FROM d) ORDER BY k",
    "SELECT k, typeof(k) FROM t RIGHT JOIN (SELECT k::BIGINT AS k, y FROM b) e USING (k) ORDER BY ALL",
    "SELECT k, typeof(k) FROM t FULL JOIN (SELECT k::BIGINT AS k, y FROM b) e USING (k) ORDER BY ALL",
    "SELECT k, typeof(k) FROM t LEFT JOIN (SELECT k::BIGINT AS k, y FROM b) e USING (k) ORDER BY ALL",
    "SELECT k, typeof(k) FROM t FULL JOIN (SELECT k::BIGINT AS k, y FROM b) e USING (k) LEFT JOIN d ON d.k = t.k ORDER BY ALL",
    "SELECT k, u FROM t JOIN b USING (k), unnest([k, 10]) x(u) ORDER BY ALL",
    "SELECT k, u FROM t JOIN b USING (k) LEFT JOIN d ON d.k = t.k, unnest([k, 10]) x(u) ORDER BY ALL",
    # rows of lists, ANY and ALL, columns of a PIVOT
    "SELECT unnest(l), unnest(l) FROM t ORDER BY ALL",
    "SELECT k, unnest(l) AS a, unnest(m) AS b FROM t ORDER BY ALL",
    "SELECT k, unnest(l) AS a, unnest([k, 10, 20, 30]) AS b FROM t ORDER BY ALL",
    "SELECT k, unnest(l) + k AS a FROM t ORDER BY ALL",
    "SELECT DISTINCT unnest(l) FROM t ORDER BY ALL",
    "SELECT DISTINCT unnest(l) AS u, s FROM t ORDER BY s, u DESC",
    "SELECT s, unnest(list(k ORDER BY k)) AS u, count(*) AS n FROM t GROUP BY s ORDER BY ALL",
    "SELECT unnest(l) AS u, generate_subscripts(l, 1) AS i FROM t ORDER BY ALL",
    "SELECT k, unnest(l) AS u FROM t QUALIFY row_number() OVER (ORDER BY k DESC NULLS LAST) < 3 ORDER BY ALL",
    "SELECT k, unnest(l) AS u, unnest(m) AS v FROM t WHERE k < 3 ORDER BY x DESC, u, v LIMIT 3 OFFSET 1",
    "SELECT k, unnest(l) AS u, unnest(m) AS v FROM t ORDER BY 1 DESC, 2, 3",
    "SELECT * FROM (SELECT k, unnest(l) AS u, unnest(m) AS v FROM t) q WHERE u > 1 OR v = 'q' ORDER BY ALL",
    "SELECT k, unnest(l)::VARCHAR || s || unnest([s]) AS a FROM t ORDER BY k, a",
    "SELECT k = ANY (SELECT k FROM b), k IN (SELECT k FROM b) FROM t ORDER BY ALL",
    "SELECT k < ALL (SELECT k FROM b), k <> ANY (SELECT k FROM b), NOT k = ANY (SELECT k FROM b) FROM t ORDER BY ALL",
    "SELECT k = ANY (SELECT k FROM b WHERE b.y <> t.s) FROM t ORDER BY ALL",
    "SELECT k = ANY (l) FROM t ORDER BY ALL",
    "SELECT k > ALL (l), k < ANY (l), k >= ALL ([k, 1]) FROM t ORDER BY ALL",
    "SELECT k = ANY ([1, 2]), k > ALL ([1,2]), NOT k >= ALL ([1]), k = SOME ([1]) FROM t ORDER BY ALL",
    "SELECT t.k, b.k FROM t JOIN b ON b.k = ANY (t.l) ORDER BY ALL",
    "DESCRIBE PIVOT t ON s IN ('a', 'b') USING sum(x) GROUP BY k",
    "DESCRIBE PIVOT t ON s USING sum(x) GROUP BY k",
    "DESCRIBE UNPIVOT b ON k INTO NAME n VALUE v",
    "SELECT k, CASE WHEN s = '{}' THEN INTERVAL 1 DAY ELSE to_days(k + strlen('{k}')) END AS i FROM t ORDER BY k",
    "SELECT k FROM t ORDER BY CASE WHEN k = 1 THEN INTERVAL 1 MONTH WHEN k = 2 THEN INTERVAL 29 DAY ELSE INTERVAL 40 DAY END, k",
    "SELECT k, rank() OVER (ORDER BY CASE WHEN k = 1 THEN INTERVAL 1 MONTH ELSE INTERVAL 30 DAY END) AS r FROM t ORDER BY k",
    "SELECT k FROM t ORDER BY CASE WHEN k = 1 THEN '20:00:00-10'::TIMETZ ELSE '21:00:00+05'::TIMETZ END DESC NULLS LAST, k LIMIT 2",
    "SELECT 1 IN (SELECT 2 UNION ALL SELECT 1) AS a, NULL IN (SELECT k FROM t) AS n, 7 IN (SELECT k FROM t) AS m, 1 IN (SELECT 3) AS o",
    "SELECT n FROM generate_series(9007199254740990, 9007199254740992, 1) g(n) ORDER BY n",
    "SELECT n FROM generate_series(-9007199254740990, -9007199254740992, -1) g(n) ORDER BY n",
    "SELECT k % 2 AS a, unnest(list(k)) AS u FROM t GROUP BY a ORDER BY ALL",
    "SELECT 5 AS f, k % 2 AS a, unnest(list(k)) AS u FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT k % 2 + 1 AS a, unnest([max(k)]) + k % 2 AS u FROM t GROUP BY k % 2 ORDER BY ALL",
    "SELECT k % 2 AS a, unnest(list(k)) AS u, grouping(k % 2) AS g FROM t GROUP BY ROLLUP (1) ORDER BY ALL",
    "SELECT array_distance([coalesce(k, 0), 1.0]::FLOAT[2], [0.0, 0.0]::FLOAT[2]) AS d FROM t ORDER BY ALL",
]
#: Queries that Spark refuses by name.
REFUSED = {
    "SELECT [k, 1, 2]::INT[3] AS a FROM t ORDER BY ALL": "INTEGER.3. are not supported on Spark",
    "SELECT max([k, 1]::INT[2]) AS m FROM t": "INTEGER.2. are not supported on Spark",
    "SELECT k::BIT AS a FROM t ORDER BY ALL": "BIT are not supported on Spark",
    "SELECT s::ENUM('c', 'b', 'a') AS m FROM t ORDER BY m": "ENUM.* are not supported on Spark",
    "SELECT ROW(1, 'x') AS r, ROW(k, s) AS q FROM t WHERE k = 1": "Values of several parts without names",
    "SELECT '170141183460469231731687303715884105727'::HUGEINT AS n FROM t WHERE k = 1": "38 digits of a number, and 17014",
    "FROM histogram_values(t, k) ORDER BY ALL": "histogram_values of lakes' tables is not supported on Spark",
    "SELECT bin FROM histogram('t', s) ORDER BY ALL": "histogram of lakes' tables is not supported on Spark",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM t')) ORDER BY ALL": "json_execute_serialized_sql of lakes' tables",
    "FROM query_table(t) ORDER BY ALL": "query_table of lakes' tables is not supported on Spark",
    "FROM query_table('t') ORDER BY ALL": "query_table of lakes' tables is not supported on Spark",
    "SELECT k FROM query_table('main.t') ORDER BY ALL": "query_table of lakes' tables",
    "SELECT q.k FROM query('SELECT * FROM b') q JOIN t USING (k) ORDER BY ALL": "query of lakes' tables",
    "FROM query('SELECT (SELECT max(k) FROM b) FROM t') ORDER BY ALL": "query of lakes' tables",
    "SELECT * FROM (SELECT (SELECT max(k) FROM b) FROM query('FROM t')) ORDER BY ALL": "query of lakes' tables",
}
#: Statements whose rows go to the session's own tables.
OWN_TABLES = [
    "CREATE OR REPLACE TEMP TABLE own AS PIVOT t ON s IN ('a', 'b') USING sum(x) GROUP BY k; FROM own ORDER BY ALL",
    "CREATE OR REPLACE TEMP TABLE own AS PIVOT t ON s USING sum(x) GROUP BY k; FROM own ORDER BY ALL",
    "CREATE OR REPLACE TEMP TABLE own AS UNPIVOT b ON k INTO NAME n VALUE v; "
    "INSERT INTO own UNPIVOT b ON k INTO NAME n VALUE v; FROM own ORDER BY ALL",
]
#: Failing casts, and how the error on Spark begins.
FAILING = {
    "SELECT s::INTEGER FROM t": "Column s: '",
    "SELECT max(s)::INTEGER FROM t": "CAST(max(s) AS INTEGER): 'c' is no INTEGER",
    "SELECT CAST(max(t.s) OVER () AS DATE) FROM t": "CAST(max(s) OVER () AS DATE): 'c' is no DATE",
    "SELECT (SELECT y FROM b WHERE y = 'one')::INTEGER FROM t": "CAST((SELECT y FROM b WHERE (y = 'one')) AS INTEGER): 'one'",
    "SELECT (SELECT max(y) FROM b WHERE b.k = t.k)::INTEGER FROM t WHERE k = 1": "CAST((SELECT max(y) FROM b WHERE (b.k",
    "SELECT concat(max(s), (SELECT min(y) FROM b WHERE y > 'a long text, so that the error cuts it'))::INTEGER FROM t": (
        "CAST(concat(max(s), (SELECT min(y) FROM b WHERE (y > 'a long text, so that the …: 'cdrei' is no INTEGER"
    ),
}


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with beside_duckdb(tmp_path_factory.mktemp("forms"), spark, TABLES, ROWS) as found:
        yield found


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_rows_and_names_are_those_of_duckdb(engine: str, query: str, both: Any) -> None:
    session, plain = both
    expected = plain.execute(query)
    names, rows = [column[0] for column in expected.description], expected.fetchall()
    result = session.sql(query, engine=engine)
    assert list(result.columns) == names
    assert [comparable(list(row)) for row in result.fetchall()] == [comparable(list(row)) for row in rows]


@pytest.mark.parametrize("query", REFUSED)
def test_spark_refuses_by_name_what_runs_in_process(query: str, both: Any) -> None:
    session, plain = both
    expected = plain.execute(query)
    with pytest.raises(UnsupportedFeatureError, match=REFUSED[query]):
        session.sql(query).fetchall()
    result = session.sql(query, engine="duckdb")
    assert list(result.columns) == [column[0] for column in expected.description]
    assert result.fetchall() == expected.fetchall()


@pytest.mark.parametrize("text", OWN_TABLES)
def test_own_tables_take_rows_of_a_pivot(text: str, both: Any) -> None:
    session, plain = both
    expected = plain.execute(text)
    result = session.sql(text, engine="duckdb")
    assert list(result.columns) == [column[0] for column in expected.description]
    assert result.fetchall() == expected.fetchall()


@pytest.mark.parametrize("query", FAILING)
def test_errors_of_casts_name_the_expression(query: str, both: Any) -> None:
    session, plain = both
    with pytest.raises(duckdb.ConversionException):
        plain.execute(query).fetchall()
    with pytest.raises(DuckLakeError) as raised:
        session.sql(query).fetchall()
    assert str(raised.value).startswith(FAILING[query])
    assert "ducklake_" not in str(raised.value)


@pytest.mark.parametrize("clause", ["WHERE", "GROUP BY k HAVING", "QUALIFY row_number() OVER () > 0 AND"])
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_unnest_stands_in_no_condition(engine: str, clause: str, both: Any) -> None:
    session, plain = both
    query = f"SELECT k FROM t {clause} unnest([true, true])"
    with pytest.raises(duckdb.BinderException, match="UNNEST not supported"):
        plain.execute(query)
    with pytest.raises(DuckLakeError, match=r"(?i)unnest .*not supported"):
        session.sql(query, engine=engine).fetchall()
