"""Names: what they resolve to, and the one line where they do not."""

from __future__ import annotations

from datetime import datetime

import pytest

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql.operations import At, SqlConstant, TableName
from tests.unit.sql.lakes import Lakes, any_plan, plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT month,\n       dep_dealy FROM flights",
            'flights has no column "dep_dealy" (line 2, column 8). Did you mean dep_delay?',
        ),
        (
            "SELECT f.carier FROM flights f",
            'f has no column "carier" (line 1, column 10). Did you mean carrier or fare?',
        ),
        ("FROM flihgts", 'There is no table "flihgts" (line 1, column 6). Did you mean flights?'),
        ("SELECT x.a FROM flights", 'Nothing in FROM is called "x" (line 1, column 8).'),
        (
            "SELECT tailnum FROM flights, planes",
            'Column "tailnum" is ambiguous (line 1, column 8). Use flights.tailnum or planes.tailnum.',
        ),
        ("SELECT spot.z FROM flights", 'spot has no field "z" (line 1, column 13).'),
        ("SELECT spot.deep.x FROM flights", 'spot has no field "x" (line 1, column 18).'),
        ("SELECT month.x FROM flights", 'INTEGER has no field "x" (line 1, column 14).'),
        ("SELECT a", 'There is no FROM to take column "a" from (line 1, column 8).'),
        ("SELECT * FROM flights JOIN airlines USING (name)", None),
        ("SELECT * EXCLUDE (yaer) FROM planes", 'planes has no column "yaer" (line 1, column 19). Did you mean year?'),
        ("SELECT 1 FROM planes, planes", '"planes" is used twice in FROM; give one of them another name with AS.'),
        ("SELECT year FROM planes UNION SELECT 1, 2", "UNION needs as many columns on both sides: 1 and 2."),
        ("WITH p AS (SELECT year FROM planes) SELECT tailnum FROM p", 'p has no column "tailnum" (line 1, column 44).'),
        ("SELECT 1 FROM planes WHERE EXISTS (SELECT 1 FROM airlines WHERE nmae = 'x')", None),
        ("SELECT * FROM planes AT (VERSION => year)", 'AT needs a constant, not column "year" (line 1, column 37).'),
        ("SELECT * FROM snapshots(note)", None),
        (
            "SELECT random() AS r, r + 1 FROM planes",
            '"r" is the name of an expression that gives another value each time (line 1, column 23). '
            "Compute it in a subquery, and use it around that.",
        ),
        ("SELECT uuid() AS u FROM planes WHERE u > 'a'", None),
        ("SELECT random() AS r FROM planes QUALIFY row_number() OVER (ORDER BY r) < 3", None),
        ("SELECT random() AS r, count(*) FROM planes GROUP BY ALL HAVING count(*) > r", None),
        (
            "SELECT count(*) FROM (SELECT year FROM planes QUALIFY NULL)",
            "QUALIFY needs a window function, in itself or in the SELECT list. Use WHERE or HAVING.",
        ),
        ("SELECT year FROM planes QUALIFY (SELECT count(*) OVER () FROM range(2) LIMIT 1) > 1", None),
        ("SELECT (SELECT row_number() OVER () FROM range(1)) FROM planes QUALIFY true", None),
        (
            "SELECT year FROM planes UNION SELECT 1 ORDER BY yaer",
            'The UNION has no column "yaer" (line 1, column 49). Did you mean year?',
        ),
        (
            "(SELECT year FROM planes EXCEPT SELECT 1) ORDER BY yaer",
            'The EXCEPT has no column "yaer" (line 1, column 52). Did you mean year?',
        ),
        (
            "SELECT * EXCLUDE (yaer) FROM planes, airlines",
            'Neither planes nor airlines has a column "yaer" (line 1, column 19). Did you mean year?',
        ),
        (
            "SELECT tailnum FROM planes WHERE COLUMNS(['year', 'yaer']) > 1",
            'planes has no column "yaer", which COLUMNS([…]) names.',
        ),
        (
            "SELECT COLUMNS('a') FROM (SELECT 1 AS b)",
            "COLUMNS(…) matches no column.",
        ),
        ("SELECT COLUMNS(['a'])", "COLUMNS(…) needs a FROM clause."),
        ("SELECT * EXCLUDE (tailnum, year) FROM planes", "The SELECT list is empty: its stars leave no column."),
        ("SELECT 1 AS k, max(year) FROM planes GROUP BY k + 1", 'planes has no column "k" (line 1, column 47).'),
        ("SELECT 1 AS k, max(year) FROM planes GROUP BY CUBE (-k)", 'planes has no column "k" (line 1, column 54).'),
        (
            "SELECT year, year FROM planes UNION BY NAME SELECT 1 AS year",
            'UNION BY NAME takes each name once; a side has "year" twice.',
        ),
        (
            "SELECT (SELECT sum(year) OVER () FROM airlines) FROM planes",
            'A window function takes no column of the query around: "year".',
        ),
        ("SELECT plus(a := 1, a := 2)", 'The macro plus gets its argument "a" twice.'),
        ("SELECT plus(b := 1, 2)", "The macro plus gets an argument without a name after one with a name."),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n EXCEPT SELECT n + 1 FROM r WHERE n < 3) FROM r",
            "r reads itself in EXCEPT; UNION alone makes a recursion.",
        ),
        (
            "SELECT tailnum FROM planes WHERE COLUMNS('y') > 1 OR COLUMNS('t') = 'a'",
            "All COLUMNS(…) in one expression must choose the same columns.",
        ),
        (
            "SELECT * FROM planes JOIN (SELECT 1 AS a) USING (year)",
            'unnamed_subquery has no column "year" to join by (line 1, column 50).',
        ),
        (
            "SELECT a FROM (SELECT 1 AS a), (SELECT 2 AS a)",
            'Column "a" is ambiguous (line 1, column 8). Use unnamed_subquery.a or unnamed_subquery2.a.',
        ),
    ],
)
def test_a_wrong_name_is_one_line(text: str, message: str | None) -> None:
    with pytest.raises(BindError) as caught:
        plan(text)
    assert "\n" not in str(caught.value)
    if message is not None:
        assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(random()) AS r, r + 1 FROM planes",
        "SELECT random() AS r FROM planes GROUP BY r ORDER BY r",
        "SELECT now() AS n, n FROM planes",
    ],
)
def test_names_of_the_select_list_stand_for_values_that_stay(text: str) -> None:
    assert plan(text).bound


@pytest.mark.parametrize(
    "value",
    [
        "sum(k)",
        "sum(k + 1) + 1",
        "count(*) FILTER (WHERE k > 1)",
        "list(year ORDER BY k)",
        "sum(sum(k)) OVER ()",
        "(SELECT sum(k))",
    ],
)
def test_aggregates_see_no_names_of_the_select_list(value: str) -> None:
    with pytest.raises(BindError, match=r'has no column "k"|no FROM to take column "k"'):
        plan(f"SELECT year % 2 AS k, {value} FROM planes GROUP BY k")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT year % 2 AS k, sum(k) OVER () FROM planes",
        "SELECT year % 2 AS k, sum(year) FILTER (WHERE k = 1) OVER (PARTITION BY k ORDER BY k) FROM planes",
        "SELECT year % 2 AS k, first_value(k IGNORE NULLS) OVER (ORDER BY year) FROM planes",
        "SELECT year % 2 AS k, list_sum([k]) FROM planes QUALIFY sum(k) OVER () > 0",
        "SELECT year AS k, max(year) AS m, m + 1, sum(m) OVER () FROM planes GROUP BY year",
    ],
)
def test_window_functions_see_names_of_the_select_list(text: str) -> None:
    assert plan(text).bound


@pytest.mark.parametrize("key", ["NULL", "(NULL)", "'x'", "'1'", "1.5", "1e0", "-2.5", "('x')", "NULL COLLATE nocase"])
@pytest.mark.parametrize("query", ["SELECT year FROM planes", "SELECT year FROM planes UNION ALL SELECT 1"])
def test_literals_order_nothing(query: str, key: str) -> None:
    with pytest.raises(BindError, match="is a constant, which orders nothing"):
        plan(f"{query} ORDER BY {key}, year")


@pytest.mark.parametrize("key", ["0", "2", "(2)", "-1", "-(1)", "((7))"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT year FROM planes ORDER BY {}",
        "SELECT year FROM planes GROUP BY {}",
        "SELECT year FROM planes GROUP BY ROLLUP ({}, year)",
        "SELECT DISTINCT ON ({}) year FROM planes",
        "SELECT year FROM planes UNION ALL SELECT 1 ORDER BY {}",
    ],
)
def test_a_position_is_one_of_the_select_list(query: str, key: str) -> None:
    with pytest.raises(BindError, match="names no column: the SELECT list has 1"):
        plan(query.format(key))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT year FROM planes LIMIT year", 'no FROM to take column "year" from'),
        ("SELECT (SELECT 1 LIMIT planes.year) FROM planes", 'Nothing in FROM is called "planes"'),
        ("SELECT year FROM planes LIMIT (SELECT planes.year)", 'Nothing in FROM is called "planes"'),
        ("SELECT year FROM planes UNION SELECT 1 LIMIT (SELECT 1)", "LIMIT of the UNION takes no query"),
        ("SELECT year FROM planes EXCEPT SELECT 1 OFFSET (SELECT 1)", "OFFSET of the EXCEPT takes no query"),
    ],
)
def test_limits_see_no_columns(text: str, message: str) -> None:
    with pytest.raises(BindError, match=message):
        plan(text)


@pytest.mark.parametrize("key", ["1 + 1", "+1", "1::INT", "true", "(SELECT 1)", "year + 1", "-year", "random()"])
def test_a_set_operation_is_ordered_by_its_columns(key: str) -> None:
    with pytest.raises(BindError, match="is no column of the UNION"):
        plan(f"SELECT year FROM planes UNION ALL SELECT 1 ORDER BY {key}")


def test_a_bind_error_knows_its_place() -> None:
    with pytest.raises(BindError) as caught:
        plan("SELECT\n  nope\nFROM flights")
    assert (caught.value.line, caught.value.column) == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MONTH, Flights.Carrier FROM FLIGHTS",
        "SELECT dep_delay + 1 AS d, d * 2 AS e FROM flights WHERE d > 3 AND e < 9 GROUP BY ALL HAVING d > 1 ORDER BY e",
        "SELECT spot.deep.y, f.spot.x, f.spot.deep.y FROM flights f, planes",
        "SELECT carrier FROM flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum AND month = 1)",
        "SELECT tailnum, f.tailnum FROM flights f JOIN planes p USING (tailnum)",
        "SELECT list_transform(stops, lambda s: s + month), list_filter(stops, q -> q > 1) FROM flights",
        "SELECT [q + 1 FOR q IN stops IF q > 1] FROM flights",
        "SELECT anything FROM read_parquet('x.parquet')",
        "SELECT u.x, v.y, r.range FROM unnest([1, 2]) u(x), (VALUES (1, 2)) v(w, y), range(3) r",
        "WITH flights AS (SELECT 1 AS one) SELECT one FROM flights",
        "WITH a AS (SELECT year AS y FROM planes), b AS (SELECT y FROM a) SELECT b.y FROM b",
        "SELECT count(*) AS n FROM flights GROUP BY carrier ORDER BY count(*) DESC, n, carrier",
        "SELECT rowid, flights.rowid, snapshot_id FROM flights",
        "SELECT s.planes.year FROM s.planes, t.planes",
        "SELECT lake.s.planes.year FROM lake.s.planes",
        "SELECT sum(year) OVER w FROM planes WINDOW w AS (PARTITION BY tailnum)",
        "SELECT x FROM planes, LATERAL (SELECT year + 1 AS x)",
        "SELECT planes, count(p) FROM planes, planes p GROUP BY ALL",
        "SELECT year FROM planes UNION ALL SELECT 1 AS one ORDER BY one",
        "SELECT year FROM planes ORDER BY *",
        "SELECT tailnum FROM planes ORDER BY year DESC, * EXCLUDE (year)",
        "SELECT x, n, range, ordinality FROM unnest([1]) WITH ORDINALITY AS u(x, n), LATERAL range(x) WITH ORDINALITY",
        "SELECT generate_subscripts([year], 1) FROM planes",
        "SELECT regexp_split_to_table(tailnum, ' ') FROM planes",
        "SELECT year, row_number() OVER () AS n FROM planes QUALIFY NULL",
        "SELECT year FROM planes QUALIFY count(*) OVER () > 1 AND NULL",
        "SELECT year FROM planes QUALIFY year > 1 ORDER BY row_number() OVER ()",
    ],
)
def test_valid_names_are_accepted(text: str) -> None:
    assert plan(text).duckdb_sql


def test_time_travel_belongs_to_each_table() -> None:
    lakes = Lakes()
    result = plan(
        "SELECT a.year FROM planes AT (VERSION => 3) a JOIN planes AT (TIMESTAMP => now() - INTERVAL '1 day') b "
        "ON a.tailnum = b.tailnum",
        lakes=lakes,
    )
    expected = [At(version_sql="3"), At(timestamp_sql="NOW() - INTERVAL '1' DAY")]
    assert [at for _, at in lakes.tables] == expected
    assert [source.at for source in result.sources] == expected


def test_lake_functions_are_sources() -> None:
    lakes = Lakes()
    result = plan(
        "SELECT * FROM lake.table_changes('t', 1, TIMESTAMP '2024-01-02 03:04:05') c, "
        "ducklake_list_files('lake', 't', snapshot_version => 3, x => now())",
        lakes=lakes,
    )
    assert [source.kind for source in result.sources] == ["function", "function"]
    assert lakes.functions == [
        (TableName(None, "lake", "table_changes"), ("t", 1, datetime(2024, 1, 2, 3, 4, 5)), {}),
        (
            TableName(None, None, "ducklake_list_files"),
            ("lake", "t"),
            {"snapshot_version": 3, "x": SqlConstant("NOW()")},
        ),
    ]
    assert all(source.kind != "table" for source in result.sources)


def test_virtual_columns_are_asked_for_only_where_used() -> None:
    assert [source.virtual for source in plan("SELECT * FROM planes").sources] == [False]
    result = plan("SELECT p.rowid FROM planes p, airlines")
    assert [source.virtual for source in result.sources] == [True, False]
    assert result.columns == ("rowid",)
    assert "_ducklake" not in str(plan("SELECT * FROM planes WHERE rowid = 1").columns)


def test_views_have_names_of_their_own() -> None:
    sources = [*plan("FROM planes").sources, *plan("SELECT 1 FROM planes a, planes b").sources]
    assert len({source.view for source in sources}) == 3


def test_names_of_a_table_made_from_a_query_are_distinct() -> None:
    from ducklake_lab.sql import parse, plan_query
    from ducklake_lab.sql.operations import CreateTable

    created = parse("CREATE TABLE t AS SELECT year, year, tailnum AS year_1 FROM planes")[0].operation
    assert isinstance(created, CreateTable)
    assert created.query is not None
    assert plan_query(created.query, Lakes()).columns == ("year", "year_1", "year_1_1")


def test_without_a_lake_table_duckdb_may_use_what_spark_lacks() -> None:
    result = any_plan("SELECT getvariable(x::VARCHAR) FROM range(3) t(x)")
    assert (result.sources, result.spark_sql) == ((), "")
    assert "getvariable" in result.duckdb_sql


def test_spark_gets_no_variable_to_replace() -> None:
    assert "${" not in plan("SELECT '${env:HOME}' AS a FROM planes").spark_sql
    with pytest.raises(UnsupportedFeatureError, match="name with"):
        plan('SELECT year AS "${env:HOME}" FROM planes')


def test_a_name_with_quotes_stays_a_name() -> None:
    result = plan('SELECT year AS "a`; DROP ""x" FROM planes')
    assert 'AS `a``; DROP "x`' in result.spark_sql
    assert 'AS "a`; DROP ""x"' in result.duckdb_sql


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT year AS k, k IN (SELECT k + 1 FROM airlines) FROM planes", '"k", a name of the SELECT list around'),
        (
            "SELECT year AS k FROM planes WHERE EXISTS (FROM airlines WHERE k > 1)",
            '"k", a name of the SELECT list around',
        ),
        ("FROM (SHOW databases) t, planes", "SHOW in FROM"),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n + 1 NOT IN (FROM recurring.r)) FROM r",
            "recurring.r, all rows of a recursion",
        ),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM recurring.r AS x WHERE n < 3) FROM r",
            "recurring.r, all rows of a recursion",
        ),
    ],
)
def test_what_duckdb_alone_binds_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        plan(text)
