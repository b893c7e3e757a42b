"""Keys by DuckDB, and what they say of rows: nothing that a row with the key contradicts."""

from __future__ import annotations

import operator
from datetime import date
from typing import Any

import duckdb
import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import Comparison, InList, NullTest, Operator, StartsWith
from ducklake_lab.model.transforms import TRANSFORMS, Bucket, Transform, Unknown, parse_transform
from ducklake_lab.model.types import DataType
from ducklake_lab.model.values import comparable
from ducklake_lab.scan.partitioned import may_hold

pytestmark = pytest.mark.sampled(3)

KNOWN = [*(parse_transform(name) for name in TRANSFORMS if name != "bucket"), Bucket(5)]
MOMENTS = (
    "1959-12-31 23:59:59", "1969-12-31 23:30:00", "1970-01-01 00:00:00", "1970-01-01 00:59:59", "2020-02-29 12:00:00",
    "2020-03-01 00:00:00", "2020-12-31 23:59:59", "2021-01-01 00:00:00",
)  # fmt: skip
VALUES = {
    "boolean": ("true", "false"),
    "int32": ("-7", "0", "8", "2147483647"),
    "uint32": ("0", "7", "4294967295"),
    "int64": ("-9223372036854775808", "17"),
    "float64": ("-0.0", "0.5", "1e300"),
    "decimal(9,2)": ("-1.50", "0.00", "7.25"),
    "decimal(38,2)": ("-1.50", "7.25"),
    "varchar": ("", "abc", "abd", "é"),
    "uuid": ("47183823-2574-4bfd-b411-99ed177d3e43", "ffffffff-2574-4bfd-b411-99ed177d3e43"),
    "date": tuple(moment[:10] for moment in MOMENTS),
    "timestamp": MOMENTS,
    "timestamp_s": MOMENTS,
    "timestamp_ms": MOMENTS,
    "timestamp_ns": MOMENTS,
    "timestamptz": tuple(f"{moment}+00" for moment in MOMENTS),
}
COMPARISONS = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
CASES = [
    (transform, kind) for kind in map(DataType, VALUES) for transform in KNOWN if transform.can_apply(kind)
]  # fmt: skip


def keys(transform: Transform, kind: DataType, texts: tuple[str, ...]) -> tuple[list[Any], list[str | None]]:
    """The values of some texts, and their keys, in a session whose zone is far from UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = ", ".join(f"(CAST('{text}' AS {kind.sql()}))" for text in texts)
        query = f"SELECT x, {transform.sql('x', kind, 'UTC')} AS k FROM (VALUES {rows}) AS t(x)"
        values = [row[0] for row in connection.execute(query).fetchall()]
        connection.execute("SET TimeZone = 'Pacific/Auckland'")
        found = connection.execute(query).to_arrow_table()
    return values, transform.keys(found.column("k"))


def carried(value: Any, kind: DataType) -> object:
    """A value as predicates have it."""
    if isinstance(value, date):
        return Moment.of(value)
    return str(value) if kind.name == "uuid" else value


@pytest.mark.parametrize(("transform", "kind"), CASES, ids=str)
def test_a_key_contradicts_no_row_that_has_it(transform: Transform, kind: DataType) -> None:
    values, found = keys(transform, kind, VALUES[kind.name])
    for value, key in zip(values, found, strict=True):
        assert key is not None
        constant = comparable(carried(value, kind), kind)
        if constant is not None:
            assert transform.key_of(constant, kind) in (None, key)
        for other in values:
            against = comparable(carried(other, kind), kind)
            for op, compare in COMPARISONS.items():
                if against is not None and compare(value, other):
                    assert transform.may_compare(key, kind, op, against), (value, op, other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("transform", "column", "kind", "wanted"),
    [
        ("epoch_day", ("1969-01-15", "1969-12-31", "1970-01-01", "2020-01-01"), "date", ["-351", "-1", "0", "18262"]),
        ("epoch_year", ("1969-12-31", "2020-12-31"), "date", ["-1", "50"]),
        ("epoch_month", ("1969-12-31", "2024-02-10"), "date", ["-1", "649"]),
        ("epoch_hour", ("2020-01-01 00:00:00+02",), "timestamptz", ["438286"]),
        ("epoch_year", ("2020-01-01 00:00:00+02",), "timestamptz", ["49"]),
        ("epoch_hour", ("1969-12-31 23:59:59.999999999", "1970-01-01"), "timestamp_ns", ["-1", "0"]),
        ("epoch_day", ("1969-12-31 23:59:59.999999",), "timestamp", ["-1"]),
    ],
)
def test_counts_are_rounded_down_in_utc(transform: str, column: tuple[str, ...], kind: str, wanted: list[str]) -> None:
    assert keys(parse_transform(transform), DataType(kind), column)[1] == wanted


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"])
def test_infinite_times_have_no_key(kind: str) -> None:
    for transform in KNOWN:
        if transform.can_apply(DataType(kind)) and not transform.null_for_null:
            assert keys(transform, DataType(kind), ("infinity", "-infinity"))[1] == [None, None]
            assert transform.may_be_null(None, is_null=False)


DAYS = ["2024-01-31", "2024-02-01", "2024-02-29", "2024-03-01"]


def test_counts_prune_ranges() -> None:
    transform, kind = parse_transform("epoch_month"), DataType("date")

    def kept(op: Operator) -> list[str]:
        return [day for day in DAYS if transform.may_compare("649", kind, op, Moment.of(date.fromisoformat(day)))]

    assert kept("=") == DAYS[1:3] and kept("!=") == DAYS
    assert kept("<") == DAYS[2:] and kept("<=") == DAYS[1:]
    assert kept(">") == kept(">=") == DAYS[:3]


@pytest.mark.parametrize("text", ["bucket(0)", "bucket(2147483648)", "bucket(-1)", "bucket()", "truncate(3)", "Year"])
def test_what_nobody_knows_prunes_nothing_and_writes_nothing(text: str) -> None:
    transform = parse_transform(text)
    assert isinstance(transform, Unknown) and str(transform) == text
    column = Column.build("x", DataType("varchar"), 1)
    for key in (None, "0", "abc"):
        for predicate in (
            NullTest(("x",), True), NullTest(("x",), False), Comparison(("x",), "=", "q"), InList(("x",), ("q",)),
            StartsWith(("x",), "q"),
        ):  # fmt: skip
            assert may_hold(column, {text: key}, predicate)
    with pytest.raises(UnsupportedFeatureError) as error:
        transform.sql("x", column.data_type, "UTC")
    assert text in str(error.value)


def test_texts_of_the_catalog() -> None:
    assert [str(transform) for transform in KNOWN] == [*(name for name in TRANSFORMS if name != "bucket"), "bucket(5)"]
    assert Bucket(5).written("x") == "bucket(5, x)" and parse_transform("year").written("x") == "year(x)"
    assert parse_transform("identity").written("x") == "x"
