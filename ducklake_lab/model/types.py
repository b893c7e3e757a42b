"""DuckLake's data types (spec: data_types), with no engine's types but Arrow's.

A type is its spec name plus, for the three nested ones, named children: a struct's fields, a list's
single `element`, a map's `key` and `value`. That is how `ducklake_column` stores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError

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
}

#: Types of the spec that Arrow or Spark cannot carry without a decision of its own; reading or
#: writing a column of one raises UnsupportedFeatureError, listing it does not.
_NAMED_ONLY: dict[str, str] = {
    "int128": "HUGEINT",
    "uint128": "UHUGEINT",
    "timetz": "TIME WITH TIME ZONE",
    "interval": "INTERVAL",
    "variant": "VARIANT",
    "geometry": "GEOMETRY",
}

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

    @property
    def is_nested(self) -> bool:
        return self.name in NESTED

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else None."""
        match = _DECIMAL.fullmatch(self.name)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def is_numeric(self) -> bool:
        return self.name in NUMBERS or self.decimal is not None

    def sql(self) -> str:
        """The type as DuckDB SQL spells it, e.g. `STRUCT(a INTEGER, b VARCHAR[])`."""
        if self.name == "struct":
            fields = ", ".join(f"{_identifier(name)} {child.sql()}" for name, child in self.children)
            return f"STRUCT({fields})"
        if self.name == "list":
            return f"{self.children[0][1].sql()}[]"
        if self.name == "map":
            return f"MAP({self.children[0][1].sql()}, {self.children[1][1].sql()})"
        if self.decimal is not None:
            return "DECIMAL({}, {})".format(*self.decimal).replace(", ", ",")
        if self.name in _PRIMITIVES:
            return _PRIMITIVES[self.name][0]
        return _NAMED_ONLY.get(self.name, self.name.upper())

    def arrow(self) -> pa.DataType:
        """The Arrow type that carries values of this type.

        Raises:
            UnsupportedFeatureError: the type has no Arrow form here.
        """
        if self.name == "struct":
            return pa.struct([pa.field(name, child.arrow()) for name, child in self.children])
        if self.name == "list":
            return pa.list_(pa.field("element", self.children[0][1].arrow()))
        if self.name == "map":
            return pa.map_(self.children[0][1].arrow(), self.children[1][1].arrow())
        if self.decimal is not None:
            return pa.decimal128(*self.decimal)
        if self.name in _PRIMITIVES:
            return _PRIMITIVES[self.name][1]
        raise UnsupportedFeatureError(f"Values of type {self.sql()} are not supported yet.")

    def walk(self) -> Iterator[DataType]:
        """This type and all below it, parents first."""
        yield self
        for _, child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        return self.sql()


def _identifier(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


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
    for name, (_, candidate) in _PRIMITIVES.items():
        if arrow == candidate:
            return DataType(name)
    raise UnsupportedFeatureError(f"Arrow type {arrow} has no DuckLake type.")
