"""Subqueries that run on Spark, and the NULLs that IN has to give."""

from __future__ import annotations

import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql import parse_query, plan_query
from tests.unit.sql import lakes


def _sql(text: str) -> str:
    return plan_query(parse_query(text), lakes.Lakes()).for_spark().sql


@pytest.mark.parametrize(
    "item",
    [
        "(SELECT f.month + 1 AS y) x",
        "(SELECT month + 1) x",
        "(SELECT max(y) FROM (SELECT f.month AS y)) x",
        "(SELECT carrier FROM airlines a WHERE a.carrier = f.carrier) x",
        "range(f.month) x",
        "unnest([f.month]) WITH ORDINALITY x",
    ],
)
def test_what_uses_columns_to_its_left_is_lateral(item: str) -> None:
    assert "LATERAL" in _sql(f"SELECT x.* FROM flights f, {item}")


def test_a_condition_of_qualify_is_a_boolean() -> None:
    assert "CAST(NULL AS BOOLEAN)" in _sql("SELECT count(*) OVER () FROM flights QUALIFY NULL")


def test_what_uses_none_is_not_lateral() -> None:
    assert "LATERAL" not in _sql("SELECT x.* FROM flights f, (SELECT carrier FROM airlines a WHERE a.carrier > 'B') x")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM flights WHERE carrier IN (SELECT carrier FROM airlines)",
        "SELECT 1 FROM flights WHERE carrier NOT IN (SELECT carrier FROM airlines) AND month > 3",
        "SELECT 1 FROM flights WHERE month = 2 OR carrier IN (SELECT carrier FROM airlines)",
        "SELECT 1 FROM flights WHERE month = 2 AND NOT (carrier IN (SELECT carrier FROM airlines))",
        "SELECT CASE WHEN carrier IN (SELECT carrier FROM airlines) THEN 1 END FROM flights",
        "SELECT count(*) FILTER (WHERE carrier IN (SELECT carrier FROM airlines)) FROM flights",
        "SELECT 1 FROM flights WHERE (carrier, month) IN (SELECT carrier, 1 FROM airlines)",
    ],
)
def test_where_only_a_match_counts_in_is_one_join(text: str) -> None:
    assert "EXISTS" not in _sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT carrier IN (SELECT carrier FROM airlines) FROM flights",
        "SELECT NOT (carrier IN (SELECT carrier FROM airlines)) FROM flights",
        "SELECT 1 FROM flights WHERE (carrier IN (SELECT carrier FROM airlines)) IS NULL",
        "SELECT 1 FROM flights WHERE NOT (carrier IN (SELECT carrier FROM airlines) AND month = 1)",
        "SELECT 1 FROM flights WHERE NOT (NOT (carrier IN (SELECT carrier FROM airlines)))",
        "SELECT 1 FROM flights WHERE month = 2 OR NOT (carrier IN (SELECT carrier FROM airlines))",
        "SELECT CASE WHEN carrier NOT IN (SELECT carrier FROM airlines) THEN 1 END FROM flights",
        "SELECT CASE carrier IN (SELECT carrier FROM airlines) WHEN true THEN 1 END FROM flights",
        "SELECT 1 FROM flights ORDER BY carrier IN (SELECT carrier FROM airlines)",
    ],
)
def test_elsewhere_it_asks_for_null(text: str) -> None:
    assert _sql(text).count("EXISTS") == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT month + random() > ALL (SELECT month FROM flights) FROM flights", "ALL over this query"),
        ("SELECT carrier > ANY (SELECT month FROM flights) FROM flights", "Joining"),
        ("SELECT (carrier, month) IN (SELECT carrier, 1 FROM airlines) FROM flights", "several columns"),
        ("SELECT 1 FROM flights WHERE (carrier, month) NOT IN (SELECT carrier, 1 FROM airlines)", "several columns"),
        ("SELECT random() IN (SELECT fare FROM flights) FROM flights", "differ by evaluation"),
        (
            "SELECT (SELECT g.month + f.month FROM flights g ORDER BY g.month LIMIT 1) FROM flights f",
            "f.month of the query around",
        ),
        (
            "SELECT (SELECT max(g.month) FROM flights g JOIN airlines a ON g.month = f.month) FROM flights f",
            "condition of a join",
        ),
    ],
)
def test_what_spark_would_answer_otherwise_is_refused(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        _sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (SELECT g.month FROM flights g WHERE g.month > f.month ORDER BY g.month LIMIT 1) FROM flights f",
        "SELECT (SELECT max(g.month) FROM flights g JOIN airlines a USING (carrier) WHERE g.month = f.month) FROM flights f",
        "SELECT f.month, u.x FROM flights f, unnest([1, 2]) AS u(x) ORDER BY ALL LIMIT 3",
        "WITH c AS (SELECT month FROM flights LIMIT 3) SELECT c.month FROM c JOIN flights ON c.month = flights.month LIMIT 2",
    ],
)
def test_what_it_answers_alike_runs(text: str) -> None:
    assert _sql(text)
