"""A branch for those who decide over its merge: its commits, conflicts, remarks, changes, and those of its lake, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ducklake_lab.branches.remarks import DEEDS
from ducklake_lab.signs import visible
from ducklake_lab.widgets import lake_diff, values
from ducklake_lab.widgets.html import (
    DOT,
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
    from ducklake_lab.branches.remarks import Remark
    from ducklake_lab.branches.review import Review
    from ducklake_lab.diff.lake import LakeDiff
    from ducklake_lab.expectations.outcomes import Outcome
    from ducklake_lab.merging.conflicts import Conflict
    from ducklake_lab.model.history import ChangeKind

#: Most commits and conflicts that are listed, and most tables of a text.
COMMITS = 50
_CONFLICTS = 100
_TABLES = 200
#: Characters of a value.
_WIDTH = 80
#: Most options and remarks that are listed.
_OPTIONS, _REMARKS = 50, 200
#: Colour of each verdict, beside its words.
_COLORS: dict[str, ChangeKind] = {
    "approved": "insert",
    "changes asked for": "delete",
    "approved earlier": "update",
}
_STYLE = """
.dlk .dlk-rv-text{white-space:pre-wrap;overflow-wrap:anywhere;min-width:14em;max-width:80ch}
"""


def render(review: Review) -> str:
    """Returns the whole review as static HTML."""
    head = (
        _header(review) + _remarks(review) + _options(review) + _commits(review) + _conflicts(review) + _checks(review)
    )
    parts = [view(head, style=_STYLE, label=f"Review of {review.branch.name}")]
    for title, diff in _parts(review):
        parts += [view(f"<h4>{escape(title)}</h4>", label=title), lake_diff.render(diff)]
    return "".join(parts)


def document(review: Review) -> str:
    """Returns the whole review as a self-contained page, which needs no network."""
    return page(render(review), f"Review of {clip(review.branch.name, 120)}")


def markdown(review: Review) -> str:
    """Returns the review as Markdown, for the text of a pull request."""
    lines = [f"## {_plain(review.lake)}: branch {_plain(review.branch.name)}", "", f"{facts(review)}.", ""]
    if review.conflicts:
        lines += ["| conflict | base | lake | branch |", "|---|---|---|---|"]
        lines += [
            f"| {_plain(str(one))} | {_cell(one.base)} | {_cell(one.ours)} | {_cell(one.theirs)} |"
            for one in review.conflicts[:_CONFLICTS]
        ]
        if review.total > _CONFLICTS:
            lines.append(f"| {count(review.total - _CONFLICTS)} more | | | |")
        lines.append("")
    if review.remarks:
        lines += ["### Remarks", "", *(_remark_line(one) for one in review.remarks[-_REMARKS:]), ""]
    if review.options:
        lines += ["### Options that differ, and are not merged", ""]
        lines += [f"- {_plain(str(one))}" for one in review.options[:_OPTIONS]] + [""]
    if review.checks:
        lines += ["| expectation | definition | outcome | first rows |", "|---|---|---|---|"]
        for one in review.checks:
            of, first = f"{one.expectation.name} of {one.table}", _plain(one.first_text())
            lines.append(f"| {_plain(of)} | {_plain(one.shown)} | {_plain(one.summary)} | {first} |")
        lines.append("")
    for title, diff in _parts(review):
        lines += [f"### {title}", ""]
        if diff.is_empty:
            lines += ["No table differs.", ""]
            continue
        lines += ["| table | change | deleted | inserted | updated |", "|---|---|--:|--:|--:|"]
        for one in diff[:_TABLES]:
            s = one.summary
            lines.append(f"| {_plain(one.name)} | {one.kind} | {s.deleted:,} | {s.inserted:,} | {s.updated:,} |")
        if len(diff) > _TABLES:
            lines.append(f"| {count(len(diff) - _TABLES)} more | | | | |")
        lines.append("")
    return "\n".join(lines)


def _parts(review: Review) -> tuple[tuple[str, LakeDiff], ...]:
    return ("What the branch changed", review.tables), ("What the lake changed meanwhile", review.base_changes)


def facts(review: Review) -> str:
    """Returns a line of facts: where the branch began, snapshots, conflicts, expectations, and the verdict."""
    conflicts = counted(review.total, "conflict") if review.total else "no conflicts"
    began = f"began at snapshot {review.branch.snapshot_id}"
    said = [began, f"{counted(len(review.commits), 'snapshot')} to merge", conflicts]
    if review.checks:
        expected = {(one.table, one.expectation.name) for one in review.checks}
        failed, of = len(failures(review)), counted(len(expected), "expectation")
        said.append(f"{failed:,} of {of} failed" if failed else f"{of} passed")
    return DOT.join(said if review.verdict is None else [*said, review.verdict])


def failures(review: Review) -> dict[tuple[str, str], list[Outcome]]:
    """Returns the outcomes that rows violate, by table and name of their expectations."""
    by_expectation: dict[tuple[str, str], list[Outcome]] = {}
    for one in review.checks:
        if not one.passed:
            by_expectation.setdefault((one.table, one.expectation.name), []).append(one)
    return by_expectation


def _header(review: Review) -> str:
    return (
        f'<p><span class="dlk-title">{escape(clip(review.lake, 120))}</span>&ensp;<b>branch '
        f"{escape(clip(review.branch.name, 80))}</b></p><p>{escape(facts(review))}</p>"
    )


def _remarks(review: Review) -> str:
    if not review.remarks:
        return ""
    rows = [
        "<tr>"
        + cell(dot(_COLORS[DEEDS[one.kind]]) + DEEDS[one.kind] if one.kind != "comment" else "comment")
        + cell(escape(clip(one.author or "", 40)) or NONE)
        + cell(escape(time(one.time)))
        + cell(escape(clip(one.about, 160)) or NONE)
        + f'<td class="dlk-wrap"><div class="dlk-rv-text">{_lines(one.text) or NONE}</div></td>'
        + "</tr>"
        for one in review.remarks[-_REMARKS:]
    ]
    left = len(review.remarks) - _REMARKS
    more = f'<div class="dlk-foot">{counted(left, "earlier remark")}</div>' if left > 0 else ""
    when = f"time, {zone(review.remarks[-1].time)}"
    head = (heading("remark"), heading("author"), heading(when), heading("on"), heading("text"))
    return "<h4>Remarks</h4>" + scroll(table(head, rows), "Remarks on the branch") + more


def _lines(text: str) -> str:
    return "\n".join(map(escape, text.splitlines()))


def _remark_line(one: Remark) -> str:
    about = f" on {_plain(one.about)}" if one.about else ""
    text = _plain(" ".join(one.text.split()), 2_000)
    said = f": {text}" if text else ""
    return f"- **{DEEDS[one.kind]}** by {_plain(one.author or 'somebody')}{about}{said}"


def _options(review: Review) -> str:
    if not review.options:
        return ""
    rows = []
    for one in review.options[:_OPTIONS]:
        values_ = [NONE if value is None else escape(clip(value, _WIDTH)) for value in (one.ours, one.theirs)]
        of = escape(clip(one.entry, 80)) if one.entry is not None else NONE
        rows.append(f"<tr>{''.join(map(cell, (escape(clip(one.key, 80)), of, *values_)))}</tr>")
    head = tuple(heading(name) for name in ("option", "of", "lake", "branch"))
    left = len(review.options) - _OPTIONS
    more = f'<div class="dlk-foot">{counted(left, "more option")}</div>' if left > 0 else ""
    title = "<h4>Options that differ <small>a merge leaves those of the lake</small></h4>"
    return title + scroll(table(head, rows), "Options that differ") + more


def _commits(review: Review) -> str:
    if not review.commits:
        return ""
    rows = [
        "<tr>"
        + cell(str(one.snapshot_id), right=True)
        + cell(escape(time(one.snapshot_time)))
        + cell(escape(clip(one.author or "", 40)) or NONE)
        + cell(escape(clip(one.commit_message or "", 200)) or NONE, wrap=True)
        + "</tr>"
        for one in review.commits[-COMMITS:]
    ]
    when = f"time, {zone(review.commits[-1].snapshot_time)}"
    head = (heading("snapshot", right=True), heading(when), heading("author"), heading("message"))
    left = len(review.commits) - COMMITS
    more = f'<div class="dlk-foot">{counted(left, "earlier snapshot")}</div>' if left > 0 else ""
    return "<h4>Snapshots</h4>" + scroll(table(head, rows), "Snapshots of the branch") + more


def _conflicts(review: Review) -> str:
    if not review.conflicts:
        return ""
    rows = [_conflict(one) for one in review.conflicts[:_CONFLICTS]]
    head = tuple(heading(name) for name in ("table", "row", "column", "base", "lake", "branch", "why"))
    left = review.total - _CONFLICTS
    more = f'<div class="dlk-foot">{counted(left, "more conflict")}</div>' if left > 0 else ""
    return "<h4>Conflicts</h4>" + scroll(table(head, rows), "Conflicts") + more


def _checks(review: Review) -> str:
    if not review.checks:
        return ""
    rows = []
    for one in review.checks:
        shown = [one.table, one.expectation.name, one.shown, one.summary, one.first_text()]
        rows.append(f"<tr>{''.join(cell(escape(clip(text, 200)) or NONE, wrap=True) for text in shown)}</tr>")
    head = tuple(heading(name) for name in ("table", "expectation", "definition", "outcome", "first rows"))
    return "<h4>Expectations</h4>" + scroll(table(head, rows), "Expectations")


def _conflict(one: Conflict) -> str:
    row = str(one.row_id) if one.row_id is not None else NONE
    column = escape(clip(one.column, 80)) if one.column is not None else NONE
    shown = [escape(clip(_text(value), _WIDTH)) for value in (one.base, one.ours, one.theirs)]
    cells = [escape(clip(one.table, 80)), row, column, *shown, escape(one.reason)]
    return f"<tr>{''.join(cell(text) for text in cells)}</tr>"


def _text(value: object) -> str:
    """Returns a value of a conflict; that of a row is its cells."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {values.text(item)}" for name, item in value.items())
    return values.text(value) if value is not None else "–"


def _plain(text: str, width: int = 200) -> str:
    """Returns a text that Markdown shows as it is, in a cell of a table too."""
    shown = visible(clip(text, width)).replace("\n", " ")
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>()#+-!|~&" else sign for sign in shown)


def _cell(value: object) -> str:
    return _plain(clip(_text(value), _WIDTH))
