"""Changes of a table between two states: counts, columns, patterns, rows, files."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename

from ducklake_lab.diff.model import ColumnChange, ColumnDiff, DiffSummary, FileChange, FileDiff, Pattern
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.plots.sources import DiffSource
from ducklake_lab.widgets import charts, diff_rows, group_steps, timeline
from ducklake_lab.widgets.html import (
    DOT,
    KIND_LABELS,
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
    percent,
    scroll,
    signed,
    size,
    table,
    time,
    view,
    zone,
)

_PATTERNS = 6
_HISTOGRAMS = 8
#: Most files and commits listed.
_FILES = 100
_COMMITS = 50

_STYLE = """
.dlk .dlk-counts{display:flex;flex-wrap:wrap;gap:6px 26px;align-items:baseline;margin:10px 0 8px}
.dlk .dlk-counts span>b{font-size:19px;font-weight:600;margin-right:5px}
.dlk .dlk-counts i{font-style:normal;font-weight:700;margin-right:4px;font-size:17px}
.dlk .dlk-zero{opacity:.78}
.dlk .dlk-whole{display:flex;gap:2px;height:7px;margin-bottom:4px}
.dlk .dlk-whole i{border-radius:2px;min-width:3px}
.dlk ul.dlk-facts{margin:4px 0;padding:0;list-style:none}
"""

_KINDS = (("deleted", "delete", MINUS), ("inserted", "insert", "+"), ("updated", "update", "→"))


def render(diff: DiffSource) -> str:
    """Returns the whole diff as static HTML."""
    parts = (
        _header(diff),
        _counts(diff.summary),
        _sampled(diff),
        _schema(diff.schema),
        _columns(diff.columns, diff.summary),
        _patterns(diff.patterns),
        group_steps.section(diff),
        diff_rows.section(diff),
        _histograms(diff.columns),
        _files(diff.files),
        _history(diff.history),
    )
    return view("".join(parts), style=_STYLE + group_steps.STYLE + diff_rows.STYLE, label=f"Diff of {diff.table}")


def document(diff: DiffSource) -> str:
    """Returns the whole diff as a self-contained page, which needs no network."""
    return page(render(diff), f"Diff of {clip(diff.table, 120)}")


def picture(diff: DiffSource) -> str:
    """Returns the counts and distributions only, for a figure of the diff."""
    parts = (_header(diff), _counts(diff.summary), _histograms(diff.columns))
    return view("".join(parts), style=_STYLE, label=f"Picture of the diff of {diff.table}")


#: The later state of an open change; the view replaces it when the change ends.
NOT_COMMITTED = '<span class="dlk-pv-state">not committed yet</span>'


def _header(diff: DiffSource) -> str:
    start, end = diff.start, diff.end
    if end is None:
        states = f"snapshot {start.snapshot_id} → {NOT_COMMITTED}"
        said = ""
    else:
        states = f"snapshot {start.snapshot_id} → {end.snapshot_id}"
        said = DOT.join(part for part in (end.commit_message, end.author, _when(end)) if part)
    if diff.other is not None:
        states += f" of {escape(clip(diff.other, 160))}"
    if diff.key:
        said = DOT.join(part for part in (f"paired by {', '.join(diff.key)}", said) if part)
    return (
        f'<p><span class="dlk-title">{escape(clip(diff.table, 160))}</span>&ensp;<b>{states}</b>'
        f'&ensp;<span class="dlk-soft">{escape(clip(said, 300))}</span></p>'
    )


def _sampled(diff: DiffSource) -> str:
    """Returns a note that only a sample of the rows was compared; "" if all were."""
    if diff.sampled is None:
        return ""
    return (
        f'<p class="dlk-soft" role="note">Counted over all {counted(diff.summary.changed, "changed row")}; segments, rows '
        f"and distributions are from a sample of {count(diff.sampled)} of them.</p>"
    )


def _counts(summary: DiffSummary) -> str:
    numbers = {"deleted": summary.deleted, "inserted": summary.inserted, "updated": summary.updated}
    spans = []
    for name, kind, mark in _KINDS:
        zero = "" if numbers[name] else ' class="dlk-zero"'
        color = f' style="color:{KIND_COLORS[kind]}"' if numbers[name] else ""  # type: ignore[index]
        spans.append(f'<span{zero}><i{color} aria-hidden="true">{mark}</i><b>{count(numbers[name])}</b> {name} </span>')
    spans.append(f'<span class="dlk-zero"><b>{count(summary.unchanged)}</b> unchanged</span>')
    if summary.cells:
        cells = "cell" if summary.cells == 1 else "cells"
        spans.append(f'<span class="dlk-zero"><b>{count(summary.cells)}</b> {cells} changed</span>')
    return f'<div class="dlk-counts">{"".join(spans)}</div>{_whole(summary)}'


def _whole(summary: DiffSummary) -> str:
    """Returns one thin bar with the changed share of the table."""
    shares = (
        (summary.deleted, KIND_COLORS["delete"]),
        (summary.inserted, KIND_COLORS["insert"]),
        (summary.updated, KIND_COLORS["update"]),
        (summary.unchanged, "color-mix(in srgb,currentColor 12%,transparent)"),
    )
    pieces = "".join(f'<i style="flex:{number};background:{color}"></i>' for number, color in shares if number)
    return f'<div class="dlk-whole" aria-hidden="true">{pieces}</div>' if pieces else ""


def _patterns(patterns: Sequence[Pattern]) -> str:
    if not patterns:
        return ""
    items = "".join(
        f"<li><b>{escape(percent(pattern.share))}</b> of {pattern.kind} rows have "
        f'<code class="dlk-mono">{escape(clip(pattern.condition, 160))}</code>{_among_unchanged(pattern)}</li>'
        for pattern in patterns[:_PATTERNS]
    )
    return f'<h4>Where the changes concentrate</h4><ul class="dlk-facts">{items}</ul>'


def _among_unchanged(pattern: Pattern) -> str:
    share = pattern.unchanged_share
    return "" if share is None else f", <b>{escape(percent(share))}</b> of unchanged rows"


def _schema(changes: Sequence[ColumnChange]) -> str:
    if not changes:
        return ""
    items = "".join(f"<li>{_change(change)}</li>" for change in changes[:100])
    more = f"<li>{count(len(changes) - 100)} more</li>" if len(changes) > 100 else ""
    return f'<h4>Schema</h4><ul class="dlk-facts">{items}{more}</ul>'


def _change(change: ColumnChange) -> str:
    old = _column(change.before)
    new = _column(change.after)
    if change.before is None:
        return f"<b>+</b> added {new}"
    if change.after is None:
        return f"<b>{MINUS}</b> dropped {old}"
    return f"<b>→</b> {change.kind} {old} to {new}"


def _column(column: tuple[str, str] | None) -> str:
    if column is None:
        return ""
    return f'<b>{escape(clip(column[0], 80))}</b> <span class="dlk-mono dlk-soft">{escape(clip(column[1].lower(), 80))}</span>'


def _columns(columns: Sequence[ColumnDiff], summary: DiffSummary) -> str:
    """Returns the columns that updates changed; "" without updates."""
    changed = sorted((column for column in columns if column.updated), key=lambda column: -column.updated)
    if not changed:
        return ""
    rows = []
    for column in changed[:30]:
        cells = (
            cell(_name(column)),
            cell(charts.share_bar(column.share, KIND_COLORS["update"])),
            cell(escape(percent(column.share)), right=True),
            cell(f'<span class="dlk-soft">{counted(column.updated, "row")}</span>', right=True),
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    same = len(columns) - len(changed)
    note = f"share of {counted(summary.updated, 'updated row')}"
    if same:
        note += f" · {counted(same, 'column')} unchanged"
    head = (heading("column"), heading("changed"), heading("share", right=True), heading("rows", right=True))
    return f"<h4>Columns <small>{note}</small></h4>{table(head, rows)}"


def _name(column: ColumnDiff) -> str:
    was = f' <span class="dlk-soft">was {escape(clip(column.renamed_from, 60))}</span>' if column.renamed_from else ""
    return escape(clip(column.name, 60)) + was


def _histograms(columns: Sequence[ColumnDiff]) -> str:
    drawn = [(column.name, column.histogram) for column in columns if column.histogram is not None]
    # updated columns come first
    drawn.sort(key=lambda item: -next(column.share for column in columns if column.name == item[0]))
    figures = [charts.histogram(name, data) for name, data in drawn if data.labels][:_HISTOGRAMS]
    if not figures:
        return ""
    legend = ""
    paired = next((data for _, data in drawn if any(data.before) and any(data.after)), None)
    if paired is not None:
        old, new = charts.colors(paired)
        legend = f'<span style="color:{old}">■</span> before <span style="color:{new}">□</span> after'
    return (
        f"<h4>Distributions <small>values in the changed rows&ensp;{legend}</small></h4>"
        f'<div class="dlk-cols">{"".join(figures)}</div>'
    )


def _files(files: FileDiff | None) -> str:
    """Returns the files that differ; "" for rows of no table."""
    if files is None:
        return ""
    facts = [f"{count(files.unchanged)} unchanged"]
    if files.added:
        facts.append(f"+{counted(files.added, 'data file')} ({size(files.bytes_added)})")
    if files.removed:
        facts.append(f"{MINUS}{counted(files.removed, 'data file')} ({size(files.bytes_removed)})")
    if files.delete_files_added:
        facts.append(f"+{counted(files.delete_files_added, 'delete file')} ({size(files.delete_bytes_added)})")
    listed = [("+", file) for file in files.only_after] + [(MINUS, file) for file in files.only_before]
    if not listed:
        return f"<h4>Files <small>{DOT.join(facts)}</small></h4>"
    rows = [_file(mark, file) for mark, file in listed[:_FILES]]
    head = (heading(""), heading("file"), heading("kind"), heading("rows", right=True), heading("size", right=True))
    more = f'<div class="dlk-foot">{counted(len(listed) - _FILES, "more file")}</div>' if len(listed) > _FILES else ""
    names = f"<details><summary>{counted(len(listed), 'file')} by name</summary>{table(head, rows)}{more}</details>"
    return f"<h4>Files <small>{DOT.join(facts)}</small></h4>{names}"


def _file(mark: str, file: FileChange) -> str:
    name = basename(file.path)
    cells = (
        cell(mark, title="only in the later state" if mark == "+" else "only in the earlier state"),
        cell(f'<span class="dlk-mono">{escape(clip(name, 80))}</span>', title=file.path),
        cell("data file" if file.kind == "data" else "delete file"),
        cell(count(file.rows), right=True),
        cell(size(file.bytes), right=True),
    )
    return f"<tr>{''.join(cells)}</tr>"


def _when(info: SnapshotInfo) -> str:
    return f"{time(info.snapshot_time)} {zone(info.snapshot_time)}"


def _history(history: Sequence[HistoryEntry]) -> str:
    """Returns the commits in between, if there is more than the one in the header."""
    if len(history) < 2:
        return ""
    rows = []
    for entry in history[-_COMMITS:]:
        info = entry.info
        cells = (
            cell(f"<b>{info.snapshot_id}</b>", right=True),
            cell(time(info.snapshot_time)),
            cell(dot(entry.kind) + KIND_LABELS[entry.kind]),
            cell(escape(clip(info.author or "", 40))),
            cell(escape(clip(info.commit_message or "", 160))),
            cell(signed(entry.rows_added, entry.rows_removed, at_most=entry.at_most) or NONE, right=True),
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = (
        heading("id", right=True),
        heading(f"time ({escape(zone(history[0].info.snapshot_time))})"),
        heading("kind"),
        heading("author"),
        heading("message"),
        heading("rows", right=True),
    )
    note = f"the counts above are their net effect · {timeline.SCALE}"
    if len(history) > _COMMITS:
        note = f"newest {count(_COMMITS)} listed · {note}"
    return (
        f"<h4>Between <small>{counted(len(history), 'snapshot')} · {note}</small></h4>"
        f"{timeline.svg(history)}{scroll(table(head, rows), 'Snapshots in between')}"
    )
