"""Values as SQL, for a DuckDB that takes a text alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb

from ducklake_lab.duckdb.casting import text_sql
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import DataType

#: Texts and names, in which nothing stands for a parameter, and parameters: `$1`, or `?` for the next one.
_PARTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\d+)|\?""")
#: Types whose texts need no quotes. Those of 128 bits do: DuckDB cannot negate the digits of the least of them.
_NUMBERS = frozenset("tinyint smallint integer bigint utinyint usmallint uinteger ubigint".split())
#: The longest whole DECIMAL.
_LONGEST = "DECIMAL(38,0)"
#: Signs of texts that are written as bytes: dollars enclose the others, DuckDB's parser ends at a NUL, and the time in which
#: quack takes a text grows with the square of the quotes in it.
_UNFIT = ("$", "'", "\0", "\r")


def literal(value: object) -> str:
    """SQL of a value of Python.

    Raises:
        TypeError: there is no SQL for values of its type.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)" if not math.isfinite(value) or value == 0 else f"({value!r}::DOUBLE)"
    if isinstance(value, str):
        if not value or any(sign in value for sign in _UNFIT):
            return f"decode({literal(value.encode())})"
        return f"$${value}$$"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"unhex($${bytes(value).hex()}$$)"
    if isinstance(value, datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        return f"CAST('{value.isoformat(' ')}' AS {kind})"
    for known, sql in ((date, "DATE"), (time, "TIME"), (UUID, "UUID")):
        if isinstance(value, known):
            return f"CAST('{value}' AS {sql})"
    if isinstance(value, Decimal):
        return f"({value:f})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    raise TypeError(f"There is no SQL for a value of type {type(value).__name__}.")


def with_values(statement: str, parameters: Sequence[object]) -> str:
    """A statement with values in place of its parameters."""
    if not parameters:
        return statement
    written = list(map(literal, parameters))
    following = iter(written)

    def write(argument: re.Match[str]) -> str:
        if argument[1] is not None:
            return written[int(argument[1]) - 1]
        return next(following) if argument[0] == "?" else argument[0]

    return _PARTS.sub(write, statement)


def table_sql(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """SQL of the rows of a table or view, as `name(columns) AS (VALUES …)` for a WITH clause."""
    relation = connection.table(name)
    columns = list(zip(relation.columns, relation.types, strict=True))
    listed = ", ".join(quote_identifier(column) for column, _ in columns)
    cells = [_cell_sql(quote_identifier(column), kind) for column, kind in columns]
    rows = connection.execute(f"SELECT {', '.join(cells)} FROM {quote_identifier(name)}").fetchall()
    kinds = [_type_sql(kind) for _, kind in columns]
    # of a list or struct, texts within do not take on a type, nor does the result of a function
    cast = [
        _is_nested(kind) or any(row[number].startswith("decode(") for row in rows)
        for number, (_, kind) in enumerate(columns)
    ]
    # NULLs of each type: a column of NULLs alone would be one of integers, which not every type can be cast from
    typed = ", ".join(f"CAST(NULL AS {kind})" for kind in kinds)
    values = "".join(
        f"{', ' if number else ' UNION ALL VALUES '}({_row_sql(row, kinds, cast)})" for number, row in enumerate(rows)
    )
    casts = ", ".join(
        f"CAST({quote_identifier(column)} AS {kind})" for (column, _), kind in zip(columns, kinds, strict=True)
    )
    source = f"(SELECT {typed} WHERE false{values}) AS source({listed})"
    return f"{quote_identifier(name)}({listed}) AS (SELECT {casts} FROM {source})"


def _row_sql(cells: Sequence[str], kinds: Sequence[str], cast: Sequence[bool]) -> str:
    return ", ".join(
        f"CAST({cell} AS {kind})" if is_cast else cell for cell, kind, is_cast in zip(cells, kinds, cast, strict=True)
    )


def _type_sql(kind: Any) -> str:
    """SQL of a type; HUGEINT, which Arrow carries as a DECIMAL of as many digits, has values of one more."""
    if kind.id in ("list", "array"):
        return f"{_type_sql(kind.children[0][1])}[]"
    if kind.id == "map":
        (_, key), (_, item) = kind.children
        return f"MAP({_type_sql(key)}, {_type_sql(item)})"
    if kind.id == "struct":
        return f"STRUCT({', '.join(f'{quote_identifier(name)} {_type_sql(child)}' for name, child in kind.children)})"
    return "HUGEINT" if str(kind) == _LONGEST else str(kind)


def _is_nested(kind: Any) -> bool:
    return kind.id in ("list", "array", "struct", "map")


def _cell_sql(value: str, kind: Any, depth: int = 0) -> str:
    """SQL of the literal of a value, a text."""
    each = f"x{depth}"

    def listed(values: str, child: Any) -> str:
        parts = f"list_transform({values}, lambda {each}: {_cell_sql(each, child, depth + 1)})"
        return f"'[' || array_to_string({parts}, ', ') || ']'"

    if kind.id in ("list", "array"):
        made = listed(f"CAST({value} AS {_type_sql(kind.children[0][1])}[])", kind.children[0][1])
    elif kind.id == "map":
        (_, key), (_, item) = kind.children
        made = f"'MAP(' || {listed(f'map_keys({value})', key)} || ', ' || {listed(f'map_values({value})', item)} || ')'"
    elif kind.id == "struct":
        made = _struct_sql(value, kind.children, lambda part, child: _cell_sql(part, child, depth))
    elif kind.id in _NUMBERS:
        made = f"CAST({value} AS VARCHAR)"
    elif str(kind) == _LONGEST:
        made = _text_sql(f"CAST(CAST({value} AS HUGEINT) AS VARCHAR)")
    else:
        text = text_sql(value, DataType("timestamptz" if kind.id == "timestamp with time zone" else "varchar"))
        made = _text_sql(text)
    return f"coalesce({made}, 'NULL')"


def _text_sql(text: str) -> str:
    """SQL of the literal of a text, as `literal` spells it."""
    unfit = " OR ".join(f"contains({text}, chr({ord(sign)}))" for sign in _UNFIT)
    return (
        f"CASE WHEN {text} = '' OR {unfit} THEN 'decode(unhex($$' || hex(encode({text})) || '$$))' "
        f"ELSE '$$' || {text} || '$$' END"
    )


def _struct_sql(value: str, children: Sequence[tuple[str, Any]], part_sql: Callable[[str, Any], str]) -> str:
    parts = " || ', ' || ".join(
        f"{quote_text(quote_text(name) + ': ')} || {part_sql(f'struct_extract({value}, {quote_text(name)})', child)}"
        for name, child in children
    )
    return f"CASE WHEN {value} IS NOT NULL THEN '{{' || {parts} || '}}' END"
