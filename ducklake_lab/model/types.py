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
from typing import Any, NamedTuple

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quoted_if_needed

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
#: Digits of a decimal.
_MOST_DIGITS = 38


class _Primitive(NamedTuple):
    """Names of a type without parts. A type that is not in `_PRIMITIVES` is not supported.

    Attributes:
        sql: DuckDB's name of it.
        arrow: the Arrow type that carries its values.
        spark: Spark's name of the type that holds its values in a DataFrame; STRING holds DuckDB's texts of them.
        disguised: whether the Arrow type is that of another type.
    """

    sql: str
    arrow: pa.DataType
    spark: str
    disguised: bool = False


_PRIMITIVES = {
    "boolean": _Primitive("BOOLEAN", pa.bool_(), "BOOLEAN"),
    "int8": _Primitive("TINYINT", pa.int8(), "TINYINT"),
    "int16": _Primitive("SMALLINT", pa.int16(), "SMALLINT"),
    "int32": _Primitive("INTEGER", pa.int32(), "INT"),
    "int64": _Primitive("BIGINT", pa.int64(), "BIGINT"),
    "uint8": _Primitive("UTINYINT", pa.uint8(), "SMALLINT"),
    "uint16": _Primitive("USMALLINT", pa.uint16(), "INT"),
    "uint32": _Primitive("UINTEGER", pa.uint32(), "BIGINT"),
    "uint64": _Primitive("UBIGINT", pa.uint64(), "DECIMAL(20,0)"),
    "float32": _Primitive("FLOAT", pa.float32(), "FLOAT"),
    "float64": _Primitive("DOUBLE", pa.float64(), "DOUBLE"),
    "date": _Primitive("DATE", pa.date32(), "DATE"),
    "time": _Primitive("TIME", pa.time64("us"), "TIME(6)"),
    "timestamp": _Primitive("TIMESTAMP", pa.timestamp("us"), "TIMESTAMP_NTZ"),
    "timestamptz": _Primitive("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", tz="UTC"), "TIMESTAMP"),
    "timestamp_s": _Primitive("TIMESTAMP_S", pa.timestamp("s"), "TIMESTAMP_NTZ"),
    "timestamp_ms": _Primitive("TIMESTAMP_MS", pa.timestamp("ms"), "TIMESTAMP_NTZ"),
    "timestamp_ns": _Primitive("TIMESTAMP_NS", pa.timestamp("ns"), "TIMESTAMP_NTZ"),
    "varchar": _Primitive("VARCHAR", pa.string(), "STRING"),
    "json": _Primitive("JSON", pa.string(), "STRING", disguised=True),
    "blob": _Primitive("BLOB", pa.binary(), "BINARY"),
    "uuid": _Primitive("UUID", pa.string(), "STRING", disguised=True),
    # a decimal's buffer holds all 128 bits, though its precision speaks of 38 digits
    "int128": _Primitive("HUGEINT", pa.decimal128(38, 0), "DECIMAL(38,0)", disguised=True),
    "uint128": _Primitive("UHUGEINT", pa.string(), "DECIMAL(38,0)", disguised=True),
    "timetz": _Primitive("TIME WITH TIME ZONE", pa.string(), "STRING", disguised=True),
    "interval": _Primitive("INTERVAL", pa.month_day_nano_interval(), "STRING"),
    "variant": _Primitive("VARIANT", pa.binary(), "VARIANT", disguised=True),
    "geometry": _Primitive("GEOMETRY", pa.binary(), "BINARY", disguised=True),
    # NULL is its only value; DuckDB itself shows it as INTEGER
    "null": _Primitive('"NULL"', pa.int32(), "INT", disguised=True),
}
#: DuckDB's name of each type without parts, and Spark's of the type that holds its values.
IN_DUCKDB = {name: primitive.sql for name, primitive in _PRIMITIVES.items()}
ON_SPARK = {name: primitive.spark for name, primitive in _PRIMITIVES.items()}
#: Types that Arrow carries as DuckDB's text of the value.
AS_TEXT = tuple(
    name for name, primitive in _PRIMITIVES.items() if primitive.disguised and primitive.arrow == pa.string()
)
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
        """Return itself, as it cannot change: copies of syntax trees hold one for each node."""
        return self

    @property
    def is_nested(self) -> bool:
        return self.name in NESTED

    @property
    def is_known(self) -> bool:
        """Return whether there is a type of that name."""
        return self.name in _PRIMITIVES or self.is_nested or self.decimal is not None

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else None: also where there can be none of such."""
        return _decimal(self.name)

    @property
    def is_numeric(self) -> bool:
        return self.name in NUMBERS or self.decimal is not None

    def sql(self) -> str:
        """The type as DuckDB SQL spells it, e.g. `STRUCT(a INTEGER, b VARCHAR[])`."""
        if self.name in _PRIMITIVES:
            return _PRIMITIVES[self.name].sql
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
            return _PRIMITIVES[self.name].arrow
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
        disguised = any(_is_disguised(part.name) for part in self.walk())
        return pa.field(name, self.arrow(), metadata={_TYPE_KEY: self._to_json().encode()} if disguised else None)

    def _to_json(self) -> str:
        return json.dumps(_tree(self))

    def walk(self) -> Iterator[DataType]:
        """Yield the type and all below it, parents first."""
        yield self
        for _, child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        return self.sql()


@lru_cache(maxsize=1024)
def _decimal(name: str) -> tuple[int, int] | None:
    match = _DECIMAL.fullmatch(name)
    digits = (int(match[1]), int(match[2])) if match else (0, 0)
    return digits if 1 <= digits[0] <= _MOST_DIGITS and digits[1] <= digits[0] else None


@lru_cache(maxsize=1024)
def flat(name: str) -> DataType:
    """The type of that name, which has no parts."""
    return DataType(name)


def is_primitive(name: str) -> bool:
    """Return whether a name is that of a type without parts; decimals are not counted."""
    return name in _PRIMITIVES


def _is_disguised(name: str) -> bool:
    return name in _PRIMITIVES and _PRIMITIVES[name].disguised


def _tree(data_type: DataType) -> list[object]:
    return [data_type.name, *([name, _tree(child)] for name, child in data_type.children)]


def _of_tree(tree: list[Any]) -> DataType:
    return DataType(tree[0], tuple((name, _of_tree(child)) for name, child in tree[1:]))


def is_marked(field: pa.Field) -> bool:
    """Return whether a field says that it carries values of another type than Arrow's."""
    return _TYPE_KEY in (field.metadata or {})


def from_field(field: pa.Field) -> DataType:
    """The DuckLake type for a column of an Arrow table: the one that `DataType.field` made it for, if it did.

    Raises:
        UnsupportedFeatureError: no DuckLake type holds every value of it.
    """
    marked = (field.metadata or {}).get(_TYPE_KEY)
    if marked is not None:
        kind = _of_tree(json.loads(marked))
        if kind.arrow() == field.type:
            return kind
    return flat("geometry") if _is_geoarrow(field) else from_arrow(field.type)


def has_geoarrow(field: pa.Field) -> bool:
    """Return whether a field, or a part of its type, carries geometries in GeoArrow's WKB."""
    if _is_geoarrow(field):
        return True
    kind = field.type
    return pa.types.is_nested(kind) and any(has_geoarrow(kind.field(i)) for i in range(kind.num_fields))


def _is_geoarrow(field: pa.Field) -> bool:
    named = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    return bool((getattr(field.type, "extension_name", None) or named) == "geoarrow.wkb")


def from_arrow(arrow: pa.DataType) -> DataType:
    """The DuckLake type for a column of an Arrow table.

    Raises:
        UnsupportedFeatureError: no DuckLake type holds every value of it.
    """
    if pa.types.is_struct(arrow) and arrow.num_fields:
        return DataType("struct", tuple((field.name, from_field(field)) for field in arrow))
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return DataType("list", (("element", from_field(arrow.value_field)),))
    if pa.types.is_map(arrow):
        return DataType("map", (("key", from_field(arrow.key_field)), ("value", from_field(arrow.item_field))))
    if pa.types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if pa.types.is_decimal(arrow) and arrow.precision <= 38:
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
    for name, primitive in _PRIMITIVES.items():
        if arrow == primitive.arrow and not primitive.disguised:
            return DataType(name)
    raise UnsupportedFeatureError(f"Arrow type {arrow} has no DuckLake type.")
