"""Types that a column may be changed to: those that hold every value it has (spec: usage/schema_evolution)."""

from __future__ import annotations

from ducklake_lab.model.types import FLOATS, DataType

_SIGNED = ("int8", "int16", "int32", "int64", "int128")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64", "uint128")
#: Decimal digits that an integer type may need; a decimal has 38 at most.
_DIGITS = {
    "int8": 3,
    "uint8": 3,
    "int16": 5,
    "uint16": 5,
    "int32": 10,
    "uint32": 10,
    "int64": 19,
    "uint64": 20,
    "int128": 38,
    "uint128": 38,
}
_OTHERS = {
    "date": ("timestamp", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns"),
    "timestamp": ("timestamptz", "timestamp_ns"),
    "timestamp_s": ("timestamp", "timestamp_ms", "timestamp_ns"),
    "timestamp_ms": ("timestamp", "timestamp_ns"),
    "varchar": ("json",),
}
_MOST_DIGITS = 38


def is_wider(source: DataType, target: DataType) -> bool:
    """Returns whether every value of a type that is not nested is one of the other, which is another type."""
    old, new = source.name, target.name
    if old == new or source.is_nested or target.is_nested:
        return False
    if new in _OTHERS.get(old, ()):
        return True
    if old == "boolean":
        return new in _SIGNED or new in _UNSIGNED
    if old == "float32":
        return new == "float64"
    if new in FLOATS:
        return old in _DIGITS or source.decimal is not None
    if target.decimal is not None:
        return _fits_decimal(source, *target.decimal)
    if old in _SIGNED and new in _SIGNED:
        return _SIGNED.index(new) > _SIGNED.index(old)
    if old in _UNSIGNED and new in _UNSIGNED:
        return _UNSIGNED.index(new) > _UNSIGNED.index(old)
    return old in _UNSIGNED and new in _SIGNED and _SIGNED.index(new) > _UNSIGNED.index(old)


def keeps_bounds(source: DataType, target: DataType) -> bool:
    """Returns whether the text of a bound means the same value in a wider type, in which all readers compare it.

    The text of a FLOAT is the shortest one: `0.1` is another DOUBLE than the FLOAT is. A DECIMAL becomes a float by a
    division, which may round where the text does not.
    """
    return (
        source.name == target.name or target.name not in FLOATS or (source.name != "float32" and source.decimal is None)
    )


def _fits_decimal(source: DataType, precision: int, scale: int) -> bool:
    if source.decimal is not None:
        old_precision, old_scale = source.decimal
        return scale >= old_scale and precision >= min(old_precision - old_scale + scale, _MOST_DIGITS)
    digits = _DIGITS.get(source.name)
    return digits is not None and precision >= min(digits + scale, _MOST_DIGITS)
