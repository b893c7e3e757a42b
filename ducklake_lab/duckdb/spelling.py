"""DuckDB's texts of plain values without a query, which takes a millisecond; DuckDB spells all others."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.model.types import INTEGERS, DataType

_MICROSECONDS = 86_400_000_000
#: The first and the last day of the years 1 to 9999, which Python knows, as days since 1970.
_DAYS = (date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days
_INSTANTS = _DAYS[0] * _MICROSECONDS, (_DAYS[1] + 1) * _MICROSECONDS - 1


def _clock(value: datetime | time) -> str:
    """A time without a zone; zeros at the end of its fraction are left out."""
    text = value.replace(tzinfo=None).isoformat(*(" ",) * isinstance(value, datetime))
    return text.rstrip("0") if value.microsecond else text


def _double(value: float) -> str:
    """Spell a double; DuckDB writes the sign of NaN, too."""
    return "-nan" if math.isnan(value) and math.copysign(1, value) < 0 else repr(value)


#: Function that spells a Python value, and the least and the greatest number in Arrow; None for any.
_Spelling = tuple[Callable[[Any], str], tuple[int, int] | None]
_SPELLED: dict[str, _Spelling] = {
    "varchar": (str, None),
    "boolean": (lambda value: "true" if value else "false", None),
    "float64": (_double, None),
    "date": (date.isoformat, _DAYS),
    "time": (_clock, (0, _MICROSECONDS - 1)),
    "timestamp": (_clock, _INSTANTS),
    "timestamptz": (lambda value: f"{_clock(value)}+00", _INSTANTS),
    **{name: (str, None) for name in INTEGERS if not name.endswith("128")},
}
_EPOCH = datetime(1970, 1, 1)
#: The Python values of the numbers as which Arrow carries days and times.
_OF_NUMBER: dict[str, Callable[[int], Any]] = {
    "date": lambda days: date.fromordinal(_EPOCH.toordinal() + days),
    "time": lambda micros: (_EPOCH + timedelta(microseconds=micros)).time(),
    "timestamp": lambda micros: _EPOCH + timedelta(microseconds=micros),
    "timestamptz": lambda micros: _EPOCH + timedelta(microseconds=micros),
}
#: Values up to which Python finds the extremes sooner than Arrow.
_FEW = 64
_DECIMAL: _Spelling = (lambda value: format(value, "f"), None)


def spelled(values: pa.Array | pa.ChunkedArray, data_type: DataType) -> list[str | None] | None:
    """The values' texts as DuckDB casts them in UTC, None for NULL; None in all where a query has to say.

    Args:
        values: in the form in which Arrow carries the type.
    """
    spelling = _of_type(data_type)
    if spelling is None or values.type != data_type.arrow():
        return None
    spell, reach = spelling
    if reach is not None and not _are_within(values, reach):
        return None
    return [None if value is None else spell(value) for value in values.to_pylist()]


def spelled_extremes(values: pa.ChunkedArray, data_type: DataType) -> tuple[str | None, str | None] | None:
    """The texts of the least and the greatest value, as `spelled`; None for them where all values are NULL."""
    spelling = _of_type(data_type)
    if spelling is None:
        return None
    if len(values) <= _FEW and values.type == data_type.arrow():
        return _of_few(values, data_type, spelling)
    if data_type.name == "float64" and not _are_ordered(values):
        return None
    ends = pc.min_max(values)
    texts = spelled(pa.array([ends["min"], ends["max"]], values.type), data_type)
    return None if texts is None else (texts[0], texts[1])


def _of_few(values: pa.ChunkedArray, data_type: DataType, spelling: _Spelling) -> tuple[str | None, str | None] | None:
    """`spelled_extremes` by Python, which orders all values of these types as DuckDB does, except for NaN and zeros."""
    spell, reach = spelling
    numbers = values if reach is None else values.cast(_width(values.type))
    present = [value for value in numbers.to_pylist() if value is not None]
    if not present:
        return None, None
    if data_type.name == "float64" and any(math.isnan(value) or value == 0 for value in present):
        return None
    low, high = min(present), max(present)
    if reach is None:
        return spell(low), spell(high)
    if low < reach[0] or reach[1] < high:
        return None
    of_number = _OF_NUMBER[data_type.name]
    return spell(of_number(low)), spell(of_number(high))


def _width(kind: pa.DataType) -> pa.DataType:
    """The integers that carry days or times."""
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _of_type(data_type: DataType) -> _Spelling | None:
    return _DECIMAL if data_type.decimal is not None else _SPELLED.get(data_type.name)


def _are_within(values: pa.Array | pa.ChunkedArray, reach: tuple[int, int]) -> bool:
    ends = pc.min_max(values.cast(_width(values.type)))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (reach[0] <= low and high <= reach[1])


def _are_ordered(values: pa.ChunkedArray) -> bool:
    """Returns whether Arrow orders doubles as DuckDB does: there is no NaN, and not both zeros."""
    return not pc.any(pc.or_(pc.is_nan(values), pc.equal(values, 0.0))).as_py()
