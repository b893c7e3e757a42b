"""Conflicts as rows of a page's grid: texts of their place, their three values and their reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ducklake_lab.widgets import values
from ducklake_lab.widgets.arrow import pack
from ducklake_lab.widgets.html import clip, visible

#: Characters of a value.
_TEXT = 200


def packed(conflicts: Sequence[Any], heads: Sequence[str], rules: Sequence[str | None] | None = None) -> bytes:
    """Returns conflicts with the names of their three values, and the rules that settle them.

    Args:
        rules: of each conflict; None for a view that settles none.
    """
    if not conflicts:
        return pack({})
    names = ("table", "row", "column", *heads, "why")
    shown = zip(*map(texts, conflicts), strict=True)
    columns: dict[str, tuple[str, list[object]]] = {
        name: ("text", list(each)) for name, each in zip(names, shown, strict=True)
    }
    return pack(columns if rules is None else {**columns, "rule": ("text", list(rules))})


def texts(conflict: Any) -> tuple[Any, ...]:
    """Returns table, row id, column, the three values and the reason as texts; None for NULL."""
    is_cell = conflict.row_id is not None and conflict.column is not None
    three = [_text(value, is_cell=is_cell) for value in conflict.versions]
    row = "" if conflict.row_id is None else str(conflict.row_id)
    return _clip(conflict.table), row, _clip(conflict.column or ""), *three, _clip(conflict.reason)


def _text(value: object, *, is_cell: bool) -> str | None:
    if isinstance(value, Mapping):
        return _clip(
            ", ".join(f"{name} {null(None if one is None else values.text(one))}" for name, one in value.items())
        )
    if value is None:
        return None if is_cell else "–"
    return _clip(values.text(value))


def null(text: str | None) -> str:
    return "NULL" if text is None else text


def _clip(text: str) -> str:
    return visible(clip(text, _TEXT))
