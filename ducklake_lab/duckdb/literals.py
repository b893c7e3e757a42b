"""Values as literals of SQL, spelled by DuckDB itself, so that it reads each of them as the same value again."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ducklake_lab.duckdb import variants
from ducklake_lab.duckdb.casting import has_part, text_sql, typed_sql
from ducklake_lab.duckdb.connections import scratch
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import INTEGERS, DataType

#: Types whose literals need no quotes. Those of 128 bits do: DuckDB reads the least of them as a DOUBLE.
_UNQUOTED = ("boolean", *(name for name in INTEGERS if not name.endswith("128")))
#: Characters that a file or a parser may turn into others; a function makes them.
_SPELLED = (0, 13)


def literals(table: pa.Table, types: Sequence[DataType]) -> list[tuple[str, ...]]:
    """The values of some rows as SQL, row by row.

    Numbers and booleans are plain, other values texts in quotes: to be cast to their type, which INSERT does. Nested
    values, variants and geometries are expressions of their type.

    Args:
        table: columns in the Arrow forms of the types.

    Raises:
        UnsupportedFeatureError: a variant holds a value that Parquet's variants cannot.
    """
    if table.num_rows == 0 or not types:
        return [()] * table.num_rows
    for name, kind, values in zip(table.column_names, types, table.columns, strict=True):
        if has_part(kind, ("variant",)) and variants.kept_in(kind, values) is not None:
            raise UnsupportedFeatureError(f"A VARIANT of {name} holds a type that no literal of SQL gives back.")
    renamed = table.rename_columns([f"c{i}" for i in range(len(types))])
    spelled = ", ".join(_literal(f"c{i}", kind) for i, kind in enumerate(types))
    rows: list[tuple[str, ...]] = scratch().from_arrow(renamed).query("rows", f"SELECT {spelled} FROM rows").fetchall()
    return rows


def _literal(value: str, kind: DataType, *, inside: bool = False) -> str:
    """SQL that gives the literal of a value that Arrow carries.

    Args:
        inside: it is part of a nested value, which is cast as a whole; so it says its type itself.
    """
    if kind.is_nested:
        body = _nested(value, kind)
        spelled = body if inside else f"'CAST(' || {body} || {quote_text(f' AS {kind.sql()})')}"
    elif kind.name in _UNQUOTED:
        spelled = f"CAST({value} AS VARCHAR)"
    elif kind.name in ("variant", "geometry"):
        function = variants.from_bytes_sql("") if kind.name == "variant" else "ST_GeomFromWKB()"
        spelled = f"{quote_text(function[:-1] + 'CAST(')} || {quoted_sql(text_sql(value, kind))} || ' AS BLOB))'"
    else:
        spelled = quoted_sql(text_sql(typed_sql(value, kind), kind))
        if inside and kind.name != "varchar":
            spelled = f"'CAST(' || {spelled} || {quote_text(f' AS {kind.sql()})')}"
    return f"CASE WHEN {value} IS NULL THEN 'NULL' ELSE {spelled} END"


def quoted_sql(text: str) -> str:
    """SQL that gives a text in quotes, as DuckDB reads it again."""
    text = f"replace({text}, '''', '''''')"
    for code in _SPELLED:
        made = f"' || chr({code}) || '"
        text = f"replace({text}, chr({code}), {quote_text(made)})"
    return f"'''' || {text} || ''''"


def _nested(value: str, kind: DataType) -> str:
    """SQL that gives a nested value without its type."""
    if kind.name == "struct":
        parts = [
            f"{quote_text(quote_text(name) + ': ')} || {_literal(f'{value}.{quote_identifier(name)}', child, inside=True)}"
            for name, child in kind.children
        ]
        return "'{' || " + " || ', ' || ".join(parts) + " || '}'"
    if kind.name == "list":
        return _elements(value, kind.children[0][1])
    (_, key), (_, held) = kind.children
    return (
        f"'map(' || {_elements(f'map_keys({value})', key)} || ', ' || {_elements(f'map_values({value})', held)} || ')'"
    )


def _elements(value: str, kind: DataType) -> str:
    each = f"x{len(value)}"
    spelled = f"list_transform({value}, lambda {each}: {_literal(each, kind, inside=True)})"
    return f"'[' || coalesce(array_to_string({spelled}, ', '), '') || ']'"
