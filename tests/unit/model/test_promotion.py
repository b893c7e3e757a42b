"""Types that widen to others: the pairs that the reference allows, each asked of it."""

from __future__ import annotations

import pytest

from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.types import DataType

_TYPES = (
    "boolean int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float32 float64 decimal(4,1) decimal(10,2) "
    "decimal(38,10) date time timestamp timestamptz timestamp_s timestamp_ms timestamp_ns varchar json blob uuid interval"
).split()

#: All but those to JSON, which the reference allows from everything, and which would not be JSON.
_WIDER = {
    "boolean": "int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128",
    "int8": "int16 int32 int64 int128 float32 float64 decimal(4,1) decimal(10,2) decimal(38,10)",
    "int16": "int32 int64 int128 float32 float64 decimal(10,2) decimal(38,10)",
    "int32": "int64 int128 float32 float64 decimal(38,10)",
    "int64": "int128 float32 float64 decimal(38,10)",
    "int128": "float32 float64 decimal(38,10)",
    "uint8": "int16 int32 int64 int128 uint16 uint32 uint64 uint128 float32 float64 decimal(4,1) decimal(10,2) "
    "decimal(38,10)",
    "uint16": "int32 int64 int128 uint32 uint64 uint128 float32 float64 decimal(10,2) decimal(38,10)",
    "uint32": "int64 int128 uint64 uint128 float32 float64 decimal(38,10)",
    "uint64": "int128 uint128 float32 float64 decimal(38,10)",
    "uint128": "float32 float64 decimal(38,10)",
    "float32": "float64",
    "decimal(4,1)": "float32 float64 decimal(10,2) decimal(38,10)",
    "decimal(10,2)": "float32 float64 decimal(38,10)",
    "decimal(38,10)": "float32 float64",
    "date": "timestamp timestamptz timestamp_s timestamp_ms timestamp_ns",
    "timestamp": "timestamptz timestamp_ns",
    "timestamp_s": "timestamp timestamp_ms timestamp_ns",
    "timestamp_ms": "timestamp timestamp_ns",
    "varchar": "json",
}


@pytest.mark.parametrize("source", _TYPES)
def test_a_type_widens_to_these(source: str) -> None:
    assert [target for target in _TYPES if is_wider(DataType(source), DataType(target))] == [
        target for target in _TYPES if target in _WIDER.get(source, "").split()
    ]
