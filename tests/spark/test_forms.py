"""Forms of DuckDB's SQL, on Spark and in process, compared with DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.beside import beside_duckdb, comparable

pytestmark = pytest.mark.sampled(4)

TABLES = {
    "t": {"k": "INTEGER", "s": "VARCHAR", "x": "DOUBLE", "l": "INTEGER[]"},
    "b": {"K": "INTEGER", "y": "VARCHAR"},
    "d": {"k": "INTEGER", "z": "VARCHAR"},
}
ROWS = {
    "t": "(1, 'a', 1.5, [1,2,3]), (2, 'b', 2.5, []), (3, 'a', NULL, [NULL, 7]), (NULL, 'c', 4.0, NULL)",
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
    "SELECT DISTINCT ON (s) s, count(*) AS n, max(k) AS m FROM t GROUP BY s, k QUALIFY row_number() OVER (ORDER BY m) < 4 ORDER BY s, m DESC",
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
]


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
