"""Labelled statements: what each column of each statement comes from.

Tables: a (id, x, s), b (id, y), c (k, st STRUCT(f, g), l INTEGER[]); views va (i, twice) and vb (id, y).
"""

from __future__ import annotations

from collections.abc import Iterator

#: Expression over a, and the columns of a that its value comes from.
EXPRESSIONS: list[tuple[str, str]] = [
    ("a.x", "x"),
    ("a.x + a.id", "id x"),
    ("a.x * 2 + 1", "x"),
    ("upper(a.s)", "s"),
    ("a.s || '-' || a.x", "s x"),
    ("CASE WHEN a.x > 0 THEN a.s ELSE 'none' END", "s x"),
    ("coalesce(a.x, a.id, 0)", "id x"),
    ("CAST(a.x AS VARCHAR)", "x"),
    ("a.x BETWEEN 1 AND a.id", "id x"),
    ("a.s IN ('p', 'q')", "s"),
    ("a.x IS NULL", "x"),
    ("1 + 1", ""),
    ("'a.x'", ""),
    ("[a.x, a.id]", "id x"),
    ("{'f': a.x, 'g': a.s}", "s x"),
    ("list_transform([a.x], e -> e + a.id)", "id x"),
    ("a.s LIKE 'p%'", "s"),
    ("date_add(DATE '2025-01-01', INTERVAL (a.x) DAY)", "x"),
    ("-a.x", "x"),
    ("NOT (a.x > a.id)", "id x"),
]

#: Statements around an expression, and the table whose column gets it.
CONTEXTS: list[tuple[str, str]] = [
    ("SELECT {e} AS v FROM a", ""),
    ("SELECT v FROM (SELECT {e} AS v, a.id FROM a) AS t", ""),
    ("WITH t AS (SELECT {e} AS v, a.id FROM a), u AS (SELECT * FROM t) SELECT u.v FROM u", ""),
    ("SELECT {e} AS v FROM a LEFT JOIN b ON a.id = b.id WHERE b.y > 3", ""),
    ("CREATE VIEW n AS SELECT {e} AS v FROM a ORDER BY a.id", ""),
    ("CREATE TABLE n AS SELECT DISTINCT {e} AS v FROM a", ""),
    ("INSERT INTO n (v) SELECT {e} FROM a", "n"),
    ("SELECT {e} AS v FROM a UNION ALL SELECT {e} FROM a", ""),
]

#: Statement, the columns of the table that it writes, and for each of its columns the origins.
WRITTEN_OUT: list[tuple[str, str, dict[str, str]]] = [
    ("SELECT * FROM a", "", {"id": "a.id", "x": "a.x", "s": "a.s"}),
    ("FROM a", "", {"id": "a.id", "x": "a.x", "s": "a.s"}),
    ("TABLE b", "", {"id": "b.id", "y": "b.y"}),
    ("SELECT t.* FROM a AS t", "", {"id": "a.id", "x": "a.x", "s": "a.s"}),
    ("SELECT * EXCLUDE (s) FROM a", "", {"id": "a.id", "x": "a.x"}),
    ("SELECT * REPLACE (x + id AS x) FROM a", "", {"id": "a.id", "x": "a.id a.x", "s": "a.s"}),
    ("SELECT COLUMNS('^[ix]') FROM a", "", {"id": "a.id", "x": "a.x"}),
    ("SELECT COLUMNS(* EXCLUDE (id)) FROM b", "", {"y": "b.y"}),
    ("SELECT * FROM a JOIN b USING (id)", "", {"id": "a.id", "x": "a.x", "s": "a.s", "y": "b.y"}),
    ("SELECT * FROM a RIGHT JOIN b USING (id)", "", {"id": "b.id", "x": "a.x", "s": "a.s", "y": "b.y"}),
    ("SELECT * FROM a FULL JOIN b USING (id)", "", {"id": "a.id b.id", "x": "a.x", "s": "a.s", "y": "b.y"}),
    ("SELECT * FROM a NATURAL JOIN b", "", {"id": "a.id", "x": "a.x", "s": "a.s", "y": "b.y"}),
    ("SELECT * FROM a SEMI JOIN b USING (id)", "", {"id": "a.id", "x": "a.x", "s": "a.s"}),
    ("SELECT s FROM a ANTI JOIN b ON a.id = b.id", "", {"s": "a.s"}),
    ("SELECT b.y FROM a, b WHERE a.id = b.id", "", {"y": "b.y"}),
    ("SELECT p.x AS m, q.x AS n FROM a p JOIN a q ON p.id = q.x", "", {"m": "a.x", "n": "a.x"}),
    ("SELECT y FROM a CROSS JOIN b", "", {"y": "b.y"}),
    ("SELECT s, sum(x) AS t FROM a GROUP BY s", "", {"s": "a.s", "t": "a.x"}),
    ("SELECT s, sum(x) AS t FROM a GROUP BY ALL HAVING count(*) > 1", "", {"s": "a.s", "t": "a.x"}),
    ("SELECT count(*) AS n FROM a", "", {"n": ""}),
    ("SELECT count(DISTINCT s) AS n, max(x) - min(id) AS d FROM a", "", {"n": "a.s", "d": "a.id a.x"}),
    ("SELECT s, x FROM a GROUP BY GROUPING SETS ((s, x), (s))", "", {"s": "a.s", "x": "a.x"}),
    ("SELECT sum(x) FILTER (WHERE s = 'p') AS t FROM a", "", {"t": "a.s a.x"}),
    ("SELECT sum(x) OVER (PARTITION BY s ORDER BY id) AS t FROM a", "", {"t": "a.id a.s a.x"}),
    ("SELECT row_number() OVER (ORDER BY x) AS n FROM a", "", {"n": "a.x"}),
    ("SELECT s FROM a QUALIFY row_number() OVER (PARTITION BY s ORDER BY id) = 1", "", {"s": "a.s"}),
    ("SELECT x AS u, u * 2 AS w FROM a", "", {"u": "a.x", "w": "a.x"}),
    ("SELECT (SELECT max(y) FROM b WHERE b.id = a.id) AS m FROM a", "", {"m": "b.y"}),
    ("SELECT EXISTS (SELECT 1 FROM b WHERE b.id = a.id) AS e FROM a", "", {"e": ""}),
    ("SELECT x FROM a WHERE id IN (SELECT id FROM b)", "", {"x": "a.x"}),
    ("SELECT x + (SELECT min(y) FROM b) AS v FROM a", "", {"v": "a.x b.y"}),
    ("SELECT id FROM a UNION SELECT y FROM b", "", {"id": "a.id b.y"}),
    ("SELECT id, x FROM a UNION ALL BY NAME SELECT y AS x, id FROM b", "", {"id": "a.id b.id", "x": "a.x b.y"}),
    ("SELECT id FROM a EXCEPT SELECT id FROM b", "", {"id": "a.id"}),
    ("SELECT id FROM a INTERSECT SELECT y FROM b", "", {"id": "a.id"}),
    ("SELECT st.f AS f, st['g'] AS g FROM c", "", {"f": "c.st", "g": "c.st"}),
    ("SELECT st.* FROM c", "", {"f": "c.st", "g": "c.st"}),
    ("SELECT l[1] AS e, unnest(l) AS u FROM c", "", {"e": "c.l", "u": "c.l"}),
    ("SELECT k, u.v FROM c, unnest(l) AS u(v)", "", {"k": "c.k", "v": "c.l"}),
    ("SELECT list_sum(list_filter(l, e -> e > k)) AS t FROM c", "", {"t": "c.k c.l"}),
    ("SELECT [e * 2 FOR e IN l] AS d FROM c", "", {"d": "c.l"}),
    ("SELECT t.v FROM a, LATERAL (SELECT x + y AS v FROM b WHERE b.id = a.id) AS t", "", {"v": "a.x b.y"}),
    ("SELECT j FROM (SELECT id FROM a) AS t(j)", "", {"j": "a.id"}),
    ("WITH t(i, j) AS (SELECT id, x FROM a) SELECT j, i FROM t", "", {"j": "a.x", "i": "a.id"}),
    (
        "WITH RECURSIVE r AS (SELECT id, x FROM a UNION ALL SELECT r.id, r.x + b.y FROM r JOIN b ON b.id = r.id WHERE r.x < 9) "
        "SELECT * FROM r",
        "",
        {"id": "a.id", "x": "a.x b.y"},
    ),
    ("SELECT v.p, a.x FROM (VALUES (1), (2)) AS v(p), a", "", {"p": "", "x": "a.x"}),
    ("SELECT * FROM va", "", {"i": "va.i", "twice": "va.twice"}),
    ("SELECT twice + y AS v FROM va JOIN vb ON va.i = vb.id", "", {"v": "va.twice vb.y"}),
    ("CREATE VIEW n (p, q) AS SELECT id, x FROM a", "", {"p": "a.id", "q": "a.x"}),
    ("CREATE OR REPLACE VIEW n AS FROM va SELECT i", "", {"i": "va.i"}),
    ("CREATE TABLE n AS FROM a SELECT s, x AS v WHERE id > 1", "", {"s": "a.s", "v": "a.x"}),
    ("INSERT INTO b SELECT id, x FROM a", "id y", {"id": "a.id", "y": "a.x"}),
    ("INSERT INTO b (y) SELECT x FROM a", "id y", {"y": "a.x"}),
    ("INSERT INTO b BY NAME SELECT x AS y, id FROM a", "id y", {"y": "a.x", "id": "a.id"}),
    ("INSERT INTO b FROM vb", "id y", {"id": "vb.id", "y": "vb.y"}),
    (
        "INSERT INTO b WITH t AS (SELECT id, x FROM a) SELECT id, sum(x) FROM t GROUP BY id",
        "id y",
        {"id": "a.id", "y": "a.x"},
    ),
    ("UPDATE a SET x = x + 1 WHERE s = 'p'", "id x s", {"x": "a.x"}),
    ("UPDATE a SET x = y, s = 'new' FROM b WHERE a.id = b.id", "id x s", {"x": "b.y", "s": ""}),
    ("UPDATE a SET x = (SELECT max(y) FROM b WHERE b.id = a.id)", "id x s", {"x": "b.y"}),
    ("UPDATE a SET s = DEFAULT, x = id", "id x s", {"x": "a.id"}),
    (
        "MERGE INTO b USING (SELECT id, x * 2 AS w FROM a) AS s ON b.id = s.id "
        "WHEN MATCHED THEN UPDATE SET y = s.w + b.y WHEN NOT MATCHED THEN INSERT (id, y) VALUES (s.id, s.w)",
        "id y",
        {"y": "a.x b.y", "id": "a.id"},
    ),
    (
        "MERGE INTO b AS t USING a ON t.id = a.id WHEN MATCHED AND a.x > 0 THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (a.id, a.x)",
        "id y",
        {"id": "a.id", "y": "a.x"},
    ),
    (
        "MERGE INTO b USING (SELECT id, x AS y FROM a) AS s USING (id) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT BY NAME",
        "id y",
        {"id": "a.id", "y": "a.x"},
    ),
    ("FROM (PIVOT a ON s IN ('p', 'q') USING sum(x) GROUP BY id)", "", {"id": "a.id", "p": "a.s a.x", "q": "a.s a.x"}),
    ("SELECT min_by(s, x) AS v FROM a", "", {"v": "a.s a.x"}),
    ("SELECT sum(x) OVER w AS v FROM a WINDOW w AS (PARTITION BY s ORDER BY id)", "", {"v": "a.id a.s a.x"}),
    (
        "SELECT id, count(*) OVER w AS v FROM a WINDOW u AS (PARTITION BY s), w AS (u ORDER BY x)",
        "",
        {"id": "a.id", "v": "a.s a.x"},
    ),
    ("SELECT string_agg(s, ',' ORDER BY id) AS v FROM a", "", {"v": "a.id a.s"}),
    ("SELECT a.x FROM a ASOF JOIN b ON a.id >= b.id", "", {"x": "a.x"}),
    ("SELECT t.x FROM (a AS t JOIN b ON t.id = b.id)", "", {"x": "a.x"}),
    ("SELECT DISTINCT ON (s) x FROM a ORDER BY id", "", {"x": "a.x"}),
    ("SELECT x FROM a ORDER BY s LIMIT 3", "", {"x": "a.x"}),
    ('SELECT "x" AS "X Y" FROM "a"', "", {"X Y": "a.x"}),
    ("SELECT main.a.x FROM main.a", "", {"x": "a.x"}),
    ("SELECT lake.main.b.y AS v FROM lake.main.b", "", {"v": "b.y"}),
]


def statements() -> Iterator[tuple[str, tuple[str, ...], dict[str, set[str]]]]:
    """Yields each statement with the columns of the table that it writes, and the origins of its columns."""
    for context, target in CONTEXTS:
        for expression, columns in EXPRESSIONS:
            origins = {f"a.{name}" for name in columns.split()}
            yield context.format(e=expression), ("v",) if target else (), {"v": origins}
    for text, target, labels in WRITTEN_OUT:
        yield text, tuple(target.split()), {name: set(origins.split()) for name, origins in labels.items()}
