"""Display forms of single values in table cells."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal

from ducklake_lab.widgets.html import clip, count, escape

#: Most characters of an unfolded text; up to FULL characters are in the fold.
WIDTH = 64
FULL = 2000

NULL = '<i class="dlk-soft">NULL</i>'

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "REAL", "DECIMAL", "NUMERIC")


def is_number(type_name: str) -> bool:
    """Returns whether a column with that DuckDB type is right-aligned."""
    name = type_name.upper()
    head = name.partition("(")[0].strip()
    return not name.endswith("]") and (head in _NUMBERS or head.removeprefix("U") in _NUMBERS)


def text(value: object) -> str:
    """Returns a number, text, bytes or time as plain text; other types arrive as DuckDB's text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes | bytearray | memoryview):
        return whole(value[: FULL // 2]) + ("…" if len(value) > FULL // 2 else "")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def whole(value: object) -> str:
    """Returns the text of a value with all of its bytes."""
    return f"0x{bytes(value).hex()}" if isinstance(value, bytes | bytearray | memoryview) else text(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def html(value: object) -> str:
    """Returns a value as HTML: NULL grey, long texts and nested values folded, everything escaped."""
    if value is None:
        return NULL
    shown = text(value)
    if len(shown) <= WIDTH:
        return escape(shown)
    whole = escape(shown[:FULL]) if isinstance(value, str) else escape(clip(shown, FULL))
    more = f" <small>… {count(len(shown))} characters</small>" if len(shown) > FULL else ""
    return (
        f'<details><summary>{escape(clip(shown, WIDTH))}</summary><div class="dlk-full">{whole}{more}</div></details>'
    )
