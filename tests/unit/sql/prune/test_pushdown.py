"""Predicates that a query implies for the rows of its tables, and those that it does not imply."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.sql.plan import JoinKey
from tests.unit.sql.lakes import plan


def compare(column: str, op: str, value: object) -> Comparison:
    if isinstance(value, date):
        value = Moment.of(value)
    return Comparison((column,), op, value)  # type: ignore[arg-type]


def between(column: str, first: date, end: date) -> And:
    return And((compare(column, ">=", first), compare(column, "<", end)))


DAY = between("dep", datetime(2013, 1, 31), datetime(2013, 2, 1))
NEXT_DAY = between("dep", datetime(2013, 2, 1), datetime(2013, 2, 2))
FEBRUARY = between("flown", date(2013, 2, 1), date(2013, 3, 1))


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
        ("month BETWEEN 1 AND year(dep)", compare("month", ">=", 1)),
        ("month = 5::BIGINT AND month::BIGINT < 6", And((compare("month", "=", 5), compare("month", "<", 6)))),
        ("month > 1e0", compare("month", ">", Decimal(1))),
        ("CAST(month AS DECIMAL(12,1)) IN (1.5, 2)", InList(("month",), (Decimal("1.5"), 2))),
        ("spot['deep'].y = 'a'", Comparison(("spot", "deep", "y"), "=", "a")),
        ("fare::BIGINT > 5", compare("fare", ">=", Decimal(4))),
        ("dep_delay::INTEGER = 1", And((compare("dep_delay", ">=", 0.0), compare("dep_delay", "<=", 2.0)))),
        ("flown < TIMESTAMP '2013-01-31 05:00:00'", compare("flown", "<=", date(2013, 1, 31))),
        ("flown >= TIMESTAMP '2013-01-31 05:00:00'", compare("flown", ">", date(2013, 1, 31))),
        ("flown = TIMESTAMP '2013-01-31 00:00:00'", compare("flown", "=", date(2013, 1, 31))),
        ("flown <= DATE '1998-12-01' - INTERVAL 90 DAY", compare("flown", "<=", date(1998, 9, 2))),
        ("flown > DATE '2013-01-31' + INTERVAL '1' MONTH", compare("flown", ">", date(2013, 2, 28))),
        ("month < 2 * 3 - 1", compare("month", "<", 5)),
        ("fare BETWEEN 0.06 - 0.01 AND 7", And((compare("fare", ">=", Decimal("0.05")), compare("fare", "<=", 7)))),
        ("dep::DATE = '2013-01-31'", DAY),
        ("DATE '2013-01-31' = CAST(dep AS DATE)", DAY),
        ("date_trunc('day', dep) = '2013-01-31'", DAY),
        ("dep::DATE <= '2013-01-31'", compare("dep", "<", datetime(2013, 2, 1))),
        ("dep::DATE > '2013-01-31'", compare("dep", ">=", datetime(2013, 2, 1))),
        ("dep::DATE IN ('2013-01-31', '2013-02-01')", Or((DAY, NEXT_DAY))),
        ("year(dep) >= 2013", compare("dep", ">=", datetime(2013, 1, 1))),
        ("extract(year FROM flown) < 2013", compare("flown", "<", date(2013, 1, 1))),
        ("date_trunc('month', flown) = '2013-02-01'", FEBRUARY),
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
        "month = (SELECT 1)",
        "month IN (SELECT year FROM planes)",
        "rowid = 3",
        "flown > current_date",
        "zoned::DATE = '2013-01-31'",
        "year(zoned) = 2013",
        "date_part('month', dep) = 1",
        "flown = TIMESTAMP '2013-01-31 05:00:00'",
        "dep_delay::INTEGER != 1",
        "date_trunc('hour', flown) = '2013-01-31'",
        "dep < '2013-01-31'::TIMESTAMPTZ + INTERVAL 1 DAY",
        "carrier::DATE = '2013-01-31'",
        "month = random()",
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
    for tail in ("GROUP BY month HAVING month = 1", "QUALIFY month = 1 AND count(*) OVER () > 0", "ORDER BY month = 1"):
        assert plan(f"SELECT month FROM flights {tail}").sources[0].predicate is None


def test_writes_prune_their_target() -> None:
    assert plan("DELETE FROM planes WHERE year = 2").sources[0].predicate == YEAR
    assert plan("UPDATE planes SET year = 3 WHERE year = 2").sources[0].predicate == YEAR
    target, other = plan(
        "DELETE FROM planes p USING flights f WHERE p.tailnum = f.tailnum AND year = 2 AND month = 1"
    ).sources
    assert (target.predicate, other.predicate) == (YEAR, MONTH)


@pytest.mark.parametrize(
    ("query", "left", "right"),
    [
        ("flights f JOIN planes p ON f.tailnum = p.tailnum", True, True),
        ("flights f JOIN planes p USING (tailnum)", True, True),
        ("flights f, planes p WHERE p.tailnum = f.tailnum AND year = 2", True, True),
        ("flights f LEFT JOIN planes p ON f.tailnum = p.tailnum", False, True),
        ("flights f LEFT JOIN planes p USING (tailnum)", False, True),
        ("flights f RIGHT JOIN planes p ON f.tailnum = p.tailnum", True, False),
        ("flights f FULL JOIN planes p ON f.tailnum = p.tailnum", False, False),
        ("flights f SEMI JOIN planes p ON f.tailnum = p.tailnum", True, True),
        ("flights f ANTI JOIN planes p ON f.tailnum = p.tailnum", False, True),
        ("flights f JOIN planes p ON f.tailnum = p.tailnum OR year = 2", False, False),
        ("flights f JOIN planes p ON upper(f.tailnum) = p.tailnum", False, False),
        ("flights f JOIN planes p ON f.tailnum = p.year::VARCHAR", False, False),
        ("flights f WHERE tailnum IN (SELECT tailnum FROM planes p WHERE year = 2)", True, False),
        ("flights f WHERE tailnum NOT IN (SELECT tailnum FROM planes p)", False, False),
        ("flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum)", False, True),
    ],
)
def test_joins_name_the_keys_that_matter(query: str, left: bool, right: bool) -> None:
    flights, planes = plan(f"SELECT 1 FROM {query}").sources
    assert flights.keys == ((JoinKey(("tailnum",), planes.view, ("tailnum",)),) if left else ())
    assert planes.keys == ((JoinKey(("tailnum",), flights.view, ("tailnum",)),) if right else ())


def test_a_merged_column_is_no_key_of_a_third_table() -> None:
    *_, airlines = plan(
        "SELECT 1 FROM flights f LEFT JOIN (SELECT 1 AS one) o ON one = month JOIN airlines a USING (carrier) "
    ).sources
    assert len(airlines.keys) == 1
    sources = plan("SELECT 1 FROM planes p LEFT JOIN flights f USING (tailnum) JOIN planes q USING (tailnum)").sources
    assert [len(source.keys) for source in sources] == [0, 1, 0]
