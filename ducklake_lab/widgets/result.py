"""The table under a `%%ducklake` cell."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from ducklake_lab.model.labels import state_title
from ducklake_lab.widgets import checks, values
from ducklake_lab.widgets.html import (
    DOT,
    cell,
    clip,
    count,
    counted,
    escape,
    heading,
    scroll,
    seconds,
    table,
    view,
    visible,
)

if TYPE_CHECKING:
    from ducklake_lab.session.rows.result import Result

#: Default number of rows shown.
LIMIT = 50
#: Hint on how to keep all rows of a cell.
KEEPS = "name << keeps them all"
#: Most columns shown; a wider result shows its number of columns.
COLUMNS = 100

_STYLE = """
.dlk .dlk-full{white-space:pre-wrap;overflow-wrap:anywhere;max-width:60em;max-height:16em;overflow:auto;
font-family:var(--dlk-code);font-size:12px;padding:4px 0}
.dlk.dlk.dlk td:has(>details[open]){white-space:normal}
"""


def render(result: Result, limit: int | None = None) -> str:
    """Returns the first rows as a static table, with a line on cost and further rows.

    Computes `limit + 1` rows (the result's own limit, or LIMIT) and never counts the rest.
    """
    limit = limit or result.limit or LIMIT
    footer = f'<div class="dlk-foot">{escape(summary(result, limit))}</div>'
    if not result.is_query or not result.columns:
        return view(footer, label="Result")
    columns = shown_columns(result, limit)
    numeric = [values.is_number(name) for name in result.types]
    head = [
        heading(clip(result.columns[at], 80), right=numeric[at], note=clip(result.types[at].lower(), 40))
        for at in range(len(columns))
    ]
    rows = [
        "<tr>" + "".join(cell(values.html(row[at]), right=numeric[at]) for at in range(len(row))) + "</tr>"
        for row in zip(*columns, strict=True)
    ]
    return view(
        scroll(table(head, rows), "Rows") + footer + checks.section(result.outcomes),
        style=_STYLE + (checks.STYLE if result.outcomes else ""),
        label="Result",
    )


def shown_columns(result: Result, limit: int) -> list[list[object]]:
    """Returns the displayed values, column by column."""
    shown = result.head(limit + 1).slice(0, limit)
    from ducklake_lab.duckdb.handing import texts_to_show

    return texts_to_show(shown.select(range(min(shown.num_columns, COLUMNS))), result.time_zone)


def summary(result: Result, limit: int = LIMIT, keeps: str = KEEPS) -> str:
    """Returns one line of text: rows, time, snapshot and files.

    Args:
        keeps: the hint on how to get all rows, if some are not shown.
    """
    wide = [f"first {COLUMNS} of {count(len(result.columns))} columns"] if len(result.columns) > COLUMNS else []
    after = facts(result)
    return DOT.join([_extent(result, limit, keeps), *wide, *([after] if after else [])])


def facts(result: Result) -> str:
    """Returns the facts besides the rows: time, snapshot and files."""
    parts = []
    info = result.info
    if info.seconds:
        parts.append(seconds(info.seconds))
    several = len({lake for lake, _ in info.snapshots}) > 1
    if moving := [read for read in info.snapshots if read not in info.pinned]:
        parts.append(_snapshots(moving, info.uncommitted, several=several))
    parts += [
        f"{visible(lake)} pinned at {visible(name)}" if several else f"pinned at {visible(name)}"
        for (lake, _), name in sorted(info.pinned.items())
    ]
    if info.placement is not None and (info.files_total or not info.placement.is_here):
        parts.append(str(info.placement))
    parts += info.remarks
    return DOT.join(parts)


def _snapshots(snapshots: Sequence[tuple[str, int]], uncommitted: Set[tuple[str, int]], *, several: bool) -> str:
    """Returns the snapshots by number, with their lakes if there are several."""
    titles = [
        (lake, state_title(number, uncommitted=(lake, number) in uncommitted)) for lake, number in sorted(snapshots)
    ]
    # a branch has its name always: it is not the lake
    listed = ", ".join(f"{visible(lake)} {title}" if several or "#" in lake else title for lake, title in titles)
    return f"snapshot{'s' if len(snapshots) > 1 else ''} {listed}"


def _extent(result: Result, limit: int, keeps: str) -> str:
    if not result.columns:
        return "done"
    if not result.is_query:
        changed = result.head(1).column(0).to_pylist()
        return f"{counted(int(changed[0]), 'row')} {result.info.counted}" if changed else "done"
    rows = result.head(limit + 1).num_rows
    if rows > limit:
        return f"first {counted(limit, 'row')}; more exist: --limit {limit * 10} shows more, {keeps}"
    return counted(rows, "row")
