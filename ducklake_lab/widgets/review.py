"""A branch for those who decide over its merge: its commits, its conflicts, its changes, and those of its lake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ducklake_lab.signs import visible
from ducklake_lab.widgets import lake_diff, values
from ducklake_lab.widgets.html import (
    DOT,
    NONE,
    cell,
    clip,
    count,
    counted,
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
    from ducklake_lab.branches.review import Review
    from ducklake_lab.diff.lake import LakeDiff
    from ducklake_lab.merging.conflicts import Conflict

#: Most commits and conflicts that are listed, and most tables of a text.
_COMMITS = 50
_CONFLICTS = 100
_TABLES = 200
#: Characters of a value.
_WIDTH = 80


def render(review: Review) -> str:
    """Returns the whole review as static HTML."""
    head = _header(review) + _commits(review) + _conflicts(review) + _checks(review)
    parts = [view(head, label=f"Review of {review.branch.name}")]
    for title, diff in _parts(review):
        parts += [view(f"<h4>{escape(title)}</h4>", label=title), lake_diff.render(diff)]
    return "".join(parts)


def document(review: Review) -> str:
    """Returns the whole review as a self-contained page, which needs no network."""
    return page(render(review), f"Review of {clip(review.branch.name, 120)}")


def markdown(review: Review) -> str:
    """Returns the review as Markdown, for the text of a pull request."""
    lines = [f"## {_plain(review.lake)}: branch {_plain(review.branch.name)}", "", f"{_facts(review)}.", ""]
    if review.conflicts:
        lines += ["| conflict | base | lake | branch |", "|---|---|---|---|"]
        lines += [
            f"| {_plain(str(one))} | {_cell(one.base)} | {_cell(one.ours)} | {_cell(one.theirs)} |"
            for one in review.conflicts[:_CONFLICTS]
        ]
        if review.total > _CONFLICTS:
            lines.append(f"| {count(review.total - _CONFLICTS)} more | | | |")
        lines.append("")
    if review.checks:
        lines += ["| expectation | definition | outcome |", "|---|---|---|"]
        for one in review.checks:
            word = "passed" if one.passed else f"{one.count:,} violations"
            lines.append(f"| {_plain(f'{one.expectation.name} of {one.table}')} | {_plain(one.shown)} | {word} |")
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


def _facts(review: Review) -> str:
    conflicts = counted(review.total, "conflict") if review.total else "no conflicts"
    began = f"began at snapshot {review.branch.snapshot_id}"
    return DOT.join((began, f"{counted(len(review.commits), 'snapshot')} to merge", conflicts))


def _header(review: Review) -> str:
    return (
        f'<p><span class="dlk-title">{escape(clip(review.lake, 120))}</span>&ensp;<b>branch '
        f"{escape(clip(review.branch.name, 80))}</b></p><p>{escape(_facts(review))}</p>"
    )


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
        for one in review.commits[-_COMMITS:]
    ]
    when = f"time, {zone(review.commits[-1].snapshot_time)}"
    head = (heading("snapshot", right=True), heading(when), heading("author"), heading("message"))
    left = len(review.commits) - _COMMITS
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
        word = "passed" if one.passed else f"{one.count:,} violations"
        shown = [one.table, one.expectation.name, one.shown, word, one.first_text()]
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


def _plain(text: str) -> str:
    """Returns a text that Markdown shows as it is, in a cell of a table too."""
    shown = visible(clip(text, 200)).replace("\n", " ")
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>()#+-!|~&" else sign for sign in shown)


def _cell(value: object) -> str:
    return _plain(clip(_text(value), _WIDTH))
