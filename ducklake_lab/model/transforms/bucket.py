"""A bucket by the hash of the value (spec: advanced_features/partitioning)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.model.moments import DAY, SECOND, Moment
from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.transforms.murmur import bucket, hash_bytes, hash_integers, hash_texts
from ducklake_lab.model.transforms.transform import Transform
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.model.values import Scalar

#: Form in which a value is hashed: a 64-bit integer, except for the last three.
Hashed = Literal["long", "unscaled", "days", "time", "seconds", "millis", "micros", "nanos", "double", "bytes", "text"]

#: Types that are hashed neither as a 64-bit integer that they are, nor as text.
_HASHED: dict[str, Hashed] = {
    "float32": "double",
    "float64": "double",
    "blob": "bytes",
    "date": "days",
    "time": "time",
    "timestamp": "micros",
    "timestamptz": "micros",
    "timestamp_s": "seconds",
    "timestamp_ms": "millis",
    "timestamp_ns": "nanos",
}
_LONGS = ("boolean", "int8", "int16", "int32", "int64")
#: Digits of a decimal that fits into 64 bits.
_LONG_DIGITS = 18

_SQL: dict[Hashed, str] = {
    "long": "CAST({} AS BIGINT)",
    "days": "CAST({} - DATE '1970-01-01' AS BIGINT)",
    "time": "date_diff('microsecond', TIME '00:00:00', {})",
    "seconds": "epoch_us({}) // 1000000",
    # DuckDB 2.0.1 has no epoch_ms of TIMESTAMP_MS
    "millis": "epoch_us({}) // 1000",
    "micros": "epoch_us({})",
    "nanos": "epoch_ns({})",
    "double": "CAST({} AS DOUBLE)",
    "bytes": "{}",
    "text": "CAST({} AS VARCHAR)",
}
#: Microseconds of the counted units.
_MICROS: dict[Hashed, int] = {"days": DAY, "seconds": SECOND, "millis": 1_000, "micros": 1}
_LONG = range(-(2**63), 2**63)


def hashed_form(kind: DataType) -> Hashed:
    """Return the form in which values of a type are hashed, as the reference hashes them."""
    if kind.decimal is not None:
        return "unscaled" if kind.decimal[0] <= _LONG_DIGITS else "text"
    return "long" if kind.name in _LONGS else _HASHED.get(kind.name, "text")


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """One of `count` buckets, from 0.

    Attributes:
        count: 1 to `most`.
    """

    name = "bucket"
    arguments = 2
    depends_on_type = True
    most: ClassVar[int] = 2**31 - 1
    count: int

    def __str__(self) -> str:
        return f"bucket({self.count})"

    @classmethod
    def shape(cls) -> str:
        return "bucket(bucket_count, column)"

    def written(self, column: str) -> str:
        return f"bucket({self.count}, {column})"

    def can_apply(self, kind: DataType) -> bool:
        return True

    def result_type(self, kind: DataType) -> DataType:
        return DataType("int32")

    def sql(self, value: str, kind: DataType, time_zone: str) -> str:
        form = hashed_form(kind)
        if form == "unscaled" and kind.decimal is not None:
            scale = kind.decimal[1]
            return f"CAST(CAST({value} AS DECIMAL(38,{scale})) * {10**scale} AS BIGINT)"
        return _SQL[form].format(value)

    def keys(self, values: pa.ChunkedArray) -> list[str | None]:
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            filled = pc.fill_null(values, 0).to_numpy()
            if pa.types.is_floating(values.type):
                filled = (filled.astype(np.float64) + 0.0).view(np.int64)  # no negative zero
            hashed: list[int | None] = [int(value) for value in hash_integers(filled)]
            nulls = values.is_null().to_pylist()
            hashed = [None if null else value for null, value in zip(nulls, hashed, strict=True)]
        else:
            hashed = hash_texts(values.to_pylist())
        return [None if value is None else str(bucket(value, self.count)) for value in hashed]

    def key_of(self, value: Scalar, kind: DataType) -> str | None:
        form = hashed_form(kind)
        hashed: int | str
        if kind.name in INTEGERS and isinstance(value, Decimal) and value == int(value) and int(value) in _LONG:
            hashed = int(value) if form == "long" else str(int(value))
        elif kind.name in ("varchar", "uuid") and isinstance(value, str):
            hashed = value
        elif form in _MICROS and kind.name != "timestamptz" and isinstance(value, Moment) and value.is_finite:
            hashed = value.micros // _MICROS[form]
        else:
            return None
        if isinstance(hashed, str):
            return str(bucket(hash_bytes(hashed.encode("utf-8", "surrogatepass")), self.count))
        return str(bucket(int(hash_integers(np.array([hashed], np.int64))[0]), self.count))

    def may_compare(self, key: str, kind: DataType, op: Operator, constant: Scalar) -> bool:
        return op != "=" or self.key_of(constant, kind) in (None, key)
