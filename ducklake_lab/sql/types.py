"""Converts SQL spellings of types: DuckDB's names to the model's types, and the model's types to Spark's names."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ducklake_lab.errors import BindError, DuckLakeError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_for_spark
from ducklake_lab.model.types import IN_DUCKDB, ON_SPARK, DataType
from ducklake_lab.sql.dialect import DuckLakeSql

_D = exp.DType

_FROM_SQLGLOT: dict[exp.DType, str] = {
    _D.BOOLEAN: "boolean",
    _D.TINYINT: "int8",
    _D.SMALLINT: "int16",
    _D.INT: "int32",
    _D.BIGINT: "int64",
    _D.INT128: "int128",
    _D.UTINYINT: "uint8",
    _D.USMALLINT: "uint16",
    _D.UINT: "uint32",
    _D.UBIGINT: "uint64",
    _D.UINT128: "uint128",
    _D.FLOAT: "float32",
    _D.DOUBLE: "float64",
    _D.DATE: "date",
    _D.TIME: "time",
    _D.TIMETZ: "timetz",
    _D.TIMESTAMP: "timestamp",
    _D.TIMESTAMPNTZ: "timestamp",
    _D.DATETIME: "timestamp",
    _D.TIMESTAMPTZ: "timestamptz",
    _D.TIMESTAMP_S: "timestamp_s",
    _D.TIMESTAMP_MS: "timestamp_ms",
    _D.TIMESTAMP_NS: "timestamp_ns",
    _D.TEXT: "varchar",
    _D.VARCHAR: "varchar",
    _D.CHAR: "varchar",
    _D.NCHAR: "varchar",
    _D.NVARCHAR: "varchar",
    _D.JSON: "json",
    _D.BLOB: "blob",
    _D.VARBINARY: "blob",
    _D.BINARY: "blob",
    _D.UUID: "uuid",
    _D.INTERVAL: "interval",
    _D.VARIANT: "variant",
    _D.GEOMETRY: "geometry",
}

#: DuckDB's names that the parser reads as user-defined types.
_ALIASES = {
    **{sql: name for name, sql in IN_DUCKDB.items() if sql.isidentifier()},
    "BYTEA": "blob",
    "DATETIME": "timestamp",
    "FLOAT4": "float32",
    "FLOAT8": "float64",
    "GUID": "uuid",
    "INT1": "int8",
    "INT16": "int16",
    "INT2": "int16",
    "INT32": "int32",
    "INT4": "int32",
    "INT64": "int64",
    "INTEGRAL": "int32",
    "LONG": "int64",
    "OID": "int64",
    "REAL": "float32",
    "SHORT": "int16",
    "TIMESTAMP_US": "timestamp",
    "TIMETZ": "timetz",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "UINT8": "uint8",
}

#: Types by the size of a type name: (largest size, type).
_SIZES = {
    "timestamp": ((0, "timestamp_s"), (3, "timestamp_ms"), (6, "timestamp"), (9, "timestamp_ns")),
    "float32": ((24, "float32"), (53, "float64")),
}
#: Types whose size has no effect.
_TAKE_SIZES = ("varchar", "geometry", "interval")


def from_sqlglot(kind: exp.DataType) -> DataType:
    """Returns the model's type for a parsed DuckDB type.

    Raises:
        BindError: two struct fields have the same name, ignoring case; or a type has a size that it does not take.
        UnsupportedFeatureError: a fixed-size list, UNION, ENUM, or a type that DuckLake lacks.
    """
    if kind.this in (_D.ARRAY, _D.LIST):
        if kind.args.get("values"):
            raise UnsupportedFeatureError(
                f"Fixed-size lists such as {_text(kind)} are not supported; use {_text(kind.expressions[0])}[]."
            )
        return DataType("list", (("element", from_sqlglot(kind.expressions[0])),))
    if kind.this == _D.STRUCT:
        fields: list[tuple[str, DataType]] = []
        for part in kind.expressions:
            if not isinstance(part, exp.ColumnDef) or not isinstance(part.args.get("kind"), exp.DataType):
                raise SqlSyntaxError(f"A STRUCT type needs a name and a type for each field: {_text(kind)}.")
            if part.args.get("constraints"):
                raise SqlSyntaxError(f'The field "{part.name}" of a STRUCT takes a type only: {_text(kind)}.')
            if part.name.casefold() in (name.casefold() for name, _ in fields):
                raise BindError(f'A STRUCT type has the field "{part.name}" twice.')
            fields.append((part.name, from_sqlglot(part.args["kind"])))
        if not fields:
            raise SqlSyntaxError("A STRUCT type needs a name and a type for each field.")
        return DataType("struct", tuple(fields))
    if kind.this == _D.MAP:
        if len(kind.expressions) != 2:
            raise SqlSyntaxError("A MAP type needs a type for its keys and one for its values: MAP(VARCHAR, INTEGER).")
        key, value = kind.expressions
        return DataType("map", (("key", from_sqlglot(key)), ("value", from_sqlglot(value))))
    if kind.this == _D.DECIMAL:
        if not all(part.name.isdigit() for part in kind.expressions):
            raise SqlSyntaxError(f"The sizes of a DECIMAL are whole numbers, as in DECIMAL(18,3): {_text(kind)}.")
        sizes = [int(part.name) for part in kind.expressions]
        precision = sizes[0] if sizes else 18
        scale = sizes[1] if len(sizes) > 1 else (0 if sizes else 3)
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise SqlSyntaxError(f"DECIMAL({precision},{scale}) is not possible: precision 1 to 38, scale up to that.")
        return DataType(f"decimal({precision},{scale})")
    if kind.this in _FROM_SQLGLOT:
        return _sized(DataType(_FROM_SQLGLOT[kind.this]), kind)
    name = _text(kind).split("(")[0].upper()
    if name in _ALIASES:
        return _sized(DataType(_ALIASES[name]), kind)
    raise UnsupportedFeatureError(f"Type {name} is not supported.")


def _sized(plain: DataType, kind: exp.DataType) -> DataType:
    """Returns the type for a size after its name: fractional digits of a second, or bits of a number."""
    if not kind.expressions or plain.name in _TAKE_SIZES:
        return plain
    steps = _SIZES.get(plain.name, ())
    size = int(kind.expressions[0].name) if kind.expressions[0].name.isdigit() else -1
    name = next((name for up_to, name in steps if size <= up_to), None)
    if name is None or size < 0 or len(kind.expressions) > 1:
        limit = f"one size, up to {steps[-1][0]}" if steps else "no size"
        raise BindError(f"Type {plain.sql()} takes {limit}: {_text(kind)}.")
    return DataType(name)


def to_sqlglot(kind: DataType) -> exp.DataType:
    """Returns the syntax tree of a type in DuckDB's spelling.

    Raises:
        UnsupportedFeatureError: the catalog has an unknown type.
    """
    return _tree(kind).copy()


@lru_cache(maxsize=1000)
def _tree(kind: DataType) -> exp.DataType:
    if not all(part.is_known for part in kind.walk()):
        raise UnsupportedFeatureError(f"Values of type {kind.sql()} are not supported yet.")
    parsed = exp.DataType.build(kind.sql(), dialect=DuckLakeSql, udt=True)
    assert isinstance(parsed, exp.DataType)
    return parsed


def spark_type(kind: DataType) -> str:
    """Returns Spark SQL's spelling of the type that holds its values, e.g. `STRUCT<`a`: INT>`.

    Raises:
        UnsupportedFeatureError: Spark has no such type here.
    """
    if kind.name == "struct":
        fields = ", ".join(f"{quote_for_spark(name)}: {spark_type(child)}" for name, child in kind.children)
        return f"STRUCT<{fields}>"
    if kind.name == "list":
        return f"ARRAY<{spark_type(kind.children[0][1])}>"
    if kind.name == "map":
        return f"MAP<{spark_type(kind.children[0][1])}, {spark_type(kind.children[1][1])}>"
    if kind.decimal is not None:
        return "DECIMAL({},{})".format(*kind.decimal)
    if kind.name not in ON_SPARK:
        raise UnsupportedFeatureError(f"Values of type {kind.sql()} are not supported on Spark yet.")
    return ON_SPARK[kind.name]


def _text(kind: exp.Expr) -> str:
    return kind.sql(dialect=DuckLakeSql)


def type_or_none(text: str) -> DataType | None:
    """Returns the model's type for a DuckDB type name; None if it has none."""
    try:
        tree = sqlglot.parse_one(text, into=exp.DataType, read=DuckLakeSql)
        return from_sqlglot(tree)
    except (SqlglotError, DuckLakeError):
        return None
