"""Converts comparisons of order-preserving expressions with a constant to comparisons of the column itself.

A cast to a type that holds every value preserves order and distinctness. A cast of a timestamp to its
date, `date_trunc` and `year` preserve the order, and map all times of a day, month, … to one value. The comparison of
the column is exact, so that statistics prune by it as usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from uuid import UUID

from sqlglot import exp

from ducklake_lab.model.moments import DAY, SECOND, Moment, civil, days_since_1970
from ducklake_lab.model.predicates import And, ColumnPath, Comparison, Operator, Predicate
from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.model.values import MOMENTS
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.parse.constants import NotConstant
from ducklake_lab.sql.prune.constants import moment_value

#: Timestamps without a zone; a cast of others depends on the session's zone, which is unknown here.
_MOMENTS = ("timestamp", "timestamp_s", "timestamp_ms")
_DAYS = ("year", "quarter", "month", "week", "day")
_UNITS = (*_DAYS, "hour", "minute", "second")
#: Most digits of a number and its power of ten that are exact as DOUBLE.
_EXACT_DIGITS = 15
#: Integer types that are exact as DOUBLE.
_SHORT = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


class NotOrdered(Exception):
    """Raised inside this package if no comparison of the column follows."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An expression with one value for each whole unit of time.

    Attributes:
        subject: the date or timestamp in the expression.
        number: the value is the number of the year.
        is_day: the value is a DATE.
    """

    name: str
    subject: exp.Expr
    number: bool = False
    is_day: bool = False


def unit_of(node: exp.Expr) -> Unit | None:
    """Returns the unit of time that an expression computes from a date or timestamp; None for others."""
    if isinstance(node, exp.Cast):
        source, target = notes(node.this).type, notes(node).type
        is_day = source is not None and source.name in _MOMENTS and target is not None and target.name == "date"
        return Unit("day", node.this, is_day=True) if is_day else None
    if not isinstance(node, exp.Anonymous):
        return None
    word, args = node.name.casefold(), node.expressions
    if word == "year" and len(args) == 1:
        return Unit("year", args[0], number=True)
    if len(args) != 2 or not (isinstance(args[0], exp.Literal) and args[0].is_string):
        return None
    unit = args[0].name.casefold()
    if word in ("date_trunc", "datetrunc") and unit in _UNITS:
        return Unit(unit, args[1])
    if word in ("date_part", "datepart") and unit == "year":
        return Unit("year", args[1], number=True)
    return None


def floored(path: ColumnPath, kind: DataType, op: Operator, value: object, unit: Unit) -> Predicate:
    """Converts `unit(column) op value` to a predicate on the column.

    Raises:
        NotOrdered: no predicate follows.
    """
    if kind.name not in _MOMENTS and not (kind.name == "date" and unit.name in _DAYS):
        raise NotOrdered
    moment = _beginning(value) if unit.number else _moment(value, _DAY if unit.is_day else _POINT).micros
    start = _floor(moment, unit.name)
    end = _next(start, unit.name)
    whole = start == moment

    def at(op: Operator, bound: int) -> Comparison:
        found = Moment(bound, MOMENTS[kind.name])
        if not found.is_known:
            raise NotOrdered
        return Comparison(path, op, found)

    match op:
        case "=" if whole:
            return And((at(">=", start), at("<", end)))
        case "<":
            return at("<", start if whole else end)
        case "<=":
            return at("<", end)
        case ">":
            return at(">=", end)
        case ">=":
            return at(">=", start if whole else end)
    raise NotOrdered


#: The types in which a text is read that is compared with a day or a timestamp.
_DAY, _POINT = DataType("date"), DataType("timestamp")
_LAST_YEAR = 400_000


def _moment(value: object, kind: DataType) -> Moment:
    """Returns a finite date or timestamp without a zone; reads a text as that type."""
    found = _of_text(value, kind) if isinstance(value, str) else value
    if not isinstance(found, Moment) or found.kind not in ("date", "timestamp") or not found.is_finite:
        raise NotOrdered
    return found


def _beginning(year: object) -> int:
    if not isinstance(year, int) or isinstance(year, bool) or abs(year) > _LAST_YEAR:
        raise NotOrdered
    return days_since_1970(year, 1, 1) * DAY


def _of_text(text: str, kind: DataType) -> Moment:
    try:
        return moment_value(text, kind)
    except NotConstant:
        raise NotOrdered from None


#: Microseconds of units with a fixed length.
_LENGTHS = {"day": DAY, "hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def _floor(moment: int, unit: str) -> int:
    if unit in _LENGTHS:
        return moment // _LENGTHS[unit] * _LENGTHS[unit]
    days = moment // DAY
    if unit == "week":
        return (days - (days + 3) % 7) * DAY  # 1970 began on a Thursday
    year, month, _ = civil(days)
    return days_since_1970(year, (month - 1) // _MONTHS[unit] * _MONTHS[unit] + 1, 1) * DAY


def _next(start: int, unit: str) -> int:
    if unit in _LENGTHS or unit == "week":
        return start + _LENGTHS.get(unit, 7 * DAY)
    year, month, _ = civil(start // DAY)
    months = month - 1 + _MONTHS[unit]
    return days_since_1970(year + months // 12, months % 12 + 1, 1) * DAY


def comparison(
    path: ColumnPath, kind: DataType, op: Operator, value: object, target: DataType | None = None
) -> Predicate:
    """Converts `column op value`, or `CAST(column AS target) op value`, to a predicate on the column.

    Raises:
        NotOrdered: no predicate follows, because the comparison converts the column to a type that changes values.
    """
    if target is not None and target != kind:
        if target.name in INTEGERS and (kind.decimal is not None or kind.name == "float64"):
            return _rounded(path, kind, op, value)
        if not _keeps(kind, target):
            raise NotOrdered
        try:
            value = _fitting(value, target)
        except (ValueError, ArithmeticError):
            raise NotOrdered from None
    try:
        found = _fitting(value, kind)
    except (ValueError, ArithmeticError):
        raise NotOrdered from None
    if isinstance(found, Moment) and found.kind == "timestamp" and kind.name == "date":
        return _as_day(path, op, found)
    if isinstance(found, Moment) and found.kind == "date" and kind.name != "date":
        found = found.at("timestamp")
        if not found.is_known:
            raise NotOrdered
    return Comparison(path, op, found)


def _rounded(path: ColumnPath, kind: DataType, op: Operator, value: object) -> Predicate:
    """Returns a predicate for a rounded number, which differs from the integer by less than 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotOrdered
    low, high = Decimal(value - 1), Decimal(value + 1)
    least = Comparison(path, ">=", float(low) if kind.name == "float64" else low)
    most = Comparison(path, "<=", float(high) if kind.name == "float64" else high)
    match op:
        case "=":
            return And((least, most))
        case "<" | "<=":
            return most
        case ">" | ">=":
            return least
    raise NotOrdered


def _keeps(kind: DataType, target: DataType) -> bool:
    """Returns whether a cast preserves order and distinctness."""
    if target.name in ("timestamptz", "json", "float32") or kind.name == "boolean":
        return False
    if target.name == "float64":
        return kind.name in (*_SHORT, "float32")
    return is_wider(kind, target)


def _fitting(value: object, kind: DataType) -> object:
    """Returns a constant in the form of the column's values; raises NotOrdered if a comparison would convert them."""
    name = kind.name
    if value is None or (isinstance(value, bool) and name != "boolean"):
        raise NotOrdered
    if name == "boolean" and isinstance(value, bool):
        return value
    if name in INTEGERS and isinstance(value, int | Decimal):
        return value
    if name in _SHORT and isinstance(value, float) and isfinite(value):
        return Decimal(value)
    if kind.decimal is not None and isinstance(value, int | Decimal):
        return value
    if name == "float64" and isinstance(value, int | float | Decimal) and _is_short(value):
        return float(value)
    if name == "varchar" and isinstance(value, str):
        return value
    if name == "uuid" and isinstance(value, str) and value == str(UUID(value)):
        return value
    if name == "blob" and isinstance(value, bytes):
        return value
    if name not in MOMENTS:
        raise NotOrdered
    moment = _of_text(value, kind) if isinstance(value, str) else value
    if isinstance(moment, Moment) and moment.kind in _COMPARED[MOMENTS[name]]:
        return moment
    raise NotOrdered


#: Kinds of moments that compare without the time zone, by kind.
_COMPARED = {
    "date": ("date", "timestamp"),
    "time": ("time",),
    "timestamp": ("date", "timestamp"),
    "timestamptz": ("timestamptz",),
}


def _is_short(value: float | Decimal) -> bool:
    """Returns whether DuckDB and Python convert a number to the same DOUBLE; Python's is the nearest one."""
    if isinstance(value, float):
        return True
    digits = Decimal(value).as_tuple()
    return len(digits.digits) <= _EXACT_DIGITS and abs(int(digits.exponent)) <= _EXACT_DIGITS


def _as_day(path: ColumnPath, op: Operator, moment: Moment) -> Comparison:
    """Compares a date with a timestamp: the date counts as its midnight."""
    day = Moment(moment.micros if not moment.is_finite else moment.micros // DAY * DAY, "date")
    if day.micros != moment.micros:
        match op:
            case "<":
                op = "<="
            case ">=":
                op = ">"
            case "=" | "!=":
                raise NotOrdered
    return Comparison(path, op, day)
