"""Casts between DuckDB's text of a value and the value, by DuckDB itself: so that both sides agree to the letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import duckdb
import pyarrow as pa

from ducklake_lab.duckdb import variants
from ducklake_lab.duckdb.connections import of_thread, scratch
from ducklake_lab.duckdb.spelling import spelled
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import ConstraintError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import (
    AS_TEXT,
    FLOATS,
    IN_DUCKDB,
    DataType,
    from_arrow,
    from_field,
    is_marked,
    is_primitive,
)


def evaluate_typed(sql: str) -> tuple[str, str | None]:
    """The type of an expression that names nothing, by its name in lakes, and DuckDB's text of its value in UTC.

    A type that lakes do not have keeps DuckDB's name.

    Raises:
        ConstraintError: it has no value.
    """
    try:
        ((kind, text),) = (
            scratch().execute(f"SELECT typeof(v), CAST(v AS VARCHAR) FROM (SELECT ({sql}) AS v)").fetchall()
        )
    except duckdb.Error as error:
        raise ConstraintError(worded(error)) from None
    name = kind.casefold()
    return _FROM_DUCKDB.get(name, name), text


def cast_columns(table: pa.Table, types: Mapping[str, DataType], time_zone: str = "UTC") -> pa.Table:
    """The named columns, cast to the types' Arrow forms, in the mapping's order.

    Args:
        time_zone: in which times without one are read.

    Raises:
        ConstraintError: a value does not fit its type.
        UnsupportedFeatureError: Arrow cannot hold a value.
    """
    schema = pa.schema([data_type.field(name) for name, data_type in types.items()])
    if table.num_rows == 0:
        return schema.empty_table()
    chosen = table.select(list(types))
    ready = {name: values for name in types if (values := _as_carried(chosen, name, types[name])) is not None}
    others = {name: kind for name, kind in types.items() if name not in ready}
    cast = _cast(chosen.select(list(others)), others, time_zone) if others else pa.table({})
    return pa.table([ready[name] if name in ready else cast.column(name) for name in types], schema=schema)


def _as_carried(table: pa.Table, name: str, kind: DataType) -> pa.ChunkedArray | None:
    """A column in the Arrow form of a type, where no query is needed for it."""
    field, values = table.schema.field(name), table.column(name)
    if _is_carried(field, kind):
        return values.cast(kind.arrow()) if kind.is_nested else values
    if pa.types.is_integer(field.type) and pa.types.is_integer(kind.arrow()):
        try:
            return values.cast(kind.arrow())
        except pa.ArrowInvalid:
            return None  # DuckDB says which value does not fit
    return None


def _cast(chosen: pa.Table, types: Mapping[str, DataType], time_zone: str) -> pa.Table:
    schema = pa.schema([data_type.field(name) for name, data_type in types.items()])
    # positional names: DuckDB folds case, the table's columns need not
    kinds = [_of_wkb(from_field(field), types[field.name]) for field in chosen.schema]
    sources = [f"{typed_values_sql(f'c{i}', kind, chosen.column(i))} AS c{i}" for i, kind in enumerate(kinds)]
    renamed = chosen.rename_columns([f"c{i}" for i in range(len(types))])
    database = scratch() if time_zone == "UTC" else of_thread(("casts", time_zone), [("TimeZone", time_zone)])
    typed = database.from_arrow(unsliced(renamed)).project(", ".join(sources))

    def cast(depth: int) -> pa.Table:
        casts = ", ".join(cast_sql(f"c{i}", data_type, depth) for i, data_type in enumerate(types.values()))
        return typed.query("typed", f"SELECT {casts} FROM typed").to_arrow_table()

    try:
        result = variants.read_all(cast, list(types.values()))
    except duckdb.ConversionException as error:
        raise ConstraintError(worded(error, list(types))) from None
    except duckdb.InvalidInputException as error:
        raise UnsupportedFeatureError(worded(error)) from None
    return result.rename_columns(list(types)).cast(schema)


def _of_wkb(kind: DataType, target: DataType) -> DataType:
    """The type of values to be cast; bytes that become geometries are WKB, at every depth."""
    if kind.name == "blob" and target.name == "geometry":
        return target
    wanted = dict(target.children) if kind.name == target.name else {}
    children = ((name, _of_wkb(child, wanted.get(name, child))) for name, child in kind.children)
    return DataType(kind.name, tuple(children))


def _is_carried(field: pa.Field, data_type: DataType) -> bool:
    """Return whether values are in the type already, in its Arrow form."""
    if not is_marked(field):
        return bool(field.type == _own_arrow(data_type))
    same = field.type == data_type.arrow() and from_field(field) == data_type
    return same and not has_part(data_type, (*_BY_FUNCTION, *AS_TEXT))


@lru_cache(maxsize=1024)
def _own_arrow(data_type: DataType) -> pa.DataType | None:
    """The Arrow type that carries values of this type and, without a mark, of no other; None where there is none."""
    arrow = data_type.arrow()
    own = from_arrow(arrow) == data_type and not has_part(data_type, (*_BY_FUNCTION, *AS_TEXT))
    return arrow if own else None


def cast_sql(expression: str, data_type: DataType, depth: int | None = None) -> str:
    """SQL that casts to the type, in a form whose Arrow type is the type's own."""
    return carried_sql(f"CAST({expression} AS {data_type.sql()})", data_type, depth)


def carried_sql(expression: str, data_type: DataType, depth: int | None = None) -> str:
    """SQL of a value of the type as Arrow carries it; see model/types.py, and for `depth` duckdb/variants.py."""
    name = data_type.name
    if name == "geometry":
        return f"ST_AsWKB({expression})"
    if name == "variant":
        return f"CASE WHEN {expression} IS NOT NULL THEN {variants.carried_sql(expression, depth)} END"
    if name == "interval":
        refused = f"error('{LONG_INTERVAL}')"
        return f"CASE WHEN abs(date_part('hour', {expression})) >= {_MOST_HOURS} THEN {refused} ELSE {expression} END"
    if has_part(data_type, (*_BY_FUNCTION, "interval")) or (data_type.is_nested and _has_nameless(data_type)):
        return through(expression, data_type, partial(carried_sql, depth=depth))
    if has_part(data_type, AS_TEXT):
        return f"CAST({expression} AS {_plain(data_type).sql()})"
    return expression


def typed_values_sql(expression: str, data_type: DataType, values: pa.Array | pa.ChunkedArray) -> str:
    """Write an expression as `typed_sql` does, for these values."""
    return typed_sql(expression, data_type, variants.kept_in(data_type, values))


def typed_sql(expression: str, data_type: DataType, kept: variants.Kept | None = None) -> str:
    """SQL of a value that Arrow carries, in the type: the inverse of `carried_sql`."""
    if data_type.name == "geometry":
        return f"ST_GeomFromWKB({expression})"
    if data_type.name == "variant":
        return f"CASE WHEN {expression} IS NOT NULL THEN {variants.typed_sql(expression, kept)} END"
    if has_part(data_type, _BY_FUNCTION) or _has_nameless(data_type):
        return through(expression, data_type, partial(typed_sql, kept=kept))
    return f"CAST({expression} AS {data_type.sql()})"


#: A column that is true in every row of a table for DuckDB.
SHOWN = "_ducklake_shown"


def with_shown(table: pa.Table) -> pa.Table:
    """Add the column that `shown_sql` reads."""
    return table.append_column(SHOWN, pa.repeat(True, table.num_rows))


def shown_sql(expression: str, data_type: DataType | None, values: pa.ChunkedArray) -> str:
    """Write an expression as `typed_values_sql` does, so that it may be compared and joined.

    The expression is a column of `with_shown`; a type None stands for a type of Arrow's own.

    DuckDB leaves comparisons of bare columns to Arrow, for which NaN is not greater than all numbers, and which knows no
    Bloom filters of joins.
    """
    typed = expression if data_type is None else typed_values_sql(expression, data_type, values)
    return f"CASE WHEN {SHOWN} THEN {typed} END"


#: Types whose Arrow form a function makes.
_BY_FUNCTION = ("geometry", "variant")
#: Types with distinct values that DuckDB finds equal: 0.0 and -0.0, one month and 30 days.
EQUAL_APART = (*FLOATS, "interval")
#: Hours whose nanoseconds Arrow's 64 bits do not hold; DuckDB lets them wrap around.
_MOST_HOURS = 2562047
LONG_INTERVAL = (
    "An INTERVAL of 2562047 hours or more is not supported here; count some of them as days, or cast it to VARCHAR."
)
#: The digits of Spark's longest DECIMAL, which takes the place of HUGEINT there.
_MOST_DIGITS = 38
LONG_NUMBER = "Spark has no type for a HUGEINT of more than 38 digits; cast it to DOUBLE or VARCHAR."
#: Errors that our own SQL raises where a value has no form.
REFUSALS = (LONG_INTERVAL, LONG_NUMBER)


def has_part(data_type: DataType, names: Sequence[str]) -> bool:
    """Return whether a type, or one below it, is one of some."""
    return any(part.name in names for part in data_type.walk())


def _is_nameless(data_type: DataType) -> bool:
    """Return whether it is the type of `row(1, 2)`: no SQL casts to a struct whose fields have no names."""
    return any(not name for name, _ in data_type.children)


def _has_nameless(data_type: DataType) -> bool:
    return any(map(_is_nameless, data_type.walk()))


def decimal_sql(expression: str) -> str:
    """SQL of a HUGEINT or UHUGEINT as Spark's longest DECIMAL; longer values are refused."""
    cast, limit = f"CAST({expression} AS DECIMAL({_MOST_DIGITS},0))", 10**_MOST_DIGITS - 1
    return f"CASE WHEN {expression} > {limit} OR {expression} < -{limit} THEN error('{LONG_NUMBER}') ELSE {cast} END"


def comparable_sql(expression: str, data_type: DataType) -> str:
    """SQL of a value that `IS DISTINCT FROM` compares rightly; DuckDB misreads variants with a NULL in their vector."""
    if data_type.name == "variant":
        return f"struct_pack(missing := {expression} IS NULL, value := coalesce({expression}, CAST(false AS VARIANT)))"
    if has_part(data_type, ("variant",)):
        return through(expression, data_type, comparable_sql)
    return expression


def differs_sql(old: str, new: str, kind: DataType) -> str:
    """SQL that says whether two values of a type differ, 0.0 from -0.0 and a month from 30 days, too."""
    if not has_part(kind, ("variant",)):
        differs = f"{old} IS DISTINCT FROM {new}"
        if not has_part(kind, EQUAL_APART):
            return differs
        return f"({differs} OR {told_apart(old, kind)} IS DISTINCT FROM {told_apart(new, kind)})"
    # DuckDB compares no values of two types that lie in lists and objects; they differ
    old, new = comparable_sql(old, kind), comparable_sql(new, kind)
    return f"coalesce(TRY({old} IS DISTINCT FROM {new}), true)"


def told_apart(expression: str, data_type: DataType) -> str:
    """SQL of a value that differs between distinct values which DuckDB finds equal."""
    if data_type.name in FLOATS:
        return f"1 / CAST({expression} AS DOUBLE)"  # -inf of -0.0
    if data_type.name == "interval":
        return f"CAST({expression} AS VARCHAR)"
    if not has_part(data_type, EQUAL_APART):
        return expression
    if data_type.name != "map":
        return through(expression, data_type, told_apart)
    # reciprocals of two keys may be equal
    each = f"x{len(expression)}"
    parts = zip(("keys", "values"), (child for _, child in data_type.children), strict=True)
    lists = (
        f"list_transform(map_{side}({expression}), lambda {each}: {told_apart(each, kind)})" for side, kind in parts
    )
    return f"row({', '.join(lists)})"


def through(expression: str, data_type: DataType, convert: Callable[[str, DataType], str]) -> str:
    """SQL that converts the parts of a nested value."""
    if _is_nameless(data_type):
        fields = (child for _, child in data_type.children)
        parts = ", ".join(convert(f"struct_extract({expression}, {n})", child) for n, child in enumerate(fields, 1))
        made = f"row({parts})"
    elif data_type.name == "struct":
        parts = ", ".join(
            f"{quote_identifier(name)} := {convert(f'{expression}.{quote_identifier(name)}', child)}"
            for name, child in data_type.children
        )
        made = f"struct_pack({parts})"
    elif data_type.name == "list":
        each = f"x{len(expression)}"
        made = f"list_transform({expression}, lambda {each}: {convert(each, data_type.children[0][1])})"
    else:
        (_, key), (_, value) = data_type.children
        each = f"x{len(expression)}"
        keys = f"list_transform(map_keys({expression}), lambda {each}: {convert(each, key)})"
        values = f"list_transform(map_values({expression}), lambda {each}: {convert(each, value)})"
        made = f"map({keys}, {values})"
    return f"CASE WHEN {expression} IS NOT NULL THEN {made} END"


def _plain(data_type: DataType) -> DataType:
    """The type, with text for each part that Arrow carries as text."""
    if data_type.name in AS_TEXT:
        return DataType("varchar")
    return DataType(data_type.name, tuple((name, _plain(child)) for name, child in data_type.children))


def texts(table: pa.Table, types: Mapping[str, DataType]) -> list[tuple[str | None, ...]]:
    """All values as the text DuckDB casts them to, row by row."""
    if table.num_rows == 0 or not types:
        return []
    by_name: dict[str, Sequence[str | None]] = {}
    for name, data_type in types.items():
        column = spelled(table.column(name), data_type)
        if column is not None:
            by_name[name] = column
    others = {name: data_type for name, data_type in types.items() if name not in by_name}
    if others:
        by_name.update(zip(others, zip(*_queried_texts(table, others), strict=True), strict=True))
    return list(zip(*(by_name[name] for name in types), strict=True))


def _queried_texts(table: pa.Table, types: Mapping[str, DataType]) -> list[tuple[str | None, ...]]:
    renamed = table.select(list(types)).rename_columns([f"c{i}" for i in range(len(types))])
    casts = ", ".join(
        text_sql(typed_values_sql(f"c{i}", data_type, renamed.column(i)), data_type)
        for i, data_type in enumerate(types.values())
    )
    return scratch().from_arrow(unsliced(renamed)).query("rows", f"SELECT {casts} FROM rows").fetchall()


def text_sql(expression: str, data_type: DataType) -> str:
    """DuckDB's SQL of a value's text, in UTC.

    Its text of a time with a zone is a millisecond late after the year 287396.
    """
    if data_type.name != "timestamptz":
        return f"CAST({expression} AS VARCHAR)"
    exact = f"CAST(make_timestamp(epoch_us({expression})) AS VARCHAR) || '+00'"
    # earlier texts are right, and times before DuckDB's first day cannot be a TIMESTAMP
    late = f"isfinite({expression}) AND epoch_us({expression}) > 0"
    return f"CASE WHEN {late} THEN {exact} ELSE CAST({expression} AS VARCHAR) END"


def carried_as(values: pa.ChunkedArray, data_type: DataType, sql: str) -> pa.ChunkedArray:
    """The values of an expression over `v`, a column that Arrow carries.

    Raises:
        ConstraintError: a value does not fit.
        UnsupportedFeatureError: Parquet's variants cannot hold a value.
    """
    column = pa.table({"v": values}, schema=pa.schema([data_type.field("v")]))
    try:
        return (
            scratch()
            .from_arrow(unsliced(column))
            .query("rows", f"SELECT {sql} AS v FROM rows")
            .to_arrow_table()
            .column(0)
        )
    except duckdb.ConversionException as error:
        raise ConstraintError(worded(error)) from None
    except duckdb.InvalidInputException as error:
        raise UnsupportedFeatureError(worded(error)) from None


def constant_column(text: str | None, data_type: DataType, length: int) -> pa.Array:
    """A column of one value given as text; NULL for None."""
    if text is None:
        return pa.nulls(length, data_type.arrow())
    cast = cast_columns(pa.table({"v": [text]}), {"v": data_type})
    return cast.column("v").combine_chunks().take(pa.array([0] * length, pa.int64()))


#: The model's types by DuckDB's names of them, in lower case.
_FROM_DUCKDB = {sql.casefold(): name for name, sql in IN_DUCKDB.items()} | {
    "enum": "varchar",
    '"null"': "int32",
    "null": "int32",
}


def bits_as_text(kind: Any) -> str | None:
    """One of DuckDB's Python types with VARCHAR for BIT, which Arrow has as bytes; None where it has no BIT in it."""
    name = kind.id
    if name == "bit":
        return "VARCHAR"
    if name not in ("struct", "map", "list", "array", "union"):
        return None
    # an array's size and a union's tag stand among the parts
    children = [(part, child) for part, child in kind.children if part and (part != "size" or name != "array")]
    texts = [bits_as_text(child) for _, child in children]
    if not any(texts):
        return None
    inner = [text or str(child) for text, (_, child) in zip(texts, children, strict=True)]
    if name == "list":
        return f"{inner[0]}[]"
    if name == "array":
        return f"{inner[0]}[{dict(kind.children)['size']}]"
    if name == "map":
        return f"MAP({inner[0]}, {inner[1]})"
    named = (f"{quote_identifier(part)} {text}" for (part, _), text in zip(children, inner, strict=True))
    return f"{name.upper()}({', '.join(named)})"


def from_duckdb(kind: Any) -> DataType | None:
    """The model's type for one of DuckDB's Python types; None where it has none."""
    name = kind.id
    if name == "decimal":
        return DataType(str(kind).casefold())
    if name in ("struct", "map", "list", "array"):
        parts = [(part, from_duckdb(child)) for part, child in kind.children if part != "size"]
        children = [(part, child) for part, child in parts if child is not None]
        if len(children) < len(parts):
            return None
        if name in ("list", "array"):
            return DataType("list", (("element", children[0][1]),))
        return DataType(name, tuple(children))
    # a geometry's text may name a coordinate system, which lakes do not keep
    text = name if name in ("enum", "geometry") else str(kind).casefold()
    text = _FROM_DUCKDB.get(text, text)
    return DataType(text) if is_primitive(text) else None
