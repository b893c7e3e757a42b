"""Comparisons of what keeps a column's order with a constant, as comparisons of the column itself.

A cast to a type that holds every value keeps the order and all differences; a cast of a point in time to its
date, `date_trunc` and `year` keep the order, and make all points of a day, month, … equal. What follows for the column
is exact, so that it prunes by statistics as if it had been written so.
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
from ducklake_lab.sql.parse.constants import NotConstant
from ducklake_lab.sql.prune.constants import moment_value
from ducklake_lab.sql.scope import TYPE

#: Points in time without a zone; those with one are cast by the session's zone, which is not known here.
_MOMENTS = ("timestamp", "timestamp_s", "timestamp_ms")
_DAYS = ("year", "quarter", "month", "week", "day")
_UNITS = (*_DAYS, "hour", "minute", "second")
#: Digits of a number, and of its power of ten, that are exact as DOUBLE.
_EXACT_DIGITS = 15
#: Integers that are exact as DOUBLE.
_SHORT = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


class NotOrdered(Exception):
    """Raised inside this package where nothing follows for the column."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An expression that is the same for all of a unit of time.

    Attributes:
        subject: the date or point in time that it is a part of.
        number: it is the number of the year.
        is_day: it is a DATE.
    """

    name: str
    subject: exp.Expr
    number: bool = False
    is_day: bool = False


def unit_of(node: exp.Expr) -> Unit | None:
    """What makes a unit of time of a date or point in time; None for anything else."""
    if isinstance(node, exp.Cast):
        source, target = _type(node.this), _type(node)
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


def _type(node: exp.Expr) -> DataType | None:
    kind = node.meta.get(TYPE)
    return kind if isinstance(kind, DataType) else None


def floored(path: ColumnPath, kind: DataType, op: Operator, value: object, unit: Unit) -> Predicate:
    """What `unit(column) op value` says of a column.

    Raises:
        NotOrdered: nothing.
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


#: As what a text is read that is compared with a day, and with a point in time.
_DAY, _POINT = DataType("date"), DataType("timestamp")
_LAST_YEAR = 400_000


def _moment(value: object, kind: DataType) -> Moment:
    """A finite day or point in time without a zone; a text is read as one of the kind."""
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


#: Microseconds of units that have the same length always.
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
    """What `column op value`, or `CAST(column AS target) op value`, says of a column.

    Raises:
        NotOrdered: nothing, as comparing would convert the column to a type that does not keep its values.
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
    """A number that is rounded is less than 1 away from the integer."""
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
    """Whether a cast keeps the order, and all differences."""
    if target.name in ("timestamptz", "json", "float32") or kind.name == "boolean":
        return False
    if target.name == "float64":
        return kind.name in (*_SHORT, "float32")
    return is_wider(kind, target)


def _fitting(value: object, kind: DataType) -> object:
    """A constant in the form that values of the column have; refuses where comparing would convert."""
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


#: With which moments those of a kind compare without the time zone.
_COMPARED = {
    "date": ("date", "timestamp"),
    "time": ("time",),
    "timestamp": ("date", "timestamp"),
    "timestamptz": ("timestamptz",),
}


def _is_short(value: float | Decimal) -> bool:
    """Whether DuckDB and Python make the same DOUBLE of a number: Python's is the nearest one."""
    if isinstance(value, float):
        return True
    digits = Decimal(value).as_tuple()
    return len(digits.digits) <= _EXACT_DIGITS and abs(int(digits.exponent)) <= _EXACT_DIGITS


def _as_day(path: ColumnPath, op: Operator, moment: Moment) -> Comparison:
    """A date is compared with a point in time as its midnight."""
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
