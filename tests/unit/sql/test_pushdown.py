"""What a query implies for the rows of its tables, and what must not be concluded."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from tests.unit.sql.lakes import plan


def compare(column: str, op: str, value: object) -> Comparison:
    return Comparison((column,), op, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "predicate"),
    [
        ("month = 1", compare("month", "=", 1)),
        ("3 < month", compare("month", ">", 3)),
        ("month <> -1", compare("month", "!=", -1)),
        ("Flights.MONTH >= 2", compare("month", ">=", 2)),
        ("month < 1.5", compare("month", "<", Decimal("1.5"))),
        ("dep_delay > 1", compare("dep_delay", ">", 1.0)),
        ("fare = 1.25", compare("fare", "=", Decimal("1.25"))),
        ("flown >= DATE '2013-01-31'", compare("flown", ">=", date(2013, 1, 31))),
        ("flown = '2013-01-31'", compare("flown", "=", date(2013, 1, 31))),
        ("dep < TIMESTAMP '2013-01-31 05:00:00'", compare("dep", "<", datetime(2013, 1, 31, 5))),
        ("dep < DATE '2013-01-31'", compare("dep", "<", datetime(2013, 1, 31))),
        (
            "zoned < TIMESTAMPTZ '2013-01-31 05:00:00+00:00'",
            compare("zoned", "<", datetime(2013, 1, 31, 5, tzinfo=UTC)),
        ),
        ("spot.deep.y = 'a'", Comparison(("spot", "deep", "y"), "=", "a")),
        ("late", compare("late", "=", True)),
        ("NOT late", compare("late", "=", False)),
        ("carrier IS NULL", NullTest(("carrier",), True)),
        ("carrier IS NOT NULL", NullTest(("carrier",), False)),
        ("carrier LIKE 'U%'", StartsWith(("carrier",), "U")),
        ("carrier LIKE 'U_A%'", StartsWith(("carrier",), "U")),
        ("carrier LIKE 'UA'", compare("carrier", "=", "UA")),
        ("starts_with(carrier, 'U')", StartsWith(("carrier",), "U")),
        ("month IN (1, 2, NULL)", InList(("month",), (1, 2))),
        ("month BETWEEN 1 AND 3", And((compare("month", ">=", 1), compare("month", "<=", 3)))),
        ("month = 1 AND upper(carrier) = 'UA'", compare("month", "=", 1)),
        ("month = 1 OR carrier = 'UA'", Or((compare("month", "=", 1), compare("carrier", "=", "UA")))),
        ("(month = 1 AND dep_delay + 1 > 2) OR month = 3", Or((compare("month", "=", 1), compare("month", "=", 3)))),
    ],
)
def test_what_is_pushed_down(condition: str, predicate: Predicate) -> None:
    (source,) = plan(f"SELECT 1 FROM flights WHERE {condition}").sources
    assert source.predicate == predicate


@pytest.mark.parametrize(
    "condition",
    [
        "month + 1 = 2",
        "month = dep_delay",
        "upper(carrier) = 'UA'",
        "CAST(month AS VARCHAR) = '1'",
        "carrier = 1",
        "month = '1'",
        "dep_delay = NULL",
        "month = 1 OR upper(carrier) = 'UA'",
        "NOT (month = 1)",
        "month NOT IN (1, 2)",
        "carrier NOT LIKE 'U%'",
        "carrier LIKE '%A'",
        "carrier ILIKE 'U%'",
        "zoned < TIMESTAMPTZ '2013-01-31 05:00:00'",
        "flown < TIMESTAMP '2013-01-31 05:00:00'",
        "month = (SELECT 1)",
        "month IN (SELECT year FROM planes)",
        "rowid = 3",
        "flown > current_date",
    ],
)
def test_what_is_left_out(condition: str) -> None:
    assert plan(f"SELECT 1 FROM flights WHERE {condition}").sources[0].predicate is None


MONTH, YEAR = compare("month", "=", 1), compare("year", "=", 2)


@pytest.mark.parametrize(
    ("query", "left", "right"),
    [
        ("flights f JOIN planes p ON f.tailnum = p.tailnum AND year = 2 WHERE month = 1", MONTH, YEAR),
        ("flights f, planes p WHERE f.tailnum = p.tailnum AND year = 2 AND month = 1", MONTH, YEAR),
        ("flights f LEFT JOIN planes p ON year = 2 WHERE month = 1", MONTH, YEAR),
        ("flights f LEFT JOIN planes p ON month = 1 WHERE year = 2", None, None),
        ("flights f RIGHT JOIN planes p ON month = 1 WHERE year = 2", MONTH, YEAR),
        ("flights f RIGHT JOIN planes p ON year = 2 WHERE month = 1", None, None),
        ("flights f FULL JOIN planes p ON month = 1 AND year = 2 WHERE month = 1 AND year = 2", None, None),
        ("flights f SEMI JOIN planes p ON f.tailnum = p.tailnum AND year = 2 AND month = 1", MONTH, YEAR),
        ("flights f ANTI JOIN planes p ON f.tailnum = p.tailnum AND year = 2 AND month = 1", None, YEAR),
    ],
)
def test_joins(query: str, left: Predicate | None, right: Predicate | None) -> None:
    flights, planes = plan(f"SELECT 1 FROM {query}").sources
    assert (flights.predicate, planes.predicate) == (left, right)


def test_aliases_and_inner_queries() -> None:
    inner, outer = plan(
        "WITH a AS (SELECT * FROM flights WHERE month = 1) SELECT year AS y FROM a, planes WHERE y = 2"
    ).sources
    assert (inner.predicate, outer.predicate) == (MONTH, YEAR)


def test_having_and_qualify_say_nothing_about_rows() -> None:
    for tail in ("GROUP BY month HAVING month = 1", "QUALIFY month = 1", "ORDER BY month = 1"):
        assert plan(f"SELECT month FROM flights {tail}").sources[0].predicate is None


def test_writes_prune_their_target() -> None:
    assert plan("DELETE FROM planes WHERE year = 2").sources[0].predicate == YEAR
    assert plan("UPDATE planes SET year = 3 WHERE year = 2").sources[0].predicate == YEAR
    target, other = plan(
        "DELETE FROM planes p USING flights f WHERE p.tailnum = f.tailnum AND year = 2 AND month = 1"
    ).sources
    assert (target.predicate, other.predicate) == (YEAR, MONTH)
