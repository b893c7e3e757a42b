"""Bars of the largest changes of numbers by group, beside the values before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ducklake_lab.diff.model import ColumnSteps, GroupStep, RowKind
from ducklake_lab.model.history import ChangeKind
from ducklake_lab.model.labels import KIND_COLORS, label
from ducklake_lab.plots.sources import DiffSource
from ducklake_lab.widgets import diff_rows, values
from ducklake_lab.widgets.html import DOT, NONE, cell, clip, counted, escape, heading, scroll, table

#: Most characters of a name, of one value, and of a whole key.
_NAME, _VALUE, _KEY = 40, 64, 160
#: Least width of a bar, in percent.
_THIN = 0.6
_KINDS: dict[RowKind, ChangeKind] = {"inserted": "insert", "deleted": "delete", "updated": "update"}

STYLE = """
.dlk .dlk-gs{container-type:inline-size}
.dlk .dlk-gs .dlk-scroll{max-height:none;border-bottom:0}
.dlk.dlk.dlk .dlk-gs table{width:min(820px,100cqi)}
.dlk.dlk.dlk .dlk-gs tbody td{padding-top:0;padding-bottom:0;border-bottom:0;vertical-align:middle;height:25px}
.dlk.dlk.dlk .dlk-gs td:is(:first-child,:last-child){max-width:17em;overflow:hidden;text-overflow:ellipsis}
.dlk.dlk.dlk .dlk-gs .dlk-gs-bar{width:100%;min-width:90px}
.dlk.dlk.dlk .dlk-gs tr:focus-within td{background:var(--dlk-tint);white-space:normal;overflow-wrap:break-word}
.dlk .dlk-gs details{margin:2px 0}
@container (max-width:640px){.dlk.dlk.dlk .dlk-gs td:first-child{max-width:10.5em}
.dlk.dlk.dlk .dlk-gs td:last-child{max-width:14em}.dlk.dlk.dlk .dlk-gs .dlk-gs-bar{min-width:60px}}
"""


def section(diff: DiffSource) -> str:
    """Returns a chart of each number that changed by group, the first one unfolded; "" where there is none."""
    columns = diff.group_steps
    if not columns:
        return ""
    by = clip(DOT.join(clip(name, _NAME) for name in diff.key), _KEY)
    states = f"snapshot {diff.start.snapshot_id} → {diff.end.snapshot_id if diff.end is not None else ''}"
    heads = (heading(by), heading("change", right=True), heading(""), heading(states))
    note = "later minus earlier"
    if diff.summary.inserted or diff.summary.deleted:
        note += f"{DOT}a group counts 0 where it is not there"
    if len(columns) == 1:
        title, charts = f"Change of {clip(columns[0].column, _NAME)} by {by}", _chart(columns[0], heads)
    else:
        title = f"Change by {by}"
        charts = "".join(_folded(column, heads, is_open=column is columns[0]) for column in columns)
    return f'<div class="dlk-gs"><h4>{escape(title)} <small>{note}</small></h4>{charts}</div>'


def _folded(column: ColumnSteps, heads: Sequence[str], *, is_open: bool) -> str:
    groups = counted(len(column.groups) + column.more, "group")
    name = f"{escape(clip(column.column, _NAME))} <small>in {groups}</small>"
    return f"<details{' open' if is_open else ''}><summary>{name}</summary>{_chart(column, heads)}</details>"


def _chart(column: ColumnSteps, heads: Sequence[str]) -> str:
    """Returns the bars of one column as a table, all on one scale."""
    # an infinite bar is as long as the longest
    lengths = [max(-1.0, min(1.0, group.share or 0.0)) for group in column.groups]
    low, high = min(0.0, *lengths), max(0.0, *lengths)
    rows = (
        _row(group, (length - low) / (high - low), -low / (high - low))
        for group, length in zip(column.groups, lengths, strict=True)
    )
    more = f'<div class="dlk-foot">{counted(column.more, "more group")} changed</div>' if column.more else ""
    return scroll(table(heads, rows), f"Change of {clip(column.column, _NAME)}") + more


def _row(group: GroupStep, end: float, zero: float) -> str:
    """Returns a group with its bar, which reaches from the place of zero to its end; both are shares of the width."""
    texts = (label(None if value is None else values.text(value)) for value in group.key)
    names = clip(DOT.join(clip(text, _VALUE) for text in texts), _KEY)
    told = _told(group)
    step = "" if group.step is None else diff_rows.signed(group.step)
    whole = f"{names}: {told} ({step})" if step else f"{names}: {told}"
    color = KIND_COLORS[_KINDS[group.kind]]
    cells = (
        cell(f'<b style="color:{color}" aria-hidden="true">{diff_rows.MARKS[group.kind]}</b> {escape(names)}'),
        cell(escape(step) or NONE, right=True),
        f'<td class="dlk-gs-bar">{_bar(group, end, zero, color)}</td>',
        cell(f'<span class="dlk-soft">{escape(told)}</span>'),
    )
    return f'<tr title="{escape(whole)}">{"".join(cells)}</tr>'


def _told(group: GroupStep) -> str:
    """Returns the values before and after in words."""
    before, after = (clip(values.text(value), _VALUE) for value in (group.before, group.after))
    if group.kind == "inserted":
        return f"came with {after}"
    return f"went with {before}" if group.kind == "deleted" else f"{before} → {after}"


def _bar(group: GroupStep, end: float, zero: float, color: str) -> str:
    """Returns the bar from zero, and the line of zero; the cells beside it say the same."""
    bar = ""
    if group.share:
        width = max(_THIN, 100 * abs(end - zero))
        left = 100 * zero - (width if end < zero else 0)
        # an infinite step has no length
        dashes = f' fill-opacity=".25" stroke="{color}" stroke-dasharray="3 2"' if math.isinf(group.share) else ""
        bar = f'<rect x="{left:.2f}%" y="6" width="{width:.2f}%" height="13" rx="2" fill="{color}"{dashes}/>'
    at = f"{100 * zero:.2f}%"
    line = f'<line x1="{at}" x2="{at}" y1="0" y2="25" stroke="currentColor" stroke-opacity=".4"/>'
    return f'<svg aria-hidden="true" width="100%" height="25">{bar}{line}</svg>'
