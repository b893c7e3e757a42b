"""How one value of a table reads in a cell."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal

from ducklake_lab.widgets.html import clip, count, escape

#: Longer texts are folded; their whole length is shown up to FULL characters.
WIDTH = 64
FULL = 2000

NULL = '<i class="dlk-soft">NULL</i>'

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "REAL", "DECIMAL", "NUMERIC")


def is_number(type_name: str) -> bool:
    """Whether a column of that DuckDB type is aligned to the right."""
    name = type_name.upper()
    head = name.partition("(")[0].strip()
    return not name.endswith("]") and (head in _NUMBERS or head.removeprefix("U") in _NUMBERS)


def text(value: object) -> str:
    """A number, text, bytes or time as plain text; values of other types come as DuckDB's texts of them."""
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
    """As `text`, of bytes all of them."""
    return f"0x{bytes(value).hex()}" if isinstance(value, bytes | bytearray | memoryview) else text(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def html(value: object) -> str:
    """A value as HTML: NULL grey, long texts and nested values folded, everything escaped."""
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
