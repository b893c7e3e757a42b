"""Years, months, days or hours since 1970 in UTC, rounded down, as Iceberg counts them."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ducklake_lab.model.moments import DAY, Moment, days_since_1970
from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.transforms.transform import Transform, may_lie_within
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.model.values import Scalar

#: Types whose values are compared as moments.
_COMPARED = ("date", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms")


@dataclass(frozen=True, slots=True)
class EpochCount(Transform):
    """A count since 1970.

    Attributes:
        unit: the counted unit, as DuckDB's date_diff names it.
    """

    since = "1.1"
    null_for_null = False
    unit: ClassVar[str]

    def can_apply(self, kind: DataType) -> bool:
        return kind.name == "date" or kind.name in TIMESTAMPS

    def sql(self, value: str, kind: DataType, time_zone: str) -> str:
        if kind.name == "timestamptz":
            value = f"timezone('UTC', {value})"
        elif kind.name == "timestamp_ns":
            # a cast to microseconds would round to the nearest
            rest = f"((epoch_ns({value}) % 1000) + 1000) % 1000"
            value = f"CASE WHEN isfinite({value}) THEN make_timestamp((epoch_ns({value}) - {rest}) // 1000) END"
        return f"CAST(date_diff('{self.unit}', DATE '1970-01-01', {value}) AS VARCHAR)"

    def may_compare(self, key: str, kind: DataType, op: Operator, constant: Scalar) -> bool:
        found = self.interval(key)
        if kind.name not in _COMPARED or not isinstance(constant, Moment) or found is None:
            return True
        return may_lie_within(*found, op, constant.micros)

    def interval(self, key: str) -> tuple[int, int] | None:
        """Returns the interval of the values with a key: its first microsecond, and the first after it; None if it is no key."""
        if re.fullmatch(r"-?\d{1,9}", key) is None:
            return None
        return self._start(int(key)), self._start(int(key) + 1)

    @abstractmethod
    def _start(self, count: int) -> int:
        """The first microsecond with this count."""


@dataclass(frozen=True, slots=True)
class EpochYear(EpochCount):
    name = "epoch_year"
    unit = "year"

    def _start(self, count: int) -> int:
        return days_since_1970(1970 + count, 1, 1) * DAY


@dataclass(frozen=True, slots=True)
class EpochMonth(EpochCount):
    name = "epoch_month"
    unit = "month"

    def _start(self, count: int) -> int:
        return days_since_1970(1970 + count // 12, count % 12 + 1, 1) * DAY


@dataclass(frozen=True, slots=True)
class EpochDay(EpochCount):
    name = "epoch_day"
    unit = "day"

    def _start(self, count: int) -> int:
        return count * DAY


@dataclass(frozen=True, slots=True)
class EpochHour(EpochCount):
    name = "epoch_hour"
    unit = "hour"

    def can_apply(self, kind: DataType) -> bool:
        return kind.name in TIMESTAMPS

    def _start(self, count: int) -> int:
        return count * (DAY // 24)
