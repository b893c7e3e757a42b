"""Values of statistics and partitions: text in the catalog, comparable Python values here.

`decode` gives values of one type that compare with each other and with a query's constants as DuckDB orders them.
It gives None where the text cannot be trusted to say more than nothing, and then nothing is pruned.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from math import isfinite

from ducklake_lab.model.types import FLOATS, DataType

#: What a decoded value may be.
Scalar = bool | int | float | Decimal | str | bytes | date | datetime | time


def decode(text: str | None, data_type: DataType) -> Scalar | None:
    """The value of a statistic or partition value; None for NULL, unknown or infinite ones."""
    if text is None:
        return None
    name = data_type.name
    try:
        if name == "boolean":
            return {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}.get(text.casefold())
        if name in FLOATS:
            return _exact(float(text), name)
        if data_type.is_numeric:
            number = Decimal(text)
            return number if number.is_finite() else None
        if name == "date":
            return date.fromisoformat(text)
        if name == "time":
            return time.fromisoformat(text)
        if name == "timestamptz":
            aware = datetime.fromisoformat(_full_offset(text))
            return aware.astimezone(UTC) if aware.tzinfo is not None else None
        if name in ("timestamp", "timestamp_s", "timestamp_ms"):
            naive = datetime.fromisoformat(text)
            return naive if naive.tzinfo is None else None
        if name in ("varchar", "uuid"):
            return text
    except (ValueError, InvalidOperation, OverflowError):
        return None  # e.g. infinity, or a year that Python's dates do not reach
    return None


def _exact(number: float, name: str) -> Decimal | None:
    """The number that the shortest text of a float stands for; None for NaN and infinities."""
    if name == "float32" and isfinite(number):
        number = struct.unpack("f", struct.pack("f", number))[0]
    return Decimal(number) if isfinite(number) else None


def _full_offset(text: str) -> str:
    return text + ":00" if len(text) > 3 and text[-3] in "+-" else text


def comparable(value: object, data_type: DataType) -> Scalar | None:
    """A query's constant in the form that `decode` gives for the type; None where the two do not compare."""
    name = data_type.name
    if name == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if data_type.is_numeric:
        if isinstance(value, float):
            value = Decimal(value) if isfinite(value) else None
        if isinstance(value, int | Decimal):
            # engines differ in whether a FLOAT is compared with 0.1 as a FLOAT or as a DOUBLE
            return None if name == "float32" and value != int(value) else Decimal(value)
        return None
    if name == "date":
        if isinstance(value, datetime):
            return None
        return value if isinstance(value, date) else _parsed(value, data_type)
    if name in ("timestamp", "timestamp_s", "timestamp_ms"):
        if isinstance(value, datetime):
            return value if value.tzinfo is None else None
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day)
        return _parsed(value, data_type)
    if name == "timestamptz":
        return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else None
    if name == "time":
        return value if isinstance(value, time) else None
    if name in ("varchar", "uuid"):
        return value if isinstance(value, str) else None
    return None


def _parsed(value: object, data_type: DataType) -> Scalar | None:
    return decode(value, data_type) if isinstance(value, str) else None
