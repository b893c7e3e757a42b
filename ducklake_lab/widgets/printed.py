"""Results as text for a terminal, a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from ducklake_lab.session.rows.printing import json_lines
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.rows.saving import csv_lines
from ducklake_lab.widgets.result import shown_columns
from ducklake_lab.widgets.text import aligned, markdown
from ducklake_lab.widgets.values import FULL


def printed(
    result: Result, form: str, limit: int | None, footer: Callable[[], str], *, is_terminal: bool
) -> Iterator[str]:
    """Yields the first rows of a result as text: `table`, `markdown`, `json` or `csv`; the first two have a footer.

    Args:
        limit: rows at most; None for all.
        is_terminal: the text is shown; a file or a pipe has room for all columns, and for whole values.
    """
    if form in ("json", "csv"):
        rows = result.carried() if limit is None else result.head(limit)
        if rows.num_columns:
            yield from (json_lines if form == "json" else csv_lines)(rows, result.time_zone)
        return
    lines: list[str] = []
    fit = ""
    if result.is_query and result.columns and limit is not None:
        shown = shown_columns(result, limit)
        if form == "table":
            room = {} if is_terminal else {"width": sys.maxsize, "cell": FULL}
            lines, columns = aligned(result.columns, result.types, shown, **room)
            fit = f"{columns} of {len(shown):,} columns · " if columns < len(shown) else ""
        else:
            lines = [*markdown(result.columns, result.types, shown), ""]
    yield "\n".join([*lines, f"{fit}{footer()}", ""])
