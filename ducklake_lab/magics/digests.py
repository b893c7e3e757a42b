"""Digests of a notebook's variables, made without a call of their own code: no `__eq__`, `__hash__` or `__repr__` of a user runs."""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

#: Most values of a list, and longest text, bytes or bits of a number, that are compared.
_MOST, _LONGEST = 1000, 1 << 20
#: Classes of rows, by their module's first name. They are compared by identity.
_FRAMES = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "LazyFrame"),
    "pyspark": ("DataFrame",),
    "pyarrow": ("Table", "RecordBatch"),
    "ducklake_lab": ("Result",),
}
_NUMPY_KINDS = frozenset("biufSUMm")


@dataclass(frozen=True, slots=True)
class Digest:
    """A value that is compared by its type and a digest; equal digests mean equal values."""

    kind: str
    key: Hashable


class Same:
    """An object that is compared by identity. It is not kept alive, and no later object takes its place."""

    def __init__(self, value: object) -> None:
        self._ref = weakref.ref(value)

    def __eq__(self, other: object) -> bool:
        own = self._ref()
        return isinstance(other, Same) and own is not None and own is other._ref()

    def __hash__(self) -> int:
        return 0  # equal ones have different references


def digest(value: object) -> Digest | None:
    """Returns the digest of a value; None where it cannot be compared."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return _of_many(value, kind.__name__)
    make = _SCALARS.get(kind)
    if make is not None:
        key = make(value)
        return Digest(kind.__name__, key) if key is not None else None
    return _of_library(value, kind)


def _of_many(values: object, name: str) -> Digest | None:
    assert isinstance(values, list | tuple | set | frozenset)
    if len(values) > _MOST:
        return None
    digests = [digest(value) if type(value) in _SCALARS else None for value in values]
    keys = [(one.kind, str(one.key)) for one in digests if one is not None]
    if len(keys) < len(digests):
        return None
    return Digest(name, tuple(keys if isinstance(values, list | tuple) else sorted(keys)))


def _of_library(value: object, kind: type) -> Digest | None:
    module = _package(kind)
    if module == "numpy":
        import numpy as np

        # a class of the user's may have any name, and methods of its own
        if (
            any(kind is known for known in np.sctypeDict.values())
            and isinstance(value, np.generic)
            and value.dtype.kind in _NUMPY_KINDS
        ):
            return Digest(str(value.dtype), _hashed(value.tobytes()))
        return None
    if module == "pandas" and kind is getattr(sys.modules.get("pandas"), "Timestamp", None):
        return Digest("Timestamp", str(value)) if getattr(value, "tzinfo", "") is None else None
    for parent in kind.__mro__:
        names = _FRAMES.get(_package(parent), ())
        if parent.__name__ in names:
            try:
                return Digest(parent.__name__, Same(value))
            except TypeError:
                return None
    return None


def _package(kind: type) -> str:
    module = kind.__module__
    return module.partition(".")[0] if type(module) is str else ""


def _hashed(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _bytes(value: bytes) -> str | None:
    return _hashed(value) if len(value) <= _LONGEST else None


def _text(value: str) -> str | None:
    return _hashed(value.encode(errors="surrogatepass")) if len(value) <= _LONGEST else None


def _integer(value: int) -> str | None:
    return hex(value) if value.bit_length() <= _LONGEST else None


def _moment(value: datetime | time) -> str | None:
    """Returns the text of a point in time, if its zone is one of Python's own."""
    zone = value.tzinfo
    if zone is None:
        named = ""
    elif type(zone) is timezone:
        named = str(zone)
    elif type(zone) is ZoneInfo and zone.key is not None:
        named = zone.key
    else:
        return None
    return f"{value.replace(tzinfo=None).isoformat()} {value.fold} {named}"


#: What makes the key of a value of exactly this type.
_SCALARS: dict[type, Callable[..., Hashable]] = {
    type(None): lambda _: "",
    bool: bool,
    int: _integer,
    float: float.hex,
    complex: lambda _: None,
    Decimal: lambda value: value.as_tuple(),
    str: _text,
    bytes: _bytes,
    date: date.isoformat,
    datetime: _moment,
    time: _moment,
    timedelta: lambda value: (value.days, value.seconds, value.microseconds),
    UUID: lambda value: value.int if type(value.int) is int else None,
}
