"""Operands of Spark's forms: constants as Spark literals, and compared values in DuckDB's common type."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL, Settings, check_named
from ducklake_lab.duckdb.evaluation import constant as constant_value
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark.nodes import binary, call, cast, no_position, number, text
from ducklake_lab.sql.spark.stability import is_volatile
from ducklake_lab.sql.spark.typing import Type, is_computed_before, lifted
from ducklake_lab.sql.types import spark_type

SIGNED = {"int8": 3, "int16": 5, "int32": 10, "int64": 19}
UNSIGNED = {"uint8": 3, "uint16": 5, "uint32": 10, "uint64": 20}
#: Most digits of integer types.
DIGITS = {**SIGNED, **UNSIGNED, "int128": 38, "uint128": 38}
FLOATS = ("float32", "float64")
#: Types whose carried values Spark orders and compares as DuckDB does.
ORDERED = frozenset(
    ("boolean", *DIGITS, *FLOATS, "date", "time", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz")
) | {"varchar", "uuid", "blob"}

NO_NANOSECONDS = "Computing TIMESTAMP_NS is not supported on Spark, which has microseconds."


class Context(Protocol):
    """The translation, as forms use it."""

    settings: Settings

    def native(self, node: exp.Expr) -> exp.Expr | None:
        """Returns a node in Spark's form; None if DuckDB must compute it."""

    def type_of(self, node: exp.Expr) -> Type: ...


def is_ordered(kind: Type) -> bool:
    """Returns whether Spark orders and groups values of a type as DuckDB does."""
    return kind is not None and (kind.name in ORDERED or kind.decimal is not None)


def carried(kind: DataType) -> str:
    """Returns Spark's spelling of the type that carries values of a type."""
    check_named(kind)
    return spark_type(kind)


def has_nanoseconds(kind: DataType) -> bool:
    return any(part.name == "timestamp_ns" for part in kind.walk())


# Constants

#: First day of the year 1, in days since 1970. For much earlier days, Spark's reader overflows as it skips row groups.
_FIRST_DAY = -719162
#: Microseconds of a day.
_UNIT = 86_400_000_000


def constant(c: Context, node: exp.Expr, kind: DataType) -> exp.Expr | None:
    """Returns the Spark literal of an expression without arguments, cast to a type; None if it has none."""
    if kind == NULL:
        return cast(exp.Null(), "INT")
    try:
        found = _literal(value_of(c, node, kind), kind)
        return found if found is None or isinstance(node, exp.Literal) else no_position(found)
    except (DuckLakeError, ValueError):
        return None  # DuckDB raises its error when the query runs


def value_of(c: Context, node: exp.Expr, kind: DataType) -> object:
    """Returns the value of an expression without arguments; see `evaluation.constant`."""
    return constant_value(lifted(node).sql, kind, c.settings)


def _literal(value: Any, kind: DataType) -> exp.Expr | None:
    if value is None:
        return cast(exp.Null(), carried(kind))
    if kind.name == "boolean":
        return exp.Boolean(this=value)
    if kind.name == "int32":
        return cast(text(value), "INT") if int(value) < 0 else number(int(value))
    if kind.name in DIGITS or kind.decimal is not None:
        return cast(text(value), carried(kind))
    if kind.name == "float64":
        return cast(text(repr(value)), "DOUBLE")
    if kind.name == "float32":
        # nine digits identify a FLOAT
        return cast(text(f"{struct.unpack('f', struct.pack('f', value))[0]:.9g}"), "FLOAT")
    if kind.name == "varchar":
        # escape the text so that none of its characters is special
        plain = value.isascii() and value.isprintable() and "\\" not in value
        return text(value) if plain else cast(call("unhex", text(value.encode().hex())), "STRING")
    if kind.name == "uuid":
        return text(value)
    if kind.name == "blob":
        return call("unhex", text(value))
    if kind.name == "date":
        if int(value) < _FIRST_DAY:
            return None
        return call("date_from_unix_date", cast(text(str(value)), "INT"))
    if kind.name == "timestamptz":
        if int(value) < _FIRST_DAY * _UNIT:
            return None
        return call("timestamp_micros", cast(text(str(value)), "BIGINT"))
    if kind.name == "timestamp":
        micros = int(value)
        day, rest = divmod(micros, _UNIT)
        if not _FIRST_DAY <= day <= 2932896:
            return None
        midnight = cast(
            call("date_from_unix_date", number(day) if day >= 0 else exp.Neg(this=number(-day))), "TIMESTAMP_NTZ"
        )
        return (
            binary(
                exp.Add,
                midnight,
                call("make_dt_interval", *[number(0)] * 3, cast(text(str(Decimal(rest) / 1_000_000)), "DECIMAL(18,6)")),
            )
            if rest
            else midnight
        )
    return None


def is_constant(node: exp.Expr) -> bool:
    """Returns whether an expression has no arguments and a single value."""
    return not any(map(is_computed_before, node.walk())) and not is_volatile(node)


# Comparisons


def operands(c: Context, *nodes: exp.Expr) -> list[exp.Expr] | None:
    """Returns values that DuckDB compares in Spark's form; None if Spark compares them differently."""
    kinds = [c.type_of(node) for node in nodes]
    if any(kind is None or kind == NULL for kind in kinds):
        return None
    free = [node for node, kind in zip(nodes, kinds, strict=True) if not is_constant(node)]
    known = [kind for node, kind in zip(nodes, kinds, strict=True) if kind is not None and not is_constant(node)]
    target = _compared(known or [kind for kind in kinds if kind is not None])
    if target is None:
        return None
    result: list[exp.Expr] = []
    for node, kind in zip(nodes, kinds, strict=True):
        assert kind is not None
        if free and is_constant(node):
            value = _constant_operand(c, node, kind, target)
        else:
            value = c.native(node)
            if value is not None and kind != target and (target.name == "float64" or not fit_one_decimal(kinds)):
                value = cast(value, carried(target))
        if value is None:
            return None
        result.append(value)
    return result


def _compared(kinds: Sequence[DataType]) -> DataType | None:
    """Returns the type in which DuckDB compares values; one type represents all those that Spark widens alike."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first if is_ordered(first) else None
    if all(digits_of(kind) is not None for kind in kinds):
        sizes = [digits_of(kind) or (0, 0) for kind in kinds]
        whole, scale = max(size for size, _ in sizes), max(scale for _, scale in sizes)
        if whole + scale <= 38:
            return DataType(f"decimal(38,{scale})")
        # DuckDB casts both to a type with all fractional digits, and fails if the integer digits do not fit
        signed = len(kinds) == 2 and not any(kind.name == "uint128" for kind in kinds)
        return DataType(f"decimal(38,{scale})") if signed else None
    if all(is_exact_double(kind) or kind.name in ("uint8", "uint16", "uint32", "float32") for kind in kinds):
        if any(kind.name == "float32" for kind in kinds) and not all(kind.name in FLOATS for kind in kinds):
            return None
        return DataType("float64")
    return None


def fit_one_decimal(kinds: Sequence[Type]) -> bool:
    """Returns whether one decimal type holds the values of all exact types, so that Spark compares them unchanged."""
    sizes = [digits_of(kind) or (0, 0) for kind in kinds if kind is not None]
    return max(size for size, _ in sizes) + max(scale for _, scale in sizes) <= 38


def digits_of(kind: DataType) -> tuple[int, int] | None:
    """Returns (digits before the point, digits after it) of an exact numeric type."""
    if kind.decimal is not None:
        return kind.decimal[0] - kind.decimal[1], kind.decimal[1]
    return (DIGITS[kind.name], 0) if kind.name in DIGITS else None


def _constant_operand(c: Context, node: exp.Expr, kind: DataType, target: DataType) -> exp.Expr | None:
    exact = digits_of(kind)
    if exact is not None and digits_of(target) is not None:
        size = digits_of(target) or (0, 0)
        return constant(c, node, kind) if max(exact[0], size[0]) + max(exact[1], size[1]) <= 38 else None
    bare = node.unnest()
    written = isinstance(bare, exp.Literal) and bare.is_string
    if kind == target or (written and target.name != "boolean"):
        return constant(c, node, target)
    if exact is not None and target.name in FLOATS:
        return constant(c, node, target)
    if kind.name == "date" and target.name in ("timestamp", "timestamptz"):
        return constant(c, node, target)
    if kind.name == "timestamp" and target.name == "date":
        # a date compares as its midnight
        try:
            micros = value_of(c, node, kind)
        except DuckLakeError:
            return None
        return constant(c, node, target) if isinstance(micros, int) and micros % _UNIT == 0 else None
    return None


def is_exact_double(kind: DataType) -> bool:
    """Returns whether both engines cast a numeric type to the nearest DOUBLE."""
    return kind.name in (*SIGNED, "float64") or (kind.decimal is not None and kind.decimal[0] <= 15)
