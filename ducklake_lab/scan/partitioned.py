"""What the partition values of a data file say of its rows (spec: ducklake_file_partition_value)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from ducklake_lab.model.entries import Column, PartitionSpec
from ducklake_lab.model.files import DataFile
from ducklake_lab.model.murmur import bucket, hash_bytes, hash_integers
from ducklake_lab.model.predicates import Comparison, InList, NullTest, StartsWith
from ducklake_lab.model.types import FLOATS, INTEGERS
from ducklake_lab.model.values import Scalar, comparable, decode

#: By column id: its transforms, and for each the value that all rows of a file have.
Keys = Mapping[int, Mapping[str, str | None]]

#: Parts of a point in time, coarse to fine; each is a transform.
_PARTS = ("year", "month", "day", "hour")
#: Types whose parts do not depend on a time zone.
_DATED = ("date", "timestamp", "timestamp_s", "timestamp_ms")
#: Microseconds of what is counted when they are hashed; integers that are hashed as such, not as text.
_UNITS = {"date": 86_400_000_000, "timestamp": 1, "timestamp_s": 1_000_000, "timestamp_ms": 1_000}
_SIGNED = ("int8", "int16", "int32", "int64")
_EPOCH = datetime(1970, 1, 1)
_LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition keys of a table.

    Attributes:
        specs: all that it ever had, by partition id.
        since: the snapshot since which a column has its type, by column id. By another type a value may have been
            hashed to another bucket.
    """

    specs: Mapping[int, PartitionSpec]
    since: Mapping[int, int]

    def keys_of(self, file: DataFile) -> Keys:
        """The partition values of a file; {} where it has none, or not as many as there were keys."""
        spec = self.specs.get(file.partition_id) if file.partition_id is not None else None
        if spec is None or len(spec.fields) != len(file.partition_values):
            return {}
        found: dict[int, dict[str, str | None]] = {}
        for field, value in zip(spec.fields, file.partition_values, strict=True):
            known = self.since.get(field.column_id)
            if buckets_in(field.transform) is None or (known is not None and file.begin_snapshot >= known):
                found.setdefault(field.column_id, {})[field.transform] = value
        return found


#: Of tables that have none.
UNPARTITIONED = Partitioning({}, {})


def may_hold(
    column: Column, transforms: Mapping[str, str | None], predicate: Comparison | InList | NullTest | StartsWith
) -> bool:
    """Whether a file may hold a row for which the predicate, on this column, is true."""
    for transform, text in transforms.items():
        # of a date that is infinite the parts are NULL too
        tells_nulls = transform == "identity" or buckets_in(transform) is not None
        if isinstance(predicate, NullTest):
            if (text is not None) if predicate.is_null else (text is None and tells_nulls):
                return False
        elif text is None and tells_nulls:
            return False
    if isinstance(predicate, NullTest):
        return True
    if isinstance(predicate, StartsWith):
        value = transforms.get("identity")
        return value is None or column.type != "varchar" or value.startswith(predicate.prefix)
    op = predicate.op if isinstance(predicate, Comparison) else "="
    values = (predicate.value,) if isinstance(predicate, Comparison) else predicate.values
    return any(_may_be(column, transforms, op, value) for value in values)


def _may_be(column: Column, transforms: Mapping[str, str | None], op: str, constant: object) -> bool:
    value = comparable(constant, column.data_type)
    if value is None:
        return True
    for transform, text in transforms.items():
        if text is None:
            continue
        count = buckets_in(transform)
        if count is not None:
            if op == "=" and bucket_of(column, value, count) not in (None, text):
                return False
        elif transform == "identity" and column.type not in FLOATS:
            known = decode(text, column.data_type)
            if known is not None and not _COMPARISONS[op](known, value):
                return False
    return column.type not in _DATED or not isinstance(value, date) or _may_be_in(transforms, op, value)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _may_be_in(transforms: Mapping[str, str | None], op: str, value: date) -> bool:
    """Whether a point in time with these parts may compare so."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    parts = {part: int(text) for part in _PARTS if (text := transforms.get(part)) is not None and _is_number(text)}
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
    match op:
        case "<":
            return start < moment
        case "<=":
            return start <= moment
        case ">" | ">=":
            return moment < end
    return True


def _after(start: datetime, parts: int) -> datetime:
    if parts == 1:
        return start.replace(year=start.year + 1)
    if parts == 2:
        return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return start + (timedelta(days=1) if parts == 3 else timedelta(hours=1))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,9}", text) is not None


def buckets_in(transform: str) -> int | None:
    """The N of `bucket(N)`; None for other transforms."""
    match = re.fullmatch(r"bucket\((\d+)\)", transform)
    return int(match[1]) if match and int(match[1]) else None


def bucket_of(column: Column, value: Scalar, count: int) -> str | None:
    """The bucket in which rows of a value are; None where that is not known."""
    name = column.type
    if name in INTEGERS and isinstance(value, Decimal) and value == int(value) and int(value) in _LONG:
        number = int(value)
        hashed = _hash_integer(number) if name in _SIGNED else hash_bytes(str(number).encode())
    elif name in ("varchar", "uuid") and isinstance(value, str):
        hashed = hash_bytes(value.encode("utf-8", "surrogatepass"))
    elif name in _UNITS and isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        hashed = _hash_integer((moment - _EPOCH) // timedelta(microseconds=_UNITS[name]))
    else:
        return None
    return str(bucket(hashed, count))


def _hash_integer(number: int) -> int:
    return int(hash_integers(np.array([number], np.int64))[0])
