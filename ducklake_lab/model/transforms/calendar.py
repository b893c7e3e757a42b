"""Parts of a date or a time: the year, the month of the year, the day of the month, the hour of the day."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ducklake_lab.model.moments import DAY, Moment, civil, days_since_1970
from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.transforms.transform import Transform, may_lie_within
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.model.values import Scalar

_HOUR = DAY // 24
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
    """Returns whether a row may compare so with a constant, by all keys of its column, by transform.

    A month prunes a range only together with its year, and a day with both.
    """
    if kind.name not in _WITHOUT_ZONE or not isinstance(constant, Moment):
        return True
    if op == "=" and constant.is_finite:
        own = _parts_of(constant.micros)
        if any(own[part] != number for part, number in _numbers(keys).items()):
            return False
    found = interval(keys, kind)
    return found is None or may_lie_within(*found, op, constant.micros)


def interval(keys: Mapping[str, str | None], kind: DataType) -> tuple[int, int] | None:
    """Returns the interval of the values with these keys of a column, by transform: its first microsecond, and the first after it.

    None where they are no interval, as a month of any year. Values with a time zone are within it in each zone.
    """
    parts = _numbers(keys)
    known_parts = [parts[part] for part in _PARTS if part in parts]
    if not known_parts or [part for part in _PARTS if part in parts] != list(_PARTS[: len(known_parts)]):
        return None
    around = 0 if kind.name in _WITHOUT_ZONE else DAY
    return _start(known_parts) - around, _start([*known_parts[:-1], known_parts[-1] + 1]) + around


def _numbers(keys: Mapping[str, str | None]) -> dict[str, int]:
    """Returns the calendar parts that are known."""
    return {part: int(text) for part in _PARTS if (text := keys.get(part)) is not None and _is_number(text)}


def _parts_of(micros: int) -> dict[str, int]:
    days, rest = divmod(micros, DAY)
    return dict(zip(_PARTS, (*civil(days), rest // _HOUR), strict=True))


def _start(parts: Sequence[int]) -> int:
    """The first microsecond with these parts, coarse to fine; a part that is one too large is the next one."""
    year, month, day, hour = (*parts, *(1, 1, 0)[len(parts) - 1 :])
    days = days_since_1970(year + (month - 1) // 12, (month - 1) % 12 + 1, 1) + day - 1
    return days * DAY + hour * _HOUR


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,9}", text) is not None
