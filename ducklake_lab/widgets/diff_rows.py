"""Changed rows in a table: what is gone, what is new, and old → new where a cell changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ducklake_lab.diff.model import ColumnDiff, DiffSummary, RowChange
from ducklake_lab.widgets import values
from ducklake_lab.widgets.html import MINUS, clip, count, counted, escape, heading, scroll, table

#: Unchanged columns kept beside changed ones, and columns shown in all.
_CONTEXT = 5
_COLUMNS = 60
#: Rows fetched for the view.
LIMIT = 50

MARKS = {"deleted": MINUS, "inserted": "+", "updated": "→"}

STYLE = """
.dlk.dlk.dlk .dlk-deleted,.dlk.dlk.dlk .dlk-deleted:hover{background:color-mix(in srgb,var(--dlk-delete) 11%,transparent)}
.dlk.dlk.dlk .dlk-inserted,.dlk.dlk.dlk .dlk-inserted:hover{background:color-mix(in srgb,var(--dlk-insert) 13%,transparent)}
.dlk.dlk.dlk .dlk-edit{background:color-mix(in srgb,var(--dlk-update) 20%,transparent)}
.dlk.dlk.dlk .dlk-rows td,.dlk.dlk.dlk .dlk-rows th{padding-left:8px;padding-right:8px}
.dlk .dlk-edit del{opacity:.72}.dlk .dlk-edit ins{text-decoration:none;font-weight:600}
.dlk .dlk-mark{font-weight:700}
"""


def section(rows: Sequence[RowChange], summary: DiffSummary, columns: Sequence[ColumnDiff]) -> str:
    """The rows as a heading and a table; "" where nothing changed."""
    if not rows:
        return ""
    names = _names(rows, columns)
    shown = _shown(names, rows)
    types = {column.name: column.type for column in columns}
    numeric = {name: values.is_number(types.get(name, "")) for name in shown}
    head = [heading(""), heading("row id", right=True), *(heading(name, right=numeric[name]) for name in shown)]
    body = []
    for row in rows:
        cells = (_cell(row, name, numeric[name]) for name in shown)
        body.append(
            f'<tr class="dlk-{row.kind}"><td title="{row.kind}" class="dlk-mark">{MARKS[row.kind]}</td>'
            f'<td align="right"><span class="dlk-soft">{row.row_id}</span></td>{"".join(cells)}</tr>'
        )
    listing = table(head, body).replace("<table>", '<table class="dlk-rows">', 1)
    amount = counted(summary.changed, "row")
    note = f"first {count(len(rows))} of {count(summary.changed)}" if len(rows) < summary.changed else amount
    if len(shown) < len(names):
        hidden = [name for name in names if name not in shown]
        listed = ", ".join(clip(name, 40) for name in hidden[:30]) + (", …" if len(hidden) > 30 else "")
        note += f" · {counted(len(hidden), 'more column')} not shown: {listed}"
    return f"<h4>Rows <small>{escape(note)}</small></h4>{scroll(listing, 'Changed rows')}"


def _names(rows: Iterable[RowChange], columns: Sequence[ColumnDiff]) -> list[str]:
    """All column names: those of the later schema in order, then dropped ones."""
    names = {column.name: None for column in columns}
    for row in rows:
        names |= dict.fromkeys(row.after or {}) | dict.fromkeys(row.before or {})
    return list(names)


def _shown(names: Sequence[str], rows: Sequence[RowChange]) -> list[str]:
    """Updates alone need the changed columns and a few to recognise the row by; other rows need all."""
    changed = {name for row in rows for name in row.changed}
    if any(row.kind != "updated" for row in rows):
        first = set(names[:_COLUMNS]) | set(list(changed)[:_COLUMNS])
    else:
        first = changed | set([name for name in names if name not in changed][:_CONTEXT])
    return [name for name in names if name in first][:_COLUMNS]


def _cell(row: RowChange, name: str, right: bool) -> str:
    align = ' align="right"' if right else ""
    if name in row.changed and row.before is not None and row.after is not None:
        old = values.html(row.before[name]) if name in row.before else ""
        new = values.html(row.after[name]) if name in row.after else ""
        return f'<td{align} class="dlk-edit"><del>{old}</del> → <ins>{new}</ins></td>'
    side = row.after if row.after is not None else row.before
    if side is None or name not in side:
        return f"<td{align}></td>"
    return f"<td{align}>{values.html(side[name])}</td>"
