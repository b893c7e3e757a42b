"""The rows of a result in a terminal."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING

from ducklake_lab.widgets import values
from ducklake_lab.widgets.html import DOT, clip, visible
from ducklake_lab.widgets.result import LIMIT, shown_columns, summary

if TYPE_CHECKING:
    from ducklake_lab.session.rows.result import Result

_CELL = 40
_GAP = "  "


def of_shell(result: Result) -> str:
    """The first rows in IPython's terminal; a line about the columns in a notebook, which shows the rows as HTML."""
    found = sys.modules.get("IPython")
    shell = found.get_ipython() if found is not None else None
    return repr(result) if getattr(shell, "kernel", None) is not None else render(result)


def render(result: Result, width: int | None = None) -> str:
    """The first rows as lines of text, the columns that fit, and a line that says what it cost.

    Args:
        result: whose `limit + 1` rows are computed, as for its HTML.
        width: of the terminal.
    """
    limit = result.limit or LIMIT
    if not result.is_query or not result.columns:
        return summary(result, limit)
    columns: list[list[str]] = []
    room = width or shutil.get_terminal_size().columns
    for name, kind, cells in zip(result.columns, result.types, shown_columns(result, limit), strict=False):
        texts = [clip(visible(text), _CELL) for text in (name, kind.lower(), *map(values.text, cells))]
        wide = max(map(_width, texts))
        room -= wide + len(_GAP)
        if columns and room < -len(_GAP):
            break
        right = values.is_number(kind)
        columns.append([_filled(text, wide, right=right) for text in texts] + ["─" * wide])
    lines = [_GAP.join(parts).rstrip() for parts in zip(*columns, strict=True)]
    rule = lines.pop()
    fit = len(columns) < len(result.columns)
    more = [f"{len(columns)} of {len(result.columns):,} columns"] if fit else []
    return "\n".join([*lines[:2], rule, *lines[2:], DOT.join([*more, summary(result, limit)])])


def _width(text: str) -> int:
    """In cells of a terminal: some letters and signs take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _filled(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
