"""Queries at random, and some that were written, answer as plain DuckDB does, on Spark and in process, or are refused.

The small size tries some queries of fixed numbers; more of them, and others each time:

    QUERIES=2000 python -m pytest -s tests/spark/test_random_queries.py

It prints the share that Spark refuses, and fails where that is above one in twenty.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.spark import random_queries as made
from tests.spark.beside import beside_duckdb, comparable

_MANY = os.environ.get("QUERIES")
_SEEDS = [random.SystemRandom().randrange(2**32) for _ in range(int(_MANY))] if _MANY else range(24)
#: A sample of the suite takes one part of the queries in so many.
_PARTS = 4
#: The largest share of queries that Spark may refuse.
_REFUSED = 0.05

#: Queries that keep a value from failing, or ask for what Spark has no form of its own for.
WRITTEN = [
    # a condition keeps another one, a later query, a key of a join or of an order from failing
    "SELECT id FROM g WHERE regexp_matches(s, '^[0-9]+$') AND s::INTEGER > 0 ORDER BY id",
    "SELECT id FROM g WHERE s::INTEGER > 0 AND regexp_matches(s, '^[0-9]+$') AND id + s::INTEGER > 1 ORDER BY id",
    "SELECT id FROM g WHERE NOT regexp_matches(s, '^[0-9]+$') OR s::INTEGER > 5 ORDER BY id",
    "SELECT id FROM g WHERE id > 0 AND (s IS NULL OR id IN (2, 5, 6) OR s::INTEGER + id > 5) ORDER BY id",
    "WITH c AS (SELECT * FROM g WHERE regexp_matches(s, '^[0-9]+$')) SELECT id, s::INTEGER AS v FROM c WHERE s::INTEGER > 1 ORDER BY id",
    "WITH c AS (SELECT * FROM g WHERE regexp_matches(s, '^[0-9]+$')) SELECT c.id, u.id FROM c JOIN u ON c.s::INTEGER = u.i ORDER BY ALL",
    "SELECT s::INTEGER AS v FROM g WHERE regexp_matches(s, '^[0-9]+$') ORDER BY s::INTEGER DESC LIMIT 2",
    "SELECT sum(s::INTEGER), list(s::INTEGER ORDER BY id) FROM g WHERE regexp_matches(s, '^[0-9]+$')",
    "SELECT id, list(s::INTEGER) OVER (ORDER BY id) FROM g WHERE regexp_matches(s, '^[0-9]+$') ORDER BY id",
    # keys of ORDER BY behind HAVING that are computed, or of a type that Spark does not sort
    "SELECT o, histogram(i + 1) AS h FROM t GROUP BY o HAVING count(*) > 0 ORDER BY ALL",
    "SELECT o, list(year(day) ORDER BY k) AS l FROM t GROUP BY o HAVING count(*) > 0 ORDER BY l DESC, upper(string_agg(s, ',' ORDER BY k)) LIMIT 2",
    # windows that DuckDB computes for each partition
    "SELECT k, count(DISTINCT s) OVER (PARTITION BY o) AS c, list(i) OVER w AS l FROM t WINDOW w AS (PARTITION BY d ORDER BY k) ORDER BY k",
    "SELECT k, sum(i) OVER (ORDER BY i GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS g FROM t ORDER BY g DESC, k LIMIT 4",
    "SELECT DISTINCT median(f) OVER (PARTITION BY o) AS m FROM t ORDER BY m",
    "SELECT o, count(*) AS n, list(max(k)) OVER (ORDER BY o NULLS FIRST) AS l, string_agg(o::VARCHAR || 'x', ',') OVER (ORDER BY count(*), o) FROM t GROUP BY o ORDER BY o",
    "SELECT k FROM t QUALIFY mode(o) OVER (PARTITION BY i) ORDER BY k",
    "SELECT count(*) FROM (SELECT k FROM t QUALIFY count(*) OVER () > 1 AND NULL)",
    "SELECT count(*) FROM (SELECT k, sum(i) OVER (ORDER BY k) AS n FROM t QUALIFY NULL)",
    "SELECT k FROM t QUALIFY k > 2 ORDER BY row_number() OVER (ORDER BY k DESC) DESC",
    "SELECT k, rank() OVER (ORDER BY s COLLATE NOCASE) AS r, l, day, list(ts) OVER (PARTITION BY s COLLATE NOCASE ORDER BY k) FROM t ORDER BY k",
    "SELECT t.k, u.id, histogram(t.k) OVER (PARTITION BY u.id), avg(d) OVER (PARTITION BY ts::DATE, o) FROM t JOIN u USING (i) ORDER BY ALL",
    "SELECT k, (SELECT max(id) FROM u WHERE u.i = t.i) AS q, mad(f) OVER (PARTITION BY upper(s)) FROM t ORDER BY k",
    # frames with computed bounds, and frames that are empty
    "SELECT k, sum(k) OVER (ORDER BY k ROWS BETWEEN k % 3 PRECEDING AND 1 + 1 FOLLOWING) AS s FROM t ORDER BY k",
    "SELECT k, count(*) OVER (ORDER BY k ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING) AS n FROM t ORDER BY k",
    "SELECT k, nth_value(i, 1) OVER (PARTITION BY k) AS n FROM t ORDER BY k",
    # PIVOT and UNPIVOT
    "SELECT * FROM t PIVOT (sum(i) FOR o IN (true, false) GROUP BY day)",
    "SELECT * FROM (SELECT k, o, s FROM t) PIVOT (count(*) AS n, max(k) FOR o IN (true AS yes, false, NULL)) AS p",
    "SELECT p.*, u.id FROM (SELECT i, o, k FROM t) PIVOT (list(k ORDER BY k) FOR o IN (true) i IN (1, 7)) AS p JOIN u ON true",
    "FROM (PIVOT t ON o IN (true, false) USING sum(i) AS s, max(s) GROUP BY k) ORDER BY k",
    "FROM (PIVOT t ON year(day) IN (2024, 2000) GROUP BY i)",
    "SELECT * FROM (SELECT k, i, b FROM t) UNPIVOT (v FOR n IN (i AS 'x', b))",
    "SELECT k, n, v FROM t UNPIVOT INCLUDE NULLS (v FOR n IN (i, b)) WHERE k < 4",
    "FROM (UNPIVOT (SELECT k, i, k AS j FROM t) ON i, j INTO NAME n VALUE v) ORDER BY ALL",
    "FROM (PIVOT t ON o USING sum(i) GROUP BY k) ORDER BY k",
    "PIVOT t ON year(day), o USING count(*), max(k) AS m GROUP BY i",
    "PIVOT (SELECT s, o, i FROM t) ON s, o USING sum(i) AS x",
    "SELECT * FROM (SELECT k, s, o FROM t) PIVOT (max(k) FOR o IN (true, false) s IN ('', 'b'))",
    "SELECT * FROM (SELECT k, s, o FROM t) PIVOT (max(k) AS x FOR s IN ('', 'b') o IN (true))",
    "PIVOT t ON nullif(s, '') GROUP BY i ORDER BY i NULLS FIRST LIMIT 3",
    "WITH c AS (SELECT o, i FROM t WHERE k > 0) FROM (PIVOT c ON o USING sum(i))",
    "WITH c AS (SELECT o, i FROM t WHERE k > 0), d AS (FROM c) PIVOT d ON o IN (true, false) USING sum(i)",
    "WITH c AS (SELECT k, i, k AS j FROM t) UNPIVOT c ON i, j INTO NAME n VALUE v ORDER BY ALL LIMIT 4",
    "UNPIVOT (SELECT k, i, k AS j FROM t) ON i, j INTO NAME n VALUE v ORDER BY ALL LIMIT 4",
    "UNPIVOT (SELECT k, i, b, d::BIGINT AS d, k AS j FROM t) ON (i, b), (j, d) INTO NAME n VALUE v, w",
    "SELECT * FROM (SELECT k, i, b, d::BIGINT AS d, k AS j FROM t) UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((i, b) AS 'x', (j, d)))",
    'SELECT * FROM (SELECT k, i AS "Name I", b AS "B" FROM t) UNPIVOT (v FOR n IN ("name i" , b)) ORDER BY ALL',
    'UNPIVOT (SELECT k, i AS "Ii", b AS "Bi", f FROM t) ON COLUMNS(\'.i\') INTO NAME n VALUE v ORDER BY ALL',
    'UNPIVOT (SELECT k, i AS "Ii", b FROM t) ON * EXCLUDE (k) INTO NAME n VALUE v ORDER BY ALL',
    'UNPIVOT (SELECT k, i AS "Ii", b FROM t) ON COLUMNS(* EXCLUDE (K))::VARCHAR INTO NAME n VALUE v ORDER BY ALL',
    'SELECT n, v, x FROM (SELECT k, i AS "I", s AS x, s FROM t) UNPIVOT (v FOR n IN (i::VARCHAR, upper(s), k::TEXT AS key)) ORDER BY ALL',
    "SELECT * FROM (SELECT k, i, s FROM t) UNPIVOT (v FOR n IN (COLUMNS(['i', 'k']))) ORDER BY ALL",
    # WITH inside a query, whose names hide outer ones, and whose body takes outer columns
    "WITH c AS (SELECT k FROM t WHERE k > 4), e AS (WITH c AS (SELECT k * 100 AS k FROM c) FROM c) FROM c, e ORDER BY ALL",
    "WITH c AS (SELECT k FROM t) SELECT k, (WITH d AS (SELECT c.k + 1 AS m) SELECT m FROM d) AS x FROM c ORDER BY k",
    "SELECT k FROM t WHERE EXISTS (WITH c AS (SELECT t.k AS q) FROM c WHERE q > 2) ORDER BY k",
    "WITH RECURSIVE r(n) AS (SELECT min(k) FROM t UNION ALL (WITH c(n) AS (FROM r) SELECT n + 1 FROM c WHERE n < 5)) FROM r ORDER BY n",
    # what stands behind parentheses belongs to the query inside, as if there were none
    "(SELECT k FROM t LIMIT 2) ORDER BY k DESC",
    "(SELECT k FROM t ORDER BY k LIMIT 2) OFFSET 1",
    "FROM ((SELECT k, s FROM t LIMIT 3) ORDER BY t.i DESC NULLS LAST, k) ORDER BY ALL",
    "((SELECT k FROM t UNION SELECT id FROM u) LIMIT 2) ORDER BY k DESC",
    # ORDER BY of a set operation by what a side computes
    "SELECT k, 10 - k AS x FROM t UNION SELECT id, id + 1 FROM u ORDER BY 10 - T.K, 1",
    "SELECT t.k AS x FROM t UNION ALL SELECT a.id FROM u a UNION ALL SELECT upper(s)::INTEGER FROM g WHERE id = 1 ORDER BY a.id DESC, t.k, upper(g.s)::INTEGER",
    # more levels of a recursion than Spark allows by default
    "WITH RECURSIVE r(n) AS (SELECT min(k) FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 120) SELECT count(*), sum(n) FROM r",
    # a scalar query as a key of ORDER BY
    "SELECT (SELECT list_transform(l, lambda e: e + 1)) AS x FROM t ORDER BY x NULLS FIRST, k",
    "SELECT k, (SELECT min({'v': x}) FROM (VALUES (i)) v(x)) FROM t ORDER BY ALL",
    # functions after their argument, positions in comprehensions
    "SELECT k, s.trim().upper().len() AS n, max(i ORDER BY k).abs() AS m FROM t GROUP BY k, s ORDER BY s.lower().len(), k",
    "SELECT l.list_transform(lambda x: x + k).list_filter(lambda k: k > 2).len() AS n FROM t ORDER BY k",
    "SELECT k, [i FOR x, i IN l] AS a, [x * i FOR x, i IN l IF i % 2 = 1 AND x < k + 3] AS b, [[y + i FOR y IN l] FOR x, i IN l] AS c FROM t ORDER BY k",
    # averages whose sums pass 2^53, sums in an order, GROUPING without sets
    "SELECT avg(x), avg(x::HUGEINT), avg(x) FILTER (WHERE k <> 1) FROM (SELECT k, (9007199254740993 * (k + 1))::UBIGINT AS x FROM t WHERE i = 7 OR k = 1)",
    "SELECT sum(x ORDER BY abs(x)), avg(x ORDER BY x DESC) FROM (SELECT unnest([9007199254740992, 1.0, 1.0, -5e15]) AS x FROM t WHERE k = 0)",
    "SELECT grouping(o), grouping_id(o, i % 2) AS g, o, count(*) FROM t GROUP BY o, i % 2 HAVING grouping(o) = 0 ORDER BY grouping(o), o, i % 2",
    "SELECT sum(k), 1 AS x FROM t WHERE k > 50 GROUP BY GROUPING SETS (())",
    "SELECT count(*) AS n FROM t WHERE k > 50 GROUP BY ()",
    "SELECT 1 AS x FROM t WHERE k > 50 GROUP BY ()",
    "SELECT o, sum(k) FROM t GROUP BY (), o ORDER BY ALL",
    # positions and patterns in DISTINCT ON, queries in ORDER BY of groups
    "SELECT DISTINCT ON (2) k, (SELECT max(id) FROM u) FROM t ORDER BY k",
    "SELECT DISTINCT ON (COLUMNS('^[io]$')) k, i, o FROM t ORDER BY i, o, k",
    "SELECT o, sum(i) AS s FROM t GROUP BY o ORDER BY (SELECT max(id) FROM u), s",
    # LIMIT in percent
    "SELECT k FROM t ORDER BY s NULLS FIRST, k LIMIT 33.3%",
    "SELECT k, s FROM t ORDER BY 2 DESC, 1 LIMIT 60% OFFSET 1",
    "SELECT k FROM t ORDER BY k LIMIT NULL%",
    "SELECT range FROM (SELECT range FROM range(100), t WHERE k = 0) ORDER BY 1 LIMIT 29%",
    "SELECT DISTINCT ON (i) i, k FROM t ORDER BY i, k DESC LIMIT 60%",
    "SELECT DISTINCT i FROM t ORDER BY i LIMIT 50%",
    "SELECT k FROM t UNION SELECT id FROM u ORDER BY 1 DESC LIMIT 50% OFFSET 1",
    "SELECT o, count(*) AS n FROM t GROUP BY o ORDER BY n DESC, o LIMIT 67%",
    "SELECT k FROM t QUALIFY row_number() OVER (ORDER BY k DESC) < 6 ORDER BY k LIMIT 50%",
    # joins by what is computed of each side, and of both
    "SELECT t.k, u.id FROM t FULL JOIN u ON lower(t.s) = lower(u.s) AND t.i + 1 = u.id",
    "SELECT t.k FROM t WHERE EXISTS (FROM u WHERE lower(u.s) = lower(t.s)) ORDER BY k",
    "SELECT t.k, u.id FROM t LEFT JOIN u ON t.day BETWEEN u.day - INTERVAL 3 DAY AND u.day + INTERVAL 3 DAY AND trim(t.s) = trim(u.s) ORDER BY ALL",
    "SELECT t.k, u.id FROM t LEFT JOIN u ON levenshtein(t.s, u.s) < 2 ORDER BY ALL",
    "SELECT t.k, u.id FROM t FULL JOIN u ON levenshtein(t.s, u.s) + t.f > 2 AND u.i = t.i ORDER BY ALL",
    "SELECT t.k FROM t ANTI JOIN u ON levenshtein(t.s, u.s) < 2 ORDER BY ALL",
    "SELECT t.k FROM t JOIN (FROM range(2)) ON t.i > 0 JOIN u ON u.i = t.i WHERE isnan((SELECT max(w) FROM u)) ORDER BY ALL",
    "SELECT a.k, b.id, c.id FROM t a JOIN g c ON a.k = c.id LEFT JOIN u b ON levenshtein(a.s, b.s) + c.j < 20 ORDER BY ALL",
    "SELECT a.k, c.id FROM t a JOIN g c ON a.k = c.id ANTI JOIN u b ON levenshtein(a.s, b.s) + c.j < 20 ORDER BY ALL",
    "SELECT a.k, c.id, b.id FROM t a LEFT JOIN g c ON a.k = c.id FULL JOIN u b ON levenshtein(a.s, b.s) + c.j < 20 ORDER BY ALL",
    "SELECT a.k, c.id, b.id FROM t a LEFT JOIN g c ON a.k = c.id RIGHT JOIN u b ON levenshtein(a.s, b.s) < coalesce(c.j, 2) ORDER BY ALL",
    "SELECT a.k, b.id FROM t a LEFT JOIN u b ON list_contains(a.l, b.i) ORDER BY ALL",
    "SELECT a.k, c.id, b.id FROM t a JOIN g c ON a.k > c.id LEFT JOIN u b ON levenshtein(a.s, c.s) < 3 ORDER BY ALL",
    "SELECT a.k, c.id, b.id FROM t a JOIN g c ON a.k > c.id RIGHT JOIN u b ON levenshtein(a.s, c.s) < 3 ORDER BY ALL",
    "SELECT a.k, c.id, b.id FROM t a JOIN g c ON a.k > c.id FULL JOIN u b ON levenshtein(a.s, c.s) < 3 ORDER BY ALL",
    "SELECT a.k, c.id FROM t a JOIN g c ON a.k > c.id SEMI JOIN u b ON levenshtein(a.s, c.s) < 3 ORDER BY ALL",
    "SELECT a.k, c.id FROM t a JOIN g c ON a.k > c.id ANTI JOIN u b ON levenshtein(a.s, c.s) < 3 ORDER BY ALL",
    # a join in parentheses under a name, which DuckDB drops after USING
    "SELECT * FROM ((SELECT k, i FROM t) a JOIN u ON a.i = u.i) j ORDER BY ALL",
    "SELECT m, n, j.id FROM ((SELECT k, i FROM t) a JOIN u ON a.i = u.i) j(m, n) ORDER BY ALL",
    "SELECT j.i_1, x.k FROM (t LEFT JOIN u ON t.i = u.i) j JOIN t x ON x.k = j.k ORDER BY ALL",
    "SELECT t.k, * FROM (t JOIN u USING (i)) j(a, b) ORDER BY ALL",
    # ANY and ALL over queries
    "SELECT k, i > ANY (SELECT i FROM u) AS a, i >= ALL (SELECT i FROM u) AS b, i <> ALL (SELECT i FROM u WHERE i > 0) AS c, i = ANY (SELECT i FROM u) AS d, i = ALL (SELECT 7 FROM u) AS e, i <> ANY (SELECT i FROM u WHERE i > 1) AS f FROM t ORDER BY k",
    "SELECT k FROM t WHERE i > ALL (SELECT i FROM u WHERE false) AND NOT f < ANY (SELECT w FROM u WHERE w = 0.5) ORDER BY k",
    "SELECT k, upper(s) < ALL (SELECT upper(s) FROM u WHERE s IS NOT NULL) AS x, d < ANY (SELECT i FROM u) AS y FROM t ORDER BY k",
    "SELECT EXISTS (FROM u) IS NOT DISTINCT FROM true AS x, k FROM t ORDER BY k",
    # ASOF
    "SELECT t.k, u.id FROM t ASOF JOIN u ON t.i = u.i AND t.day >= u.day ORDER BY ALL",
    "SELECT t.k, u.id, u.w FROM t ASOF LEFT JOIN u ON t.day > u.day ORDER BY ALL",
    "SELECT t.k, u.id FROM t ASOF LEFT JOIN u ON u.day >= t.day AND t.i = u.i ORDER BY ALL",
    "SELECT t.*, u.* FROM (SELECT k, i, f FROM t WHERE f IS NOT NULL) t ASOF LEFT JOIN (SELECT id, w + 1 AS w FROM u WHERE id <> 5) u ON t.f <= u.w ORDER BY ALL",
    "SELECT t.k, u.id, day FROM t ASOF LEFT JOIN u USING (i, day) ORDER BY ALL",
    "SELECT * FROM (SELECT k, i FROM t) t ASOF LEFT JOIN (SELECT id, id AS i FROM u) u USING (i) ORDER BY ALL",
    "SELECT t.k, u.id FROM t ASOF LEFT JOIN u ON t.day >= u.day AND u.w IS NOT NULL ORDER BY ALL",
    "SELECT t.k, u.id FROM t ASOF LEFT JOIN u ON t.day >= u.day AND t.k > 2 AND trim(u.s) <> 'x' ORDER BY ALL",
    "SELECT t.k, u.id FROM t ASOF JOIN u ON t.day >= u.day AND length(u.s) + 1 > 2 AND true ORDER BY ALL",
    "SELECT t.k, u.id FROM t ASOF LEFT JOIN u ON t.day >= u.day AND (t.k = 3 OR t.i + 1 = 8) AND u.id <> 2 ORDER BY ALL",
    "SELECT t.k FROM t ASOF ANTI JOIN u ON t.day >= u.day AND u.w > 1 ORDER BY ALL",
    # collations
    "SELECT k, s FROM t ORDER BY s COLLATE de DESC NULLS FIRST, k",
    "SELECT k, s FROM t ORDER BY s COLLATE NOACCENT.NOCASE, k DESC LIMIT 4",
    "SELECT reverse(s) AS s FROM t ORDER BY s COLLATE NOCASE, 1 LIMIT 1",
]


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """(a session whose tables are in files, DuckDB with the same tables)."""
    with beside_duckdb(tmp_path_factory.mktemp("queries"), spark, made.TABLES, made.ROWS) as found:
        yield found


def _rows(rows: Sequence[Sequence[Any]], ordered: bool) -> list[str]:
    shown = [repr([comparable(value) for value in row]) for row in rows]
    return shown if ordered else sorted(shown)


def _outcome(both: Any, query: str) -> str:
    """`same`, `refused`, `no answer` where DuckDB has none, or what differs."""
    session, plain = both
    ordered = "ORDER BY" in query.rsplit(")", 1)[-1]
    try:
        relation = plain.sql(query)
        names, wanted = relation.columns, _rows(relation.fetchall(), ordered)
    except duckdb.Error:
        return "no answer"
    try:
        found = _rows(session.sql(query, engine="duckdb").fetchall(), ordered)
    except dl.DuckLakeError as error:
        session.sql("SET TimeZone = 'UTC'")  # a fault of DuckDB takes the session's settings with it
        return f"failed in process: {query}\n  {type(error).__name__}: {error}"
    if found != wanted:
        return f"in process: {query}\n  {found[:5]}\n  DuckDB {wanted[:5]}"
    try:
        result = session.sql(query)  # in process where no file is left to read
        found = _rows(result.fetchall(), ordered)
    except dl.UnsupportedFeatureError as refusal:
        return f"refused: {query}\n  {refusal}"
    except dl.DuckLakeError as error:
        return f"failed: {query}\n  {type(error).__name__}: {error}"
    if found != wanted and _is_fault_of_duckdb(plain, query, found, ordered=ordered):
        return "no answer"
    if list(result.columns) != list(names) or found != wanted:
        return f"on Spark: {query}\n  {result.columns} {found[:5]}\n  DuckDB {names} {wanted[:5]}"
    return "same"


def _is_fault_of_duckdb(plain: duckdb.DuckDBPyConnection, query: str, found: list[str], *, ordered: bool) -> bool:
    """Return whether DuckDB 1.5.5 gives these rows where it does not make an aggregate of QUALIFY row_number() < 2.

    The aggregate gives one row of NULLs where no row is left to number.
    """
    plain.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    try:
        return _rows(plain.execute(query).fetchall(), ordered) == found
    finally:
        plain.execute("RESET disabled_optimizers")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("query", WRITTEN)
def test_written_queries(both: Any, query: str) -> None:
    assert _outcome(both, query) == "same"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(s::INTEGER) FILTER (WHERE regexp_matches(s, '^[0-9]+$')) FROM g",
        "SELECT string_agg(DISTINCT s, ',' ORDER BY s::INTEGER) FILTER (WHERE id = 1) FROM g",
        "SELECT list(s::INTEGER ORDER BY id) FILTER (WHERE id = 1) FROM g",
        "SELECT id % 2 AS o, count(DISTINCT s::INTEGER) FILTER (WHERE id = 1) FROM g GROUP BY o",
        "SELECT count(*) FILTER (WHERE id = 1 AND s::INTEGER > 0) FROM g",
        "SELECT id FROM g WHERE NOT (id <> 1 OR s::INTEGER > 0)",
    ],
)
def test_filter_keeps_no_value_from_failing(both: Any, query: str) -> None:
    # DuckDB computes arguments and conditions of aggregates for all rows
    session, plain = both
    with pytest.raises(duckdb.ConversionException):
        plain.sql(query).fetchall()
    with pytest.raises(dl.DuckLakeError, match="is no INTEGER"):
        session.sql(query).fetchall()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k FROM t ORDER BY 2", "ORDER BY 2 names no column: the SELECT list has 1."),
        ("SELECT k FROM t UNION SELECT i FROM t ORDER BY 0", "ORDER BY 0 names no column: the SELECT list has 1."),
        ("SELECT k, count(*) FROM t GROUP BY 42", "GROUP BY 42 names no column: the SELECT list has 2."),
        ("SELECT DISTINCT ON (3) k FROM t", "DISTINCT ON 3 names no column: the SELECT list has 1."),
        ("SELECT k FROM t ORDER BY 'k'", "ORDER BY 'k' is a constant, which orders nothing; leave it out."),
        ("SELECT k FROM t ORDER BY -1", "ORDER BY -1 names no column: the SELECT list has 1."),
    ],
)
def test_keys_that_name_no_column(both: Any, query: str, message: str) -> None:
    session, plain = both
    with pytest.raises(duckdb.BinderException):
        plain.sql(query).fetchall()
    with pytest.raises(dl.DuckLakeError, match=re.escape(message)):
        session.sql(query).fetchall()


def test_several_groups_of_all_rows_are_refused(both: Any) -> None:
    # Spark gives one row for them where no row is read
    with pytest.raises(dl.UnsupportedFeatureError, match="Several empty sets"):
        both[0].sql("SELECT sum(k) AS s FROM t GROUP BY GROUPING SETS ((), (o), ())").fetchall()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT sum(k) OVER (ORDER BY k RANGE BETWEEN -1 PRECEDING AND 1 FOLLOWING) FROM t",
            "Invalid RANGE PRECEDING",
        ),
        ("SELECT avg(row_number() OVER ()) OVER () FROM t", "A window function takes no other one"),
    ],
)
def test_windows_that_duckdb_refuses(both: Any, query: str, message: str) -> None:
    session, plain = both
    with pytest.raises(duckdb.Error):
        plain.sql(query).fetchall()
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(query).fetchall()


@pytest.mark.parametrize("word", ["< ANY", "= ALL", "<> ANY"])
def test_any_and_all_of_rows_are_refused(both: Any, word: str) -> None:
    with pytest.raises(dl.UnsupportedFeatureError, match="over this query is not supported"):
        both[0].sql(f"SELECT (k, i) {word} (SELECT id, i FROM u) AS x FROM t").fetchall()


@pytest.mark.parametrize("arrow", ["t.l -> t.l + 1", "t.k -> 1"])
def test_parameters_of_lambdas_have_no_dots(both: Any, arrow: str) -> None:
    session, _ = both
    with pytest.raises(dl.DuckLakeError, match="are no plain names"):
        session.sql(f"SELECT list_transform(t.l, {arrow}) AS x FROM t").fetchall()


@pytest.mark.parametrize("condition", ["t.k <> u.id", "t.k + u.id > 5", "(t.k = u.id OR t.i = 7)"])
def test_conditions_of_both_sides_choose_the_nearest_row(both: Any, condition: str) -> None:
    # DuckDB takes the nearest of the rows that fulfil them, which no range of the right side's values gives
    query = f"SELECT t.k, u.id FROM t ASOF JOIN u ON t.day >= u.day AND {condition} ORDER BY ALL"
    assert _outcome(both, query).startswith("refused")


@pytest.mark.sampled(_PARTS)
@pytest.mark.timeout(max(600, 6 * len(_SEEDS) // _PARTS))
@pytest.mark.parametrize("part", range(_PARTS))
def test_queries_at_random(both: Any, part: int) -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for number, seed in enumerate(_SEEDS[part::_PARTS]):
        if _MANY and number % 100 == 0:
            print(f"{number} queries: {dict(counts)}", flush=True)
        outcome = _outcome(both, made.made(seed))
        kind = outcome.partition(":")[0]
        counts[kind] += 1
        if kind not in ("same", "no answer"):
            print(f"{seed}: {outcome}", flush=True)
        if kind not in ("same", "no answer", "refused"):
            wrong.append(f"{seed}: {outcome}")
    answered = sum(counts.values()) - counts["no answer"]
    print(
        ", ".join(f"{count} {kind}" for kind, count in counts.items()), f"of {sum(counts.values())} queries", flush=True
    )
    assert wrong == []
    assert counts["same"] > answered / 2
    if _MANY:
        assert counts["refused"] <= _REFUSED * answered


def test_a_value_that_is_used_fails(both: Any) -> None:
    session, _ = both
    for query in (
        "SELECT s::INTEGER FROM g",
        "SELECT id FROM g WHERE s::INTEGER > 0 AND id > 1",
        "SELECT list(s::INTEGER) FROM g",
        "SELECT u.id FROM u JOIN g ON u.i = g.s::INTEGER",
    ):
        with pytest.raises(dl.DuckLakeError, match=r"^Column s: '.*' is no INTEGER\. TRY_CAST gives NULL instead\.$"):
            session.sql(query).fetchall()


def test_a_value_that_is_no_column_fails_by_its_expression(both: Any) -> None:
    session, _ = both
    with pytest.raises(dl.DuckLakeError, match=r"^CAST\(upper\(s\) AS INT(EGER)?\): '.*' is no INTEGER\.$"):
        session.sql("SELECT upper(s)::INTEGER FROM g").fetchall()


def test_qualify_needs_a_window(both: Any) -> None:
    session, plain = both
    for query in ("SELECT k FROM t QUALIFY NULL", "SELECT count(*) FROM (SELECT k FROM t QUALIFY NULL)"):
        with pytest.raises(duckdb.BinderException, match="window"):
            plain.sql(query)
        for engine in ("duckdb", "spark"):
            with pytest.raises(dl.BindError, match=r"^QUALIFY needs a window function"):
                session.sql(query, engine=engine)


@pytest.mark.parametrize(
    "query",
    [
        "PIVOT t ON o USING sum(i)",
        "SELECT count(*) FROM (PIVOT t ON o USING sum(i), max(k) GROUP BY k)",
        "SELECT * FROM (SELECT k, o FROM t) PIVOT (max(k) FOR o IN (true, false))",
        "PIVOT t ON o, b USING sum(i)",
    ],
)
def test_pivot_finds_less_values_than_the_limit(both: Any, query: str) -> None:
    session, plain = both
    try:
        for limit in (2, 3):
            for run in (session.sql, plain.execute):
                run(f"SET pivot_limit = {limit}")
            try:
                wanted = sorted(map(str, plain.sql(query).fetchall()))
            except duckdb.BinderException:
                for text in (query, f"EXPLAIN {query}"):
                    with pytest.raises(dl.SqlError, match=r"^PIVOT finds"):
                        session.sql(text)
            else:
                assert sorted(map(str, session.sql(query).fetchall())) == wanted
    finally:
        for run in (session.sql, plain.execute):
            run("RESET pivot_limit")


@pytest.mark.parametrize("query", ["PIVOT t ON o USING sum(i)", "SELECT * FROM (PIVOT t ON o USING sum(i)) LIMIT 1"])
def test_pivot_is_explained(both: Any, query: str) -> None:
    session, _ = both
    before = session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    (row,) = session.sql(f"EXPLAIN {query}").fetchall()
    assert "FILTER" in row[1] and "runs on Spark" in row[1]
    assert session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall() == before
