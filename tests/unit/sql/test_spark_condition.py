"""Predicates from conditions in Spark SQL."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from ducklake_lab.model.entries import Column
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate
from ducklake_lab.sql.prune.spark_condition import predicate_of

KINDS = {
    "k": "int32",
    "s": "varchar",
    "d": "date",
    "f": "double",
    "b": "boolean",
    "n": "decimal(10,2)",
    "h": "int128",
    "t": "timestamp",
}
COLUMNS = [Column(number, number, name, kind) for number, (name, kind) in enumerate(KINDS.items(), 1)]
DAY = Moment.of(date(2024, 1, 31))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = 7", Comparison(("k",), "=", 7)),
        ("7 < K", Comparison(("k",), ">", 7)),
        ("`k` >= -7", Comparison(("k",), ">=", -7)),
        ("k = 7 AND f > 1.5", Comparison(("k",), "=", 7)),
        ("k = 7 AND s <> 'a'", And((Comparison(("k",), "=", 7), Comparison(("s",), "!=", "a")))),
        ("k = 7 OR s = 'a'", Or((Comparison(("k",), "=", 7), Comparison(("s",), "=", "a")))),
        ("k BETWEEN 1 AND 2", And((Comparison(("k",), ">=", 1), Comparison(("k",), "<=", 2)))),
        ("s IN ('a', 'b')", InList(("s",), ("a", "b"))),
        ("d = DATE'2024-01-31'", Comparison(("d",), "=", DAY)),
        ("b = true", Comparison(("b",), "=", True)),
        ("n < 1.25", Comparison(("n",), "<", Decimal("1.25"))),
        ("s IS NULL", NullTest(("s",), True)),
        ("s IS NOT NULL", NullTest(("s",), False)),
    ],
)
def test_constants_of_the_columns_own_kind_count(condition: str, expected: Predicate) -> None:
    assert predicate_of(condition, COLUMNS) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "k = '7'",  # Spark converts the text
        "s = 7",
        "k = 7 OR f = 1.5",
        "f = 1",
        "k = 7L",
        "k = 12345678901234567890",
        "n = 1.255",
        "h = 1",
        "d = '2024-01-31'",
        "d = DATE'2024-1-31'",
        "t = TIMESTAMP'2024-01-31 00:00:00'",
        's = "a"',
        r"s = 'a\\b'",
        "NOT k = 7",
        "k + 1 = 8",
        "k = s",
        "missing = 1",
        "t.k = 7",
        "k = (SELECT 7)",
        "k IN (SELECT 7)",
        "k = 1e2",
        "k = =",
        "",
        "(" * 5000,
    ],
)
def test_others_imply_nothing(condition: str) -> None:
    assert predicate_of(condition, COLUMNS) is None
