"""Changes of a lake between two snapshots: a line per table, and folded diffs of tables."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ducklake_lab.diff.model import ColumnChange
from ducklake_lab.model.history import ChangeKind
from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.widgets import diff as diff_view
from ducklake_lab.widgets.html import (
    DOT,
    MINUS,
    NONE,
    cell,
    clip,
    count,
    counted,
    dot,
    escape,
    heading,
    page,
    scroll,
    table,
    time,
    view,
    zone,
)

if TYPE_CHECKING:
    from ducklake_lab.diff.lake import LakeDiff, TableDiff, TableKind

#: Most tables that are listed, and most with their diff.
_LISTED = 500
_DRAWN = 8
_COLORS: dict[TableKind, ChangeKind] = {
    "dropped": "delete",
    "created": "insert",
    "altered": "schema",
    "changed": "update",
}
_STYLE = """
.dlk .dlk-table{margin:6px 0;border-top:1px solid color-mix(in srgb,currentColor 13%,transparent);padding-top:6px}
.dlk .dlk-table>summary{font-weight:600}
"""


def render(diff: LakeDiff) -> str:
    """Returns the whole diff as static HTML."""
    return view(_header(diff) + _list(diff), style=_STYLE, label=f"Diff of {diff.lake}") + _diffs(diff)


def document(diff: LakeDiff) -> str:
    """Returns the whole diff as a self-contained page, which needs no network."""
    return page(render(diff), f"Diff of {clip(diff.lake, 120)}")


def _header(diff: LakeDiff) -> str:
    if diff.end is None:
        states, facts = f"snapshot {diff.start.snapshot_id} → uncommitted", ""
    else:
        states, end = f"snapshot {diff.start.snapshot_id} → {diff.end.snapshot_id}", diff.end.snapshot_time
        facts = DOT.join((counted(len(diff.history), "snapshot"), f"{time(end)} {zone(end)}"))
    kinds = Counter(one.kind for one in diff)
    said = [f"{counted(kinds[kind], 'table')} {kind}" for kind in _COLORS if kinds[kind]]
    return (
        f'<p><span class="dlk-title">{escape(clip(diff.lake, 160))}</span>&ensp;<b>{states}</b>'
        f'&ensp;<span class="dlk-soft">{escape(facts)}</span></p>'
        f"<p>{DOT.join([*said, f'{count(diff.unchanged)} unchanged'])}</p>"
    )


def _list(diff: LakeDiff) -> str:
    if diff.is_empty:
        return ""
    rows = [f"<tr>{''.join(_cells(one))}</tr>" for one in diff[:_LISTED]]
    head = (
        heading("table"),
        heading("change"),
        heading("deleted", right=True),
        heading("inserted", right=True),
        heading("updated", right=True),
        heading("cells", right=True),
        heading("columns"),
    )
    more = f'<div class="dlk-foot">{counted(len(diff) - _LISTED, "more table")}</div>' if len(diff) > _LISTED else ""
    return scroll(table(head, rows), "Tables that differ") + more


def _cells(one: TableDiff) -> list[str]:
    was = f' <span class="dlk-soft">was {escape(clip(one.renamed_from, 80))}</span>' if one.renamed_from else ""
    s = one.summary
    return [
        cell(f"<b>{escape(clip(one.name, 80))}</b>{was}"),
        cell(dot(_COLORS[one.kind]) + one.kind),
        _number(s.deleted, MINUS, "delete"),
        _number(s.inserted, "+", "insert"),
        _number(s.updated, "→", "update"),
        cell(count(s.cells) if s.cells else NONE, right=True),
        cell(_columns(one.schema), wrap=True),
    ]


def _number(number: int, mark: str, kind: ChangeKind) -> str:
    if not number:
        return cell(NONE, right=True)
    return cell(f'<span style="color:{KIND_COLORS[kind]}" aria-hidden="true">{mark}</span> {count(number)}', right=True)


def _columns(changes: Sequence[ColumnChange]) -> str:
    """Returns each change of a column in a few words, as HTML."""
    return DOT.join(map(escape, column_words(changes)))


def column_words(changes: Sequence[ColumnChange]) -> list[str]:
    """Returns the first changes of columns in a few words each, and how many more there are."""
    words = []
    for change in changes[:6]:
        before, after = change.before or ("", ""), change.after or ("", "")
        text = {
            "added": f"+ {after[0]} {after[1].lower()}",
            "dropped": f"{MINUS} {before[0]}",
            "renamed": f"{before[0]} → {after[0]}",
            "retyped": f"{after[0]} {before[1].lower()} → {after[1].lower()}",
        }[change.kind]
        words.append(clip(text, 80))
    more = [f"{count(len(changes) - 6)} more"] if len(changes) > 6 else []
    return [*words, *more]


def _diffs(diff: LakeDiff) -> str:
    """Returns the diffs of the first tables in both states, and the commands that show the rows of the others."""
    both = [one for one in diff if one.kind in ("altered", "changed")]
    folded = "".join(
        f'<details class="dlk-table"><summary>{escape(clip(one.name, 160))}</summary>{diff_view.render(one.diff)}</details>'
        for one in both[:_DRAWN]
    )
    start = diff.start.snapshot_id
    left = [(diff.of_kind("dropped"), "dropped table", f"preview {{}} --at {start}")]
    if diff.end is not None:
        end = diff.end.snapshot_id
        left = [
            (both[_DRAWN:], "more table", f"diff {{}} {start} {end}"),
            (diff.of_kind("created"), "created table", f"preview {{}} --at {end}"),
            *left,
        ]
    more = "".join(_hint(tables, kind, command) for tables, kind, command in left if tables)
    return view(folded + more, style=_STYLE, label="Tables") if diff else ""


def _hint(tables: Sequence[TableDiff], kind: str, command: str) -> str:
    """Returns the number of omitted tables, and the command for the first one's rows."""
    shown = "%ducklake " + command.format(shlex.quote(tables[0].name))
    return f'<div class="dlk-foot">{counted(len(tables), kind)}: <code class="dlk-mono">{escape(shown)}</code></div>'
