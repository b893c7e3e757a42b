"""The rows of a result in a terminal, and in Markdown."""

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
#: Characters that Markdown reads.
_MARKDOWN = re.compile(r"[\\`*_\[\]|~]")


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
    """Lines of text for columns of values, under their names and types, and how many columns fit.

    Args:
        kinds: DuckDB's names of the types; numbers stand to the right.
        width: of the terminal.
        cell: characters of a value at most.
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
    """Lines of a table in Markdown; values are whole, and mean nothing to Markdown or HTML."""
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
    """In cells of a terminal: some letters and signs take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _filled(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
