"""Formats the rows of a result for terminals, and as Markdown."""

from __future__ import annotations

import html
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ducklake_lab.widgets import values
from ducklake_lab.widgets.html import DOT, clip, visible
from ducklake_lab.widgets.result import LIMIT, shown_columns, summary

if TYPE_CHECKING:
    from ducklake_lab.session.rows.result import Result

_CELL = 40
_GAP = "  "
#: Characters with a meaning in Markdown.
_MARKDOWN = re.compile(r"[\\`*_\[\]|~]")


def of_shell(result: Result) -> str:
    """Returns the first rows in IPython's terminal; in a notebook, which shows HTML, a line about the columns."""
    return repr(result) if has_kernel() else render(result)


def has_kernel() -> bool:
    """Returns whether a kernel of IPython runs this code; its terminal has none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def render(result: Result, width: int | None = None) -> str:
    """Returns the first rows as lines of text, with the columns that fit, and a line on the cost.

    Args:
        result: the result; `limit + 1` rows are computed, as for its HTML.
        width: the width of the terminal.
    """
    limit = result.limit or LIMIT
    if not result.is_query or not result.columns:
        return summary(result, limit)
    lines, columns = aligned(result.columns, result.types, shown_columns(result, limit), width)
    more = [f"{columns} of {len(result.columns):,} columns"] if columns < len(result.columns) else []
    return "\n".join([*lines, DOT.join([*more, summary(result, limit)])])


def aligned(
    names: Sequence[str],
    kinds: Sequence[str],
    columns: Sequence[Sequence[object]],
    width: int | None = None,
    cell: int = _CELL,
) -> tuple[list[str], int]:
    """Returns lines of text for columns, under their names and types, and the number of columns that fit.

    Args:
        kinds: DuckDB's type names; numbers are right-aligned.
        width: the width of the terminal.
        cell: most characters of a value.
    """
    made: list[list[str]] = []
    room = width or shutil.get_terminal_size().columns
    for name, kind, cells in zip(names, kinds, columns, strict=False):
        texts = [clip(visible(text), cell) for text in (name, kind.lower(), *map(values.text, cells))]
        wide = max(map(_width, texts))
        room -= wide + len(_GAP)
        if made and room < -len(_GAP):
            break
        right = values.is_number(kind)
        made.append([_filled(text, wide, right=right) for text in texts] + ["─" * wide])
    lines = [_GAP.join(parts).rstrip() for parts in zip(*made, strict=True)]
    rule = lines.pop()
    return [*lines[:2], rule, *lines[2:]], len(made)


def markdown(names: Sequence[str], kinds: Sequence[str], columns: Sequence[Sequence[object]]) -> list[str]:
    """Returns the lines of a Markdown table with whole values, escaped for Markdown and HTML."""
    cells = [
        [_in_markdown(name), *(_in_markdown(values.whole(value)) for value in column)]
        for name, column in zip(names, columns, strict=True)
    ]
    head, *rows = (f"| {' | '.join(parts)} |" for parts in zip(*cells, strict=True))
    rule = "|".join("---:" if values.is_number(kind) else "---" for kind in kinds)
    return [head, f"|{rule}|", *rows]


def _in_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def _width(text: str) -> int:
    """Returns the width in terminal cells: some characters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _filled(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
