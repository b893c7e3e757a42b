"""Comparisons of what keeps a column's order with a constant, as comparisons of the column itself.

A cast to a type that holds every value keeps the order and all differences; a cast of a point in time to its
date, `date_trunc` and `year` keep the order, and make all points of a day, month, … equal. What follows for the column
is exact, so that it prunes by statistics as if it had been written so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from uuid import UUID

from sqlglot import exp

from ducklake_lab.model.predicates import And, ColumnPath, Comparison, Operator, Predicate
from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.sql.scope import TYPE

#: Points in time without a zone; those with one are cast by the session's zone, which is not known here.
_MOMENTS = ("timestamp", "timestamp_s", "timestamp_ms")
_DAYS = ("year", "quarter", "month", "week", "day")
_UNITS = (*_DAYS, "hour", "minute", "second")
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
    """

    name: str
    subject: exp.Expr
    number: bool = False


def unit_of(node: exp.Expr) -> Unit | None:
    """What makes a unit of time of a date or point in time; None for anything else."""
    if isinstance(node, exp.Cast):
        source, target = _type(node.this), _type(node)
        is_day = source is not None and source.name in _MOMENTS and target is not None and target.name == "date"
        return Unit("day", node.this) if is_day else None
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
    try:
        if unit.number:
            if not isinstance(value, int) or isinstance(value, bool):
                raise NotOrdered
            moment = datetime(value, 1, 1)
        else:
            moment = _moment(value)
        start = _floor(moment, unit.name)
        end = _next(start, unit.name)
    except (ValueError, OverflowError):
        raise NotOrdered from None
    whole = start == moment

    def at(op: Operator, bound: datetime) -> Comparison:
        return Comparison(path, op, bound.date() if kind.name == "date" else bound)

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


def _moment(value: object) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value
    raise NotOrdered


def _floor(moment: datetime, unit: str) -> datetime:
    day = datetime(moment.year, moment.month, moment.day)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
        case "day":
            return day
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
    return moment.replace(microsecond=0)


def _next(start: datetime, unit: str) -> datetime:
    if unit in ("year", "quarter", "month"):
        months = start.month - 1 + {"year": 12, "quarter": 3, "month": 1}[unit]
        return start.replace(year=start.year + months // 12, month=months % 12 + 1)
    return start + timedelta(**{"weeks" if unit == "week" else f"{unit}s": 1})


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
            value = _fitting(value, target, op)
        except (ValueError, ArithmeticError):
            raise NotOrdered from None
    try:
        found = _fitting(value, kind, op)
    except (ValueError, ArithmeticError):
        raise NotOrdered from None
    if isinstance(found, _Day):
        return Comparison(path, found.op, found.value)
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


@dataclass(frozen=True, slots=True)
class _Day:
    """A date compared with a point in time, as a comparison with a date."""

    op: Operator
    value: date


def _fitting(value: object, kind: DataType, op: Operator) -> object:
    """A constant in the Python type that values of the column have; refuses where comparing would convert."""
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
    if name == "float64" and isinstance(value, int | float | Decimal):
        return float(value)
    if name == "varchar" and isinstance(value, str):
        return value
    if name == "uuid" and isinstance(value, str) and value == str(UUID(value)):
        return value
    if name == "blob" and isinstance(value, bytes):
        return value
    if name == "time" and isinstance(value, time | str):
        return value if isinstance(value, time) else time.fromisoformat(value)
    if name == "date":
        if isinstance(value, str):
            return date.fromisoformat(value)
        if isinstance(value, datetime):
            return _as_day(value, op)
        if isinstance(value, date):
            return value
    if name in _MOMENTS and isinstance(value, str | date):
        return _moment(value)
    if name == "timestamptz" and isinstance(value, datetime) and value.tzinfo is not None:
        return value
    raise NotOrdered


def _as_day(moment: datetime, op: Operator) -> _Day:
    """A date is compared with a point in time as its midnight."""
    if moment.tzinfo is not None:
        raise NotOrdered
    whole = moment.time() == time()
    match op:
        case "<" if not whole:
            op = "<="
        case ">=" if not whole:
            op = ">"
        case "=" | "!=" if not whole:
            raise NotOrdered
    return _Day(op, moment.date())
