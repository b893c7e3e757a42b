"""Years, months, days or hours since 1970 in UTC, rounded down, as Iceberg counts them."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import ClassVar

from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.transforms.transform import Transform, may_lie_within, moment_of
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.model.values import Scalar

_EPOCH = datetime(1970, 1, 1)
#: Types whose values a datetime holds.
_COMPARED = ("date", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms")


@dataclass(frozen=True, slots=True)
class EpochCount(Transform):
    """A count since 1970.

    Attributes:
        unit: what is counted, as DuckDB's date_diff names it.
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
        if kind.name not in _COMPARED or not isinstance(constant, date) or re.fullmatch(r"-?\d{1,9}", key) is None:
            return True
        try:
            start, end = self._start(int(key)), self._start(int(key) + 1)
        except (ValueError, OverflowError):
            return True  # out of reach of Python's dates
        return may_lie_within(start, end, op, moment_of(constant))

    @abstractmethod
    def _start(self, count: int) -> datetime:
        """The first point in time with this count."""


@dataclass(frozen=True, slots=True)
class EpochYear(EpochCount):
    name = "epoch_year"
    unit = "year"

    def _start(self, count: int) -> datetime:
        return _EPOCH.replace(year=1970 + count)


@dataclass(frozen=True, slots=True)
class EpochMonth(EpochCount):
    name = "epoch_month"
    unit = "month"

    def _start(self, count: int) -> datetime:
        return _EPOCH.replace(year=1970 + count // 12, month=count % 12 + 1)


@dataclass(frozen=True, slots=True)
class EpochDay(EpochCount):
    name = "epoch_day"
    unit = "day"

    def _start(self, count: int) -> datetime:
        return _EPOCH + timedelta(days=count)


@dataclass(frozen=True, slots=True)
class EpochHour(EpochCount):
    name = "epoch_hour"
    unit = "hour"

    def can_apply(self, kind: DataType) -> bool:
        return kind.name in TIMESTAMPS

    def _start(self, count: int) -> datetime:
        return _EPOCH + timedelta(hours=count)
