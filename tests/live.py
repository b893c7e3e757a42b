"""Live tables in tests: one query for each class that is refreshed by keys, and whether a table has its query's rows."""

from __future__ import annotations

import ducklake_lab as dl

#: Statements that make the sources of the queries.
SOURCES = """
CREATE TABLE t (k INTEGER, g INTEGER, v DECIMAL(8, 2), s VARCHAR, d DATE, f DOUBLE);
INSERT INTO t SELECT i, nullif(i % 5, 4), i * 1.25, 'n' || (i % 3), DATE '2024-01-01' + (i % 9)::INTEGER, i / 4 FROM range(40) r(i);
INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL), (3, 3, 3.75, 'n0', '2024-01-04', 'nan'), (3, 3, 3.75, 'n0', '2024-01-04', 'nan');
CREATE TABLE u (k INTEGER, name VARCHAR, w BIGINT);
INSERT INTO u SELECT i, 'u' || (i % 4), i FROM range(12) r(i);
INSERT INTO u VALUES (NULL, 'none', NULL), (3, 'u3', 3), (3, 'again', 30);
CREATE VIEW large AS SELECT * FROM t WHERE v > 5;
CREATE MACRO twice(x) AS x * 2;
"""

_ALL = "k, g, v, s, d, f"

#: Queries by their class. Values are exact: sums of floats have few binary digits, windows order by all columns.
QUERIES = {
    "projection": "SELECT k, s || '!' AS s, v * 2 AS v FROM t",
    "filter": "SELECT * FROM t WHERE v > 10 OR v IS NULL",
    "view and macro": "SELECT k, twice(v) AS v FROM large WHERE g <> 1",
    "union all": "SELECT k, s FROM t WHERE g = 2 UNION ALL SELECT k, name FROM u UNION ALL SELECT g, s FROM t",
    "union": "SELECT k, s FROM t UNION SELECT k, name FROM u",
    "except": "SELECT g FROM t EXCEPT SELECT k FROM u WHERE k > 1",
    "except all": "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "intersect": "SELECT k FROM t INTERSECT SELECT k FROM u",
    "inner join": "SELECT t.k, u.name, t.v FROM t JOIN u ON t.k = u.k WHERE u.w < 9",
    "comma join": "SELECT t.k, u.name FROM t, u WHERE t.g = u.k",
    "using": "SELECT k, s, name FROM t JOIN u USING (k)",
    "self join": "SELECT a.k, b.s FROM t a JOIN t b ON a.k = b.g",
    "left join": "SELECT t.k, t.g, u.name FROM t LEFT JOIN u ON t.k = u.k AND u.w > 2",
    "left join, filtered": "SELECT t.k, u.name FROM t LEFT JOIN u ON t.k = u.k WHERE u.name IS NULL OR u.w > 3",
    "right join": "SELECT t.s, u.k, u.name FROM t RIGHT JOIN u ON t.g = u.k",
    "full join": "SELECT t.k AS a, u.k AS b, name FROM t FULL JOIN u ON t.k = u.k",
    "full join using": "SELECT k, s, name FROM t FULL JOIN u USING (k)",
    "outer joins in a row": "SELECT t.k, u.name, x.w FROM t LEFT JOIN u ON t.g = u.k LEFT JOIN u x ON x.k = u.w + 1",
    "cross join": "SELECT t.k, u.k AS uk FROM t CROSS JOIN u WHERE t.k + u.k = 9",
    "join of a range": "SELECT t.k, u.name FROM t JOIN u ON t.k BETWEEN u.k AND u.k + 1",
    "semi join": "SELECT k, v FROM t SEMI JOIN u ON t.g = u.k",
    "anti join": "SELECT k, v FROM t ANTI JOIN u ON t.k = u.k",
    "group by": "SELECT g, sum(v) AS v, min(s) AS s, max(d) AS d, avg(v) AS a, count(DISTINCT s) AS n FROM t GROUP BY g",
    "group by floats": "SELECT g, sum(f) AS f, avg(f) AS a, min(f) AS least FROM t GROUP BY g",
    "group by all": "SELECT g, s, count(*) AS n, string_agg(d::VARCHAR, ',' ORDER BY d) AS d FROM t GROUP BY ALL",
    "group by expression": "SELECT d - (k % 2)::INTEGER AS day, list(k ORDER BY k) AS ks FROM t GROUP BY 1",
    "having": "SELECT g, sum(v) AS v FROM t GROUP BY g HAVING count(*) > 8",
    "group of a join": "SELECT name, count(t.k) AS n, sum(v) AS v FROM u LEFT JOIN t ON t.g = u.k GROUP BY name",
    "group of a full join": "SELECT u.name, count(*) AS n, max(t.k) AS k FROM t FULL JOIN u ON t.g = u.k GROUP BY u.name",
    "sums": "SELECT g, count(*) AS n, sum(v) AS v, count(v) AS nv, sum(k)::BIGINT AS k, count(k) AS nk FROM t GROUP BY g",
    "sums of a join": "SELECT name, count(*) AS n, sum(v) AS v, count(v) AS nv FROM t JOIN u ON t.g = u.k GROUP BY name",
    "distinct": "SELECT DISTINCT g, s FROM t",
    "distinct on": f"SELECT DISTINCT ON (g) {_ALL} FROM t ORDER BY g, k, v, s, d, f",
    "window": f"SELECT k, g, row_number() OVER (PARTITION BY g ORDER BY {_ALL}) AS n, sum(v) OVER (PARTITION BY g) AS v FROM t",
    "named window": "SELECT k, g, rank() OVER w AS r FROM t WINDOW w AS (PARTITION BY g ORDER BY k)",
    "top n": f"SELECT g, k, v FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY v DESC, {_ALL}) <= 2",
    "window of groups": "SELECT g, s, sum(v) AS v, rank() OVER (PARTITION BY g ORDER BY sum(v)) AS r FROM t GROUP BY g, s",
    "nested groups": "SELECT n, count(*) AS times FROM (SELECT s, d, count(*) AS n FROM t GROUP BY s, d) GROUP BY n",
    "group of distinct": "SELECT g, count(*) AS n FROM (SELECT DISTINCT g, s FROM t) GROUP BY g",
    "join of groups": "WITH a AS (SELECT g, sum(v) AS v FROM t GROUP BY g) SELECT u.k, name, v FROM u LEFT JOIN a ON a.g = u.k",
    "group of a window": f"SELECT s, count(*) AS n FROM (SELECT s, row_number() OVER (PARTITION BY g ORDER BY {_ALL}) AS n FROM t) WHERE n < 3 GROUP BY s",
    "column of distinct on": "SELECT v FROM (SELECT DISTINCT ON (g) g, v FROM t ORDER BY g, v) AS b",
    "column of distinct on, by all": f"SELECT s FROM (SELECT DISTINCT ON (g) g, s, {_ALL.replace('s, ', '')} FROM t ORDER BY ALL) AS b",
    "join of distinct on": "SELECT t.k, b.v FROM t JOIN (SELECT DISTINCT ON (g) g, v FROM t ORDER BY 1, 2 DESC) AS b ON t.v = b.v",
    "group of distinct on": f"WITH a AS (SELECT DISTINCT ON (g) {_ALL} FROM t ORDER BY {_ALL}) SELECT s, count(*) AS n FROM a GROUP BY s ORDER BY s",
    "union of sorted sides": "SELECT k FROM ((SELECT DISTINCT ON (g) g, k FROM t ORDER BY g, k) UNION ALL (SELECT g, k FROM t ORDER BY k)) AS b",
    "except of sorted sides": "SELECT v FROM (SELECT DISTINCT ON (g) g, v FROM t ORDER BY g, v) EXCEPT (SELECT w FROM u ORDER BY w)",
    "global sum beside rows": "SELECT k, total FROM u CROSS JOIN (SELECT max(v) AS total FROM t)",
}


def differing(session: dl.Session, table: str, query: str, at: int) -> list[tuple[object, ...]]:
    """Returns rows that a table has and its query at a snapshot does not give, or the other way round; of bags."""
    expected, own = session.sql(query, at=at).arrow(), session.sql(f'FROM "{table}"').arrow()
    assert own.num_columns == expected.num_columns
    names = [f"c{i}" for i in range(expected.num_columns)]
    left, right = own.rename_columns(names), expected.rename_columns(names)
    casts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
    text = f"(SELECT {casts} FROM a) EXCEPT ALL (SELECT {casts} FROM b)"
    return [
        *session.sql(text, a=left, b=right).fetchall(),
        *session.sql(text, a=right, b=left).fetchall(),
    ]
