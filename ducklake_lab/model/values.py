"""Values of statistics and partitions: text in the catalog, comparable Python values here.

`decode` gives values of one type that compare with each other and with a query's constants as DuckDB orders them.
It returns None for a text that cannot be trusted, and then nothing is pruned.
"""

from __future__ import annotations

import struct
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf

from ducklake_lab.model.moments import Moment, MomentKind, parsed
from ducklake_lab.model.types import FLOATS, DataType

#: Types of a decoded value.
Scalar = bool | int | float | Decimal | str | bytes | Moment
#: Kind of moment that values of a type are compared as.
MOMENTS: dict[str, MomentKind] = {
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamptz": "timestamptz",
}
#: Integers that files hold as DOUBLE, whose values are those of the nearest DOUBLE.
AS_DOUBLE = ("int128", "uint128")


def decode(text: str | None, data_type: DataType) -> Scalar | None:
    """The value of a statistic or partition value; None for NULL, unknown ones and infinite numbers."""
    if text is None:
        return None
    name = data_type.name
    try:
        if name == "boolean":
            return {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}.get(text.casefold())
        if name in FLOATS:
            return _exact(float(text), name)
        if name in AS_DOUBLE:
            return _exact(float(text), name)
        if data_type.is_numeric:
            number = Decimal(text)
            return number if number.is_finite() else None
        if name in MOMENTS:
            return parsed(text, MOMENTS[name])
        if name in ("varchar", "uuid"):
            return text
    except (ValueError, InvalidOperation, OverflowError):
        return None
    return None


def bound(text: str | None, data_type: DataType) -> Scalar | None:
    """The value of a bound as `decode` gives it, also where it is an infinite number."""
    if text is not None and data_type.name in FLOATS:
        try:
            number = float(text)
        except ValueError:
            return None
        if isinf(number):
            return Decimal(number)
    return decode(text, data_type)


def _exact(number: float, name: str) -> Decimal | None:
    """The number that the shortest text of a float stands for; None for NaN and infinities."""
    if name == "float32" and isfinite(number):
        number = struct.unpack("f", struct.pack("f", number))[0]
    return Decimal(number) if isfinite(number) else None


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
    if name in MOMENTS:
        return _as_kind(value, MOMENTS[name]) if isinstance(value, Moment) else None
    if name in ("varchar", "uuid"):
        return value if isinstance(value, str) else None
    return None


def _as_kind(value: Moment, kind: MomentKind) -> Moment | None:
    if value.kind == kind:
        return value
    # a day is its midnight; DuckDB knows days that have none
    is_point = value.kind == "date" and kind == "timestamp" and value.at(kind).is_known
    return value.at(kind) if is_point else None
