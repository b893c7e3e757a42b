"""The timeline of a history as inline SVG: one bar per snapshot, evenly spaced, added rows up, removed rows down."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import sqrt

from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.widgets.html import KIND_LABELS, MINUS, compact, count, counted, escape, time, zone

#: Most snapshots drawn; more would be thinner than a pixel in most notebooks.
LIMIT = 240

_HEIGHT = 62.0
#: Legend for the height of bars.
SCALE = "bar height: square root of the rows"
#: Minimum distance of two time labels, in percent of the width.
_LABEL_GAP = 13.0
_SHORT = timedelta(minutes=10)


def svg(history: Sequence[HistoryEntry]) -> str:
    """Returns the newest LIMIT snapshots, oldest at the left; heights grow with the square root of the rows.

    Horizontal coordinates are percentages, so it fills its place and its text keeps its size.
    """
    entries = sorted(history, key=lambda entry: entry.info.snapshot_id)[-LIMIT:]
    if not entries:
        return ""
    largest = max(1, *(max(entry.rows_added, entry.rows_removed or 0) for entry in entries))
    removed = max(entry.rows_removed or 0 for entry in entries)
    base = _HEIGHT + 16
    bottom = base + _HEIGHT * sqrt(removed / largest) + 8
    slot = 100 / len(entries)
    width = next(pixels for most, pixels in ((24, 15), (60, 9), (120, 5), (LIMIT, 3)) if len(entries) <= most)
    parts = [f'<line x1="0" x2="100%" y1="{base:.1f}" y2="{base:.1f}" stroke="currentColor" stroke-opacity=".3"/>']
    for index, entry in enumerate(entries):
        at = f"{slot * (index + 0.5):.2f}%"
        parts.append(f"<g><title>{escape(describe(entry))}</title>{_mark(entry, at, width, base, largest)}")
        if len(entries) <= 40:
            parts.append(f'<text x="{at}" y="{bottom + 12:.0f}" text-anchor="middle">{entry.info.snapshot_id}</text>')
        parts.append("</g>")
    parts += _labels(entries, slot, bottom + 28)
    first, last = entries[0].info.snapshot_id, entries[-1].info.snapshot_id
    label = f"Timeline of snapshots {first} to {last}, {SCALE}; the list below has the same in words"
    return (
        f'<svg role="img" aria-label="{label}" width="100%" height="{bottom + 34:.0f}" '
        f'style="margin:2px 0 10px">{"".join(parts)}</svg>'
    )


def _mark(entry: HistoryEntry, at: str, width: int, base: float, largest: int) -> str:
    color = KIND_COLORS[entry.kind]
    if not entry.rows_added and not entry.rows_removed:
        radius = min(4.5, width / 2)
        return f'<circle cx="{at}" cy="{base:.1f}" r="{radius}" fill="{color}"/>'
    up = max(2.0, _HEIGHT * sqrt(entry.rows_added / largest)) if entry.rows_added else 0.0
    down = max(2.0, _HEIGHT * sqrt(entry.rows_removed / largest)) if entry.rows_removed else 0.0
    bar = (
        f'<line x1="{at}" x2="{at}" y1="{base - up:.1f}" y2="{base + down:.1f}" '
        f'stroke="{color}" stroke-width="{width}"/>'
    )
    if width < 15:
        return bar
    text = compact(entry.rows_added) if up else MINUS + compact(entry.rows_removed or 0)
    text = f"≤{text}" if entry.at_most else text
    return bar + f'<text x="{at}" y="{base - up - 5:.1f}" text-anchor="middle" opacity=".72">{text}</text>'


def _labels(entries: Sequence[HistoryEntry], slot: float, y: float) -> list[str]:
    """Returns labels: dates where the day changes, times between them, as close as they fit."""
    labels = []
    # snapshots within minutes differ only in their seconds
    is_short = entries[-1].info.snapshot_time - entries[0].info.snapshot_time < _SHORT
    day = ""
    previous = ""
    free_from = -1.0
    for index, entry in enumerate(entries):
        moment = entry.info.snapshot_time
        date, clock = moment.strftime("%Y-%m-%d"), moment.strftime("%H:%M:%S" if is_short else "%H:%M")
        text = date if date != day else clock
        at = slot * (index + 0.5)
        if at < free_from or text == previous or at > 100 - _LABEL_GAP / 2:
            continue
        previous, day, free_from = text, date, at + _LABEL_GAP
        anchor = ' text-anchor="middle"' if index else ""
        labels.append(f'<text x="{at if index else 0:.2f}%" y="{y:.0f}"{anchor} opacity=".72">{escape(text)}</text>')
    return labels


def describe(entry: HistoryEntry) -> str:
    """Returns one snapshot in a few words: id, time, author, message, rows."""
    info = entry.info
    parts = [f"{info.snapshot_id} · {time(info.snapshot_time)} {zone(info.snapshot_time)}"]
    if info.author:
        parts.append(info.author)
    parts.append(entry.message or ", ".join(entry.changes[:3]) or KIND_LABELS[entry.kind])
    if entry.at_most and (entry.rows_added or entry.rows_removed):
        parts.append("at most")
    if entry.rows_added:
        parts.append(f"+{counted(entry.rows_added, 'row')}")
    if entry.rows_removed is None:
        parts.append(f"{MINUS}? rows")
    elif entry.rows_removed:
        parts.append(f"{MINUS}{count(entry.rows_removed)} rows")
    return " · ".join(parts)
