"""Expressions that Spark computes, those that workers evaluate, and the settings that both follow."""

from __future__ import annotations

import re

import pytest

from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql import parse_query, plan_query
from ducklake_lab.sql.plan import SparkQuery
from tests.unit.sql import lakes


def _spark(text: str, **settings: str) -> SparkQuery:
    class Lakes(lakes.Lakes):
        def settings(self) -> tuple[tuple[str, str], ...]:
            return (("TimeZone", "UTC"), *settings.items())

    return plan_query(parse_query(text), Lakes()).for_spark()


@pytest.mark.parametrize(
    "expression",
    [
        "month + 1 > 3 AND carrier LIKE 'A%'",
        "carrier NOT LIKE 'A%' AND carrier IN ('a', 'b')",
        "dep >= DATE '2020-01-01' + INTERVAL 3 MONTH",
        "flown BETWEEN DATE '2020-01-01' AND DATE '2020-01-01' + INTERVAL 1 YEAR",
        "fare * (1 - fare) > 0.05",
        "CASE WHEN late THEN fare ELSE 0 END IS NOT NULL",
        "zoned > '2020-01-01 00:00:00'",
    ],
)
def test_spark_computes_what_is_proven(expression: str) -> None:
    assert not _spark(f"SELECT tailnum FROM flights WHERE {expression}").evaluations


def test_with_stays_in_its_query() -> None:
    # at the top, one of the names would hide the other, and no outer column be in sight
    sql = _spark(
        "WITH c AS (SELECT month FROM flights) SELECT (WITH c AS (SELECT o.month AS m) SELECT m FROM c) AS x FROM c o"
    ).sql
    assert sql.count("WITH") == 2


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("(SELECT year FROM planes LIMIT 2) ORDER BY tailnum", "ORDER BY `planes`.`tailnum` ASC NULLS LAST LIMIT 2)"),
        ("(SELECT year FROM planes ORDER BY year LIMIT 2) OFFSET 1", "LIMIT 2 OFFSET 1)"),
        ("((SELECT year FROM planes) LIMIT 2) ORDER BY 1", "ORDER BY 1 ASC NULLS LAST LIMIT 2))"),
        ("(SELECT year FROM planes UNION SELECT 1 LIMIT 2) ORDER BY year DESC", "ORDER BY 1 DESC LIMIT 2)"),
    ],
)
def test_what_stands_behind_parentheses_belongs_to_the_query_inside(text: str, end: str) -> None:
    assert _spark(text).sql.endswith(end)


@pytest.mark.parametrize("clause", ["ORDER BY year", "LIMIT 1", "OFFSET 1"])
def test_a_clause_in_and_behind_parentheses_is_refused(clause: str) -> None:
    with pytest.raises(BindError, match=f"^{clause.rpartition(' ')[0]} stands in the parentheses and behind them"):
        _spark(f"(SELECT year FROM planes {clause}) {clause}")


@pytest.mark.parametrize(
    ("union", "key", "position"),
    [
        ("SELECT tailnum, year FROM planes UNION SELECT carrier, month FROM flights f", "planes.year", 2),
        ("SELECT tailnum, year FROM planes UNION SELECT carrier, month FROM flights f", "main.planes.TAILNUM", 1),
        ("SELECT tailnum, year FROM planes p UNION SELECT carrier, month FROM flights f", "f.month", 2),
        ("SELECT tailnum AS x, year FROM planes UNION SELECT carrier, month FROM flights", "tailnum", 1),
        ("SELECT tailnum, 10 - year AS y FROM planes UNION SELECT carrier, month FROM flights", "10 - planes.year", 2),
        (
            "SELECT tailnum, year FROM planes UNION SELECT Upper(carrier), month FROM flights",
            "upper(flights.carrier)",
            1,
        ),
        ("FROM planes UNION (SELECT carrier, month::BIGINT FROM flights LIMIT 3)", "month::BIGINT", 2),
        ("FROM planes UNION SELECT name, 1 FROM airlines UNION ALL SELECT carrier, (month) FROM flights", "month", 2),
    ],
)
def test_order_of_a_union_is_by_what_a_side_computes(union: str, key: str, position: int) -> None:
    assert _spark(f"{union} ORDER BY {key} DESC").sql.split("ORDER BY ")[-1].startswith(f"{position} DESC")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("flights.year", "Nothing in FROM"),
        ("month + 1", "no column"),
        ("month + 10", "several positions"),
    ],
)
def test_order_of_a_union_by_what_no_side_computes(key: str, message: str) -> None:
    with pytest.raises(BindError, match=message):
        _spark(f"SELECT year, year FROM planes UNION SELECT month + 10, month + 10 FROM flights ORDER BY {key}")


@pytest.mark.parametrize("expression", ["upper(carrier) || 'x'", "CASE WHEN month > month THEN upper(carrier) END"])
def test_workers_evaluate_whole_expressions(expression: str) -> None:
    query = _spark(f"SELECT {expression} AS v FROM flights")
    assert len(query.evaluations) == 1
    assert query.sql.count("_ducklake_eval_") == 1
    assert "CASE" not in query.sql


@pytest.mark.parametrize("expression", ["round(fare, 1)", "carrier::INTEGER", "stops[1]"])
def test_what_may_fail_raises_where_it_is_used(expression: str) -> None:
    query = _spark(f"SELECT {expression} AS v FROM flights")
    assert len(query.evaluations) == 1
    assert query.sql.count("raise_error") == 1


def test_what_may_fail_comes_last_in_a_condition() -> None:
    query = _spark(
        "SELECT 1 FROM flights WHERE carrier::INTEGER > 0 AND month = 1 AND regexp_matches(carrier, '[0-9]')"
    )
    parts = query.sql.split(" AND ")
    assert [("raise_error" in part, "_ducklake_eval_" in part) for part in parts] == [
        (False, False),
        (False, True),
        (True, True),
    ]


def test_what_may_fail_holds_another_once() -> None:
    query = _spark("SELECT round(sum(round(fare, 1)) OVER (ORDER BY month), 1) AS v FROM flights")
    assert query.sql.count(" OVER (") == 1


def test_each_part_of_a_condition_is_on_its_own() -> None:
    query = _spark("SELECT month FROM flights WHERE month = 1 AND upper(carrier) = 'AA'")
    assert "`month` = 1" in query.sql
    assert [evaluation.sql for evaluation in query.evaluations] == ["upper(\"_ducklake_0\") = 'AA'"]


def test_computed_keys_of_groups_are_not_computed_again() -> None:
    query = _spark("SELECT upper(carrier) || 'x', count(*) FROM flights GROUP BY upper(carrier)")
    assert [evaluation.sql for evaluation in query.evaluations] == ['upper("_ducklake_0")', "\"_ducklake_0\" || 'x'"]


def test_other_settings_are_other_functions() -> None:
    text = "SELECT zoned::VARCHAR AS v FROM flights"
    (one,), (other,) = (_spark(text, Calendar=name).evaluations for name in ("gregorian", "japanese"))
    assert one.name != other.name
    assert dict(other.settings) == {"TimeZone": "UTC", "Calendar": "japanese"}


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("SELECT month FROM flights ORDER BY 'x', month DESC, NULL", "SELECT month FROM flights ORDER BY month DESC"),
        (
            "SELECT month FROM flights ORDER BY 1.5, -2e0, 'x' COLLATE nocase LIMIT 1",
            "SELECT month FROM flights LIMIT 1",
        ),
        (
            "SELECT month FROM flights UNION ALL SELECT year FROM planes ORDER BY 'x', 1",
            "SELECT month FROM flights UNION ALL SELECT year FROM planes ORDER BY 1",
        ),
        (
            "SELECT DISTINCT ON ('a', month) month FROM flights ORDER BY month, 'x'",
            "SELECT DISTINCT ON (month) month FROM flights ORDER BY month",
        ),
    ],
)
def test_a_setting_lets_constants_order_nothing(text: str, without: str) -> None:
    with pytest.raises(BindError, match="orders nothing"):
        _spark(text)
    allowed, expected = (_spark(one, order_by_non_integer_literal="true").sql for one in (text, without))
    assert re.sub(r"src_\w+", "", allowed) == re.sub(r"src_\w+", "", expected)


def test_distinct_on_constants_alone_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="DISTINCT ON of constants alone"):
        _spark("SELECT DISTINCT ON ('a') month FROM flights", order_by_non_integer_literal="true")


def test_forms_that_a_setting_changes_are_left_to_duckdb() -> None:
    assert not _spark("SELECT month / 2 FROM flights").evaluations
    assert _spark("SELECT month / 2 FROM flights", integer_division="true").evaluations[0].result.name == "int32"
    assert _spark("SELECT dep_delay / 2 FROM flights", ieee_floating_point_ops="false").evaluations


@pytest.mark.parametrize(
    ("setting", "written", "expected"),
    [
        ("NULLS_LAST", "month", "ASC NULLS LAST"),
        ("NULLS_FIRST", "month", "`month` ASC"),
        ("NULLS_FIRST", "month NULLS LAST", "ASC NULLS LAST"),
        ("NULLS_FIRST", "month DESC", "DESC NULLS FIRST"),
        ("NULLS_LAST_ON_ASC_FIRST_ON_DESC", "month DESC", "DESC NULLS FIRST"),
        ("NULLS_FIRST_ON_ASC_LAST_ON_DESC", "month DESC", "DESC"),
    ],
)
def test_the_order_of_nulls_is_written_out(setting: str, written: str, expected: str) -> None:
    query = _spark(f"SELECT carrier FROM flights ORDER BY {written}", default_null_order=setting)
    assert query.sql.endswith(expected)


def test_the_default_order_is_followed() -> None:
    assert " DESC" in _spark("SELECT month FROM flights ORDER BY month", default_order="DESC").sql
    assert " DESC" not in _spark("SELECT month FROM flights ORDER BY month ASC", default_order="DESC").sql


@pytest.mark.parametrize("name", ["default_collation", "scalar_subquery_error_on_multiple_rows"])
def test_settings_that_spark_cannot_follow_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=name):
        _spark("SELECT month FROM flights", **{name: "other"})


def test_a_float_is_compared_as_a_float() -> None:
    query = _spark("SELECT month FROM (SELECT dep_delay::FLOAT AS fl, month FROM flights) WHERE fl = 0.1")
    assert "CAST('0.100000001' AS FLOAT)" in query.sql


def test_aggregates_keep_duckdb_s_types() -> None:
    assert "AS DECIMAL(38,0))" in _spark("SELECT sum(month) FROM flights").sql
    assert "AS DECIMAL(38,2))" in _spark("SELECT sum(fare) FROM flights").sql
    assert _spark("SELECT median(dep) FROM flights").evaluations[0].result.name == "timestamp"
