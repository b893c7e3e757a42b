"""Partition transforms, one class each (spec: ducklake_partition_column)."""

from __future__ import annotations

import re
from functools import lru_cache

from ducklake_lab.model.transforms.bucket import Bucket
from ducklake_lab.model.transforms.calendar import CalendarPart, Day, Hour, Month, Year
from ducklake_lab.model.transforms.epoch import EpochCount, EpochDay, EpochHour, EpochMonth, EpochYear
from ducklake_lab.model.transforms.identity import Identity
from ducklake_lab.model.transforms.transform import Transform, Unknown

__all__ = [
    "IN_SPARK",
    "TRANSFORMS",
    "Bucket",
    "CalendarPart",
    "EpochCount",
    "Identity",
    "Transform",
    "Unknown",
    "parse_transform",
]

_WITHOUT_ARGUMENT = (Identity, Year, Month, Day, Hour, EpochYear, EpochMonth, EpochDay, EpochHour)

#: Every transform there is, by name.
TRANSFORMS: dict[str, type[Transform]] = {kind.name: kind for kind in (*_WITHOUT_ARGUMENT, Bucket)}

#: Spark's transforms of times, as the calendar parts that divide rows alike.
IN_SPARK = {
    "years": ("year",),
    "months": ("year", "month"),
    "days": ("year", "month", "day"),
    "hours": ("year", "month", "day", "hour"),
}


@lru_cache(maxsize=256)
def parse_transform(text: str) -> Transform:
    """The transform of `ducklake_partition_column.transform`; `Unknown` for a text that means none."""
    for kind in _WITHOUT_ARGUMENT:
        if kind.name == text:
            return kind()
    match = re.fullmatch(r"bucket\((\d{1,10})\)", text)
    if match is not None and 1 <= int(match[1]) <= Bucket.most:
        return Bucket(int(match[1]))
    return Unknown(text)
