"""Parts of a date or a time: the year, the month of the year, the day of the month, the hour of the day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.transforms.transform import Transform, may_lie_within, moment_of
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.model.values import Scalar

#: Types whose parts do not depend on a time zone.
_WITHOUT_ZONE = ("date", "timestamp", "timestamp_s", "timestamp_ms")


@dataclass(frozen=True, slots=True)
class CalendarPart(Transform):
    """A part by the name of DuckDB's and Spark's function for it."""

    null_for_null = False

    def can_apply(self, kind: DataType) -> bool:
        return kind.name == "date" or kind.name in TIMESTAMPS

    def sql(self, value: str, kind: DataType, time_zone: str) -> str:
        if kind.name == "timestamptz":
            value = f"timezone('{time_zone}', {value})"
        return f"CAST({self.name}({value}) AS VARCHAR)"

    def may_compare(self, key: str, kind: DataType, op: Operator, constant: Scalar) -> bool:
        return may_compare({self.name: key}, kind, op, constant)


@dataclass(frozen=True, slots=True)
class Year(CalendarPart):
    name = "year"


@dataclass(frozen=True, slots=True)
class Month(CalendarPart):
    name = "month"


@dataclass(frozen=True, slots=True)
class Day(CalendarPart):
    name = "day"


@dataclass(frozen=True, slots=True)
class Hour(CalendarPart):
    name = "hour"

    def can_apply(self, kind: DataType) -> bool:
        return kind.name in TIMESTAMPS


#: Coarse to fine.
_PARTS = (Year.name, Month.name, Day.name, Hour.name)


def may_compare(keys: Mapping[str, str | None], kind: DataType, op: Operator, constant: Scalar) -> bool:
    """Whether a row may compare so with a constant, by all keys of its column, by transform.

    A month prunes a range only together with its year, and a day with both.
    """
    if kind.name not in _WITHOUT_ZONE or not isinstance(constant, date):
        return True
    moment = moment_of(constant)
    parts = {part: int(text) for part in _PARTS if (text := keys.get(part)) is not None and _is_number(text)}
    if op == "=" and any(getattr(moment, part) != number for part, number in parts.items()):
        return False
    known = [parts[part] for part in _PARTS if part in parts]
    if not known or [part for part in _PARTS if part in parts] != list(_PARTS[: len(known)]):
        return True
    try:
        start = datetime(*(*known, 1, 1)[: max(3, len(known))])  # type: ignore[arg-type]
        end = _after(start, len(known))
    except (ValueError, OverflowError):
        return True  # out of reach of Python's dates
    return may_lie_within(start, end, op, moment)


def _after(start: datetime, parts: int) -> datetime:
    if parts == 1:
        return start.replace(year=start.year + 1)
    if parts == 2:
        return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return start + (timedelta(days=1) if parts == 3 else timedelta(hours=1))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,9}", text) is not None
