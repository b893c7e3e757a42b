"""The history of a lake or a table as static HTML: a timeline and a list."""

from __future__ import annotations

from collections.abc import Sequence

from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.widgets import timeline
from ducklake_lab.widgets.html import (
    DOT,
    KIND_LABELS,
    NONE,
    cell,
    clip,
    count,
    counted,
    dot,
    escape,
    heading,
    scroll,
    seconds,
    signed,
    size,
    table,
    time,
    view,
    zone,
)

#: Most snapshots listed; the browser and `FROM lake.snapshots()` have all.
LIMIT = 200
#: Most characters of a snapshot's SQL in the list.
_LONGEST = 400

_STYLE = """
.dlk .dlk-legend{display:flex;flex-wrap:wrap;gap:4px 16px;align-items:baseline;margin-bottom:6px}
.dlk .dlk-legend .dlk-title{margin-right:8px}
.dlk .dlk-sql{margin:2px 0;white-space:pre-wrap;overflow-wrap:anywhere;max-width:60em}
"""


def render(history: Sequence[HistoryEntry], title: str | None = None) -> str:
    """Returns the timeline and the list, newest first.

    Args:
        title: the heading; by default the title of a session's listing.
    """
    heading_text: str = title or str(getattr(history, "title", "Snapshots"))
    if not history:
        return view("<p>No snapshots.</p>", label=heading_text)
    return view(body(history, heading_text), style=_STYLE, label=heading_text)


def body(history: Sequence[HistoryEntry], title: str = "Snapshots") -> str:
    """Returns the contents of `render` without the common styles."""
    newest = sorted(history, key=lambda entry: entry.info.snapshot_id, reverse=True)
    listed = newest[:LIMIT]
    more = ""
    if len(listed) < len(newest):
        more = f'<div class="dlk-foot">newest {count(LIMIT)} of {counted(len(newest), "snapshot")}</div>'
    listing = table(
        (
            heading("id", right=True),
            heading(f"time ({escape(zone(newest[0].info.snapshot_time))})"),
            heading("kind"),
            heading("author"),
            heading("message"),
            heading("what changed"),
            heading("rows", right=True),
            heading("size", right=True),
        ),
        (_row(entry) for entry in listed),
    )
    return _legend(newest, title) + timeline.svg(history) + scroll(listing, "Snapshots, newest first", fill=True) + more


def _legend(history: Sequence[HistoryEntry], title: str) -> str:
    kinds = [kind for kind in KIND_LABELS if any(entry.kind == kind for entry in history)]
    newest = history[0].info
    summary = DOT.join((counted(len(history), "snapshot"), f"newest {newest.snapshot_id}", time(newest.snapshot_time)))
    scale = (
        f'<span class="dlk-soft">{timeline.SCALE}</span>'
        if any(e.rows_added or e.rows_removed for e in history)
        else ""
    )
    marks = "".join(f"<span>{dot(kind)}{KIND_LABELS[kind]} </span>" for kind in kinds)
    return (
        f'<div class="dlk-legend"><span class="dlk-title">{escape(title)}</span>'
        f'<span class="dlk-soft">{escape(summary)}</span> {marks}{scale}</div>'
    )


def origin(entry: HistoryEntry) -> str:
    """Returns a snapshot's origin: kind and duration of the statement, and the notebook's cell; "" if unknown."""
    note = entry.note
    if note is None:
        return ""
    cell = f"[{note.cell}]" if note.cell is not None else ""
    where = " ".join(part for part in (clip(note.notebook or "", 80), cell) if part)
    took = seconds(note.duration_ms / 1000) if note.duration_ms is not None else ""
    return DOT.join(part for part in (clip(note.kind or "", 80), took, where) if part)


def statement(entry: HistoryEntry, width: int) -> str:
    """Returns the SQL of a snapshot, or other text of its writer; cut to `width` characters."""
    note = entry.note
    if note is None:
        return clip(entry.info.commit_extra_info or "", width)
    return clip(note.statement or "", width) + (" …" if note.is_cut and len(note.statement or "") <= width else "")


def _made(entry: HistoryEntry) -> str:
    text, label = statement(entry, _LONGEST), origin(entry) or "noted"
    if not text:
        return f"<div>{escape(origin(entry))}</div>" if origin(entry) else ""
    return f'<details><summary>{escape(label)}</summary><pre class="dlk-sql">{escape(text)}</pre></details>'


def _row(entry: HistoryEntry) -> str:
    info = entry.info
    message = entry.message
    changes = "<br>".join(escape(clip(change, 120)) for change in entry.changes[:4])
    if len(entry.changes) > 4:
        rest = "<br>".join(escape(clip(change, 120)) for change in entry.changes[4:40])
        hidden = "" if len(entry.changes) <= 40 else f"<br>… {count(len(entry.changes) - 40)} more"
        changes += f"<details><summary>{count(len(entry.changes) - 4)} more</summary>{rest}{hidden}</details>"
    cells = (
        cell(f"<b>{info.snapshot_id}</b>", right=True),
        cell(time(info.snapshot_time), title=time(info.snapshot_time, precise=True)),
        cell(dot(entry.kind) + KIND_LABELS[entry.kind]),
        cell(escape(clip(info.author or "", 40))),
        cell(escape(clip(message, 160)), title=message if len(message) > 160 else "", wrap=bool(message)),
        cell(f'<span class="dlk-soft">{changes}{_made(entry)}</span>', wrap=True),
        cell(signed(entry.rows_added, entry.rows_removed, at_most=entry.at_most) or NONE, right=True),
        cell(signed(entry.bytes_added, entry.bytes_removed, size), right=True),
    )
    return f"<tr>{''.join(cells)}</tr>"
