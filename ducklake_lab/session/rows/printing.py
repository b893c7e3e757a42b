"""Rows as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NoReturn

import pyarrow as pa

from ducklake_lab.duckdb.handing import parts, texts_to_show
from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.model.types import INTEGERS, DataType, from_field

#: Control characters that terminals may interpret and JSON does not escape.
_CONTROLS = re.compile("[\x7f-\x9f]")
#: A DECIMAL of DuckDB without a digit before the point.
_NO_DIGIT_BEFORE_POINT = re.compile(r"(?<!\d)\.")
#: Rows converted to text at once.
_ROWS_AT_ONCE = 10_000


def json_lines(rows: pa.Table, time_zone: str) -> Iterator[str]:
    """Yields the lines of one JSON array with an object for each row; numbers keep all digits.

    Booleans, numbers, structs, lists and JSON values are JSON. Maps are objects with texts as names. Other values,
    infinities and NaN are texts in DuckDB's form.

    Raises:
        UsageError: two columns have the same name.
    """
    if repeated := [name for name, times in Counter(rows.column_names).items() if times > 1]:
        raise UsageError(f'Two columns are named "{repeated[0]}", which JSON cannot tell apart; rename one with AS.')
    names = [_text(name) for name in rows.column_names]
    opening = "["
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        chunk = rows.slice(start, _ROWS_AT_ONCE)
        columns = [
            _column(pa.table([column], schema=pa.schema([field])), time_zone)
            for field, column in zip(chunk.schema, chunk.columns, strict=True)
        ]
        for values in zip(*columns, strict=True):
            members = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
            yield f"{opening}{{{members}}}"
            opening = ",\n "
    yield "[]\n" if opening == "[" else "]\n"


def _column(column: pa.Table, time_zone: str) -> Sequence[str]:
    """Returns the JSON of each value of a one-column table."""
    try:
        kind = from_field(column.schema.field(0))
    except UnsupportedFeatureError:
        return [_value(value, DataType("varchar")) for value in texts_to_show(column, time_zone)[0]]
    # a file's JSON column may hold text that DuckDB refuses to read
    values = column.column(0).to_pylist() if kind.name in ("varchar", "json") else parts(column, time_zone)
    return [_value(value, kind) for value in values]


def _value(value: object, kind: DataType) -> str:
    """Returns the JSON of a value, from DuckDB's text of it or the texts of its parts."""
    if value is None:
        return "null"
    if kind.is_nested:
        return _nested(value, kind)
    text = str(value)
    if kind.name == "boolean" or kind.name in INTEGERS:
        return text
    if kind.decimal is not None:
        return _NO_DIGIT_BEFORE_POINT.sub("0.", text)
    if kind.name in ("float32", "float64"):
        return text if isfinite(float(text)) else _text(text)
    if kind.name == "json" and _is_json(text):
        return _CONTROLS.sub(_escaped, text)
    return _text(text)


def _nested(value: object, kind: DataType) -> str:
    if isinstance(value, dict):
        kinds = dict(kind.children)
        return f"{{{', '.join(f'{_text(name)}: {_value(item, kinds[name])}' for name, item in value.items())}}}"
    assert isinstance(value, list)  # of a list's elements, or of a map's pairs
    if kind.name == "list":
        ((_, element),) = kind.children
        return f"[{', '.join(_value(item, element) for item in value)}]"
    (_, keys), (_, items) = kind.children
    members = (f"{_text(_name(key, keys))}: {_value(item, items)}" for key, item in value)
    return f"{{{', '.join(members)}}}"


def _name(key: object, kind: DataType) -> str:
    return _value(key, kind) if kind.is_nested else str(key)


def _text(text: str) -> str:
    return _CONTROLS.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _is_json(text: str) -> bool:
    """Returns whether a text is valid JSON; JSON columns of files may hold other text."""
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
