"""DuckLake's data types (spec: data_types), with no engine's types but Arrow's.

A type is its spec name plus, for the three nested ones, named children: a struct's fields, a list's
single `element`, a map's `key` and `value`. That is how `ducklake_column` stores them.

Arrow carries values of every type without loss, of some in the form of another type: UUIDs, JSON, 128-bit unsigned
integers and times with a zone as text, geometries as WKB, variants as the bytes of Parquet's variant (its metadata,
then its value) or what duckdb/variants.py makes of a value that those cannot hold. A field that `DataType.field` makes
says in its metadata which type it carries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quoted_if_needed

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")

#: spec name -> (DuckDB SQL name, Arrow type)
_PRIMITIVES: dict[str, tuple[str, pa.DataType]] = {
    "boolean": ("BOOLEAN", pa.bool_()),
    "int8": ("TINYINT", pa.int8()),
    "int16": ("SMALLINT", pa.int16()),
    "int32": ("INTEGER", pa.int32()),
    "int64": ("BIGINT", pa.int64()),
    "uint8": ("UTINYINT", pa.uint8()),
    "uint16": ("USMALLINT", pa.uint16()),
    "uint32": ("UINTEGER", pa.uint32()),
    "uint64": ("UBIGINT", pa.uint64()),
    "float32": ("FLOAT", pa.float32()),
    "float64": ("DOUBLE", pa.float64()),
    "date": ("DATE", pa.date32()),
    "time": ("TIME", pa.time64("us")),
    "timestamp": ("TIMESTAMP", pa.timestamp("us")),
    "timestamptz": ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", tz="UTC")),
    "timestamp_s": ("TIMESTAMP_S", pa.timestamp("s")),
    "timestamp_ms": ("TIMESTAMP_MS", pa.timestamp("ms")),
    "timestamp_ns": ("TIMESTAMP_NS", pa.timestamp("ns")),
    "varchar": ("VARCHAR", pa.string()),
    "json": ("JSON", pa.string()),
    "blob": ("BLOB", pa.binary()),
    "uuid": ("UUID", pa.string()),
    # a decimal's buffer holds all 128 bits, though its precision speaks of 38 digits
    "int128": ("HUGEINT", pa.decimal128(38, 0)),
    "uint128": ("UHUGEINT", pa.string()),
    "timetz": ("TIME WITH TIME ZONE", pa.string()),
    "interval": ("INTERVAL", pa.month_day_nano_interval()),
    "variant": ("VARIANT", pa.binary()),
    "geometry": ("GEOMETRY", pa.binary()),
    # of which NULL is the only value; DuckDB itself shows it as INTEGER
    "null": ('"NULL"', pa.int32()),
}
#: Types whose Arrow form is that of another type.
_DISGUISED = ("json", "uuid", "int128", "uint128", "timetz", "variant", "geometry", "null")
_TYPE_KEY = b"ducklake:type"

NESTED = ("struct", "list", "map")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int128", "uint128")
FLOATS = ("float32", "float64")
NUMBERS = INTEGERS + FLOATS
TIMESTAMPS = ("timestamp", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns")


@dataclass(frozen=True, slots=True)
class DataType:
    """A DuckLake type.

    Attributes:
        name: the spelling of `ducklake_column.column_type`, e.g. `int32`, `decimal(10,2)`, `struct`.
        children: (name, type) of a nested type's parts, in order; empty for the others.
    """

    name: str
    children: tuple[tuple[str, DataType], ...] = ()

    def __deepcopy__(self, memo: object) -> DataType:
        """Itself, which cannot change: copies of syntax trees hold one for each node."""
        return self

    @property
    def is_nested(self) -> bool:
        return self.name in NESTED

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else None."""
        return _decimal(self.name)

    @property
    def is_numeric(self) -> bool:
        return self.name in NUMBERS or self.decimal is not None

    def sql(self) -> str:
        """The type as DuckDB SQL spells it, e.g. `STRUCT(a INTEGER, b VARCHAR[])`."""
        if self.name in _PRIMITIVES:
            return _PRIMITIVES[self.name][0]
        if self.name == "struct":
            fields = ", ".join(f"{quoted_if_needed(name)} {child.sql()}" for name, child in self.children)
            return f"STRUCT({fields})"
        if self.name == "list":
            return f"{self.children[0][1].sql()}[]"
        if self.name == "map":
            return f"MAP({self.children[0][1].sql()}, {self.children[1][1].sql()})"
        if self.decimal is not None:
            return "DECIMAL({}, {})".format(*self.decimal).replace(", ", ",")
        return self.name.upper()

    def arrow(self) -> pa.DataType:
        """The Arrow type that carries values of this type.

        Raises:
            UnsupportedFeatureError: the type has no Arrow form here.
        """
        if self.name in _PRIMITIVES:
            return _PRIMITIVES[self.name][1]
        if self.name == "struct":
            return pa.struct([pa.field(name, child.arrow()) for name, child in self.children])
        if self.name == "list":
            return pa.list_(pa.field("element", self.children[0][1].arrow()))
        if self.name == "map":
            return pa.map_(self.children[0][1].arrow(), self.children[1][1].arrow())
        if self.decimal is not None:
            return pa.decimal128(*self.decimal)
        raise UnsupportedFeatureError(f"Values of type {self.sql()} are not supported yet.")

    def field(self, name: str) -> pa.Field:
        """An Arrow field that carries values of this type and says so; see `from_field`.

        Raises:
            UnsupportedFeatureError: the type has no Arrow form here.
        """
        disguised = any(part.name in _DISGUISED for part in self.walk())
        return pa.field(name, self.arrow(), metadata={_TYPE_KEY: self._to_json().encode()} if disguised else None)

    def _to_json(self) -> str:
        return json.dumps(_tree(self))

    def walk(self) -> Iterator[DataType]:
        """This type and all below it, parents first."""
        yield self
        for _, child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        return self.sql()


@lru_cache(maxsize=1024)
def _decimal(name: str) -> tuple[int, int] | None:
    match = _DECIMAL.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


@lru_cache(maxsize=1024)
def flat(name: str) -> DataType:
    """The type of that name, which has no parts."""
    return DataType(name)


def is_primitive(name: str) -> bool:
    """Whether a name is that of a type without parts; decimals are not counted."""
    return name in _PRIMITIVES


def _tree(data_type: DataType) -> list[object]:
    return [data_type.name, *([name, _tree(child)] for name, child in data_type.children)]


def _of_tree(tree: list[Any]) -> DataType:
    return DataType(tree[0], tuple((name, _of_tree(child)) for name, child in tree[1:]))


def is_marked(field: pa.Field) -> bool:
    """Whether a field says that it carries values of another type than Arrow's."""
    return _TYPE_KEY in (field.metadata or {})


def from_field(field: pa.Field) -> DataType:
    """The DuckLake type for a column of an Arrow table: the one that `DataType.field` made it for, if it did.

    Raises:
        UnsupportedFeatureError: no DuckLake type holds every value of it.
    """
    marked = (field.metadata or {}).get(_TYPE_KEY)
    if marked is not None:
        found = _of_tree(json.loads(marked))
        if found.arrow() == field.type:
            return found
    return from_arrow(field.type)


def from_arrow(arrow: pa.DataType) -> DataType:
    """The DuckLake type for a column of an Arrow table.

    Raises:
        UnsupportedFeatureError: no DuckLake type holds every value of it.
    """
    if pa.types.is_struct(arrow):
        return DataType("struct", tuple((field.name, from_arrow(field.type)) for field in arrow))
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return DataType("list", (("element", from_arrow(arrow.value_type)),))
    if pa.types.is_map(arrow):
        return DataType("map", (("key", from_arrow(arrow.key_type)), ("value", from_arrow(arrow.item_type))))
    if pa.types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if pa.types.is_decimal(arrow):
        return DataType(f"decimal({arrow.precision},{arrow.scale})")
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow) or pa.types.is_null(arrow):
        return DataType("varchar")
    if pa.types.is_large_binary(arrow) or pa.types.is_fixed_size_binary(arrow) or pa.types.is_binary_view(arrow):
        return DataType("blob")
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return DataType("timestamptz")
    if pa.types.is_date64(arrow):
        return DataType("date")
    if pa.types.is_time(arrow):
        return DataType("time")
    if pa.types.is_duration(arrow):
        return DataType("interval")
    if pa.types.is_float16(arrow):
        return DataType("float32")
    if isinstance(arrow, pa.UuidType):
        return DataType("uuid")
    if isinstance(arrow, pa.JsonType):
        return DataType("json")
    for name, (_, candidate) in _PRIMITIVES.items():
        if arrow == candidate and name not in _DISGUISED:
            return DataType(name)
    raise UnsupportedFeatureError(f"Arrow type {arrow} has no DuckLake type.")
