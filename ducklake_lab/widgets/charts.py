"""Small inline SVG pictures. Widths are percentages, so pictures fill their place and text keeps its size."""

from __future__ import annotations

from ducklake_lab.diff.model import Histogram
from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.widgets.html import clip, compact, count, counted, escape

_BEFORE = "#8b939c"
_AFTER = "#4f7fd6"

_HEIGHT = 74.0
_CATEGORIES = 8


def colors(data: Histogram) -> tuple[str, str]:
    """Returns the colours of before and after; with only one of them, the colour of deleted or inserted rows."""
    if not any(data.after):
        return KIND_COLORS["delete"], _AFTER
    if not any(data.before):
        return _BEFORE, KIND_COLORS["insert"]
    return _BEFORE, _AFTER


def share_bar(share: float, color: str, width: int = 180) -> str:
    """Returns a bar filled to a share of its width."""
    filled = max(2.0, width * share) if share > 0 else 0.0
    return (
        f'<svg aria-hidden="true" width="{width}" height="9" style="display:inline-block;vertical-align:middle">'
        f'<rect width="{width}" height="9" rx="2" fill="currentColor" fill-opacity=".07"/>'
        f'<rect width="{filled:.1f}" height="9" rx="2" fill="{color}"/></svg>'
    )


def histogram(name: str, data: Histogram) -> str:
    """Returns a histogram: before as filled bars, after as an outline over them, so that both are visible."""
    return _numeric(name, data) if data.numeric else _categories(name, data)


def _numeric(name: str, data: Histogram) -> str:
    bins = len(data.labels)
    largest = max(1, *data.before, *data.after)
    slot = 100 / max(bins, 1)
    old, new = colors(data)
    parts = []
    for index, label in enumerate(data.labels):
        before, after = data.before[index], data.after[index]
        x = slot * index
        parts.append(f"<g><title>from {escape(label)}: {count(before)} before, {count(after)} after</title>")
        if before:
            high = max(1.5, _HEIGHT * before / largest)
            parts.append(
                f'<rect x="{x:.2f}%" y="{_HEIGHT - high:.1f}" width="{slot * 0.96:.2f}%" height="{high:.1f}" '
                f'fill="{old}" fill-opacity=".7"/>'
            )
        if after:
            high = max(1.5, _HEIGHT * after / largest)
            parts.append(
                f'<rect x="{x:.2f}%" y="{_HEIGHT - high:.1f}" width="{slot * 0.96:.2f}%" height="{high:.1f}" '
                f'fill="{new}" fill-opacity=".18" stroke="{new}" stroke-width="1.6"/>'
            )
        parts.append("</g>")
    parts.append(_baseline())
    for at, anchor, end in (("0", "start", data.smallest), ("100%", "end", data.largest)):
        parts.append(
            f'<text x="{at}" y="{_HEIGHT + 14}" text-anchor="{anchor}" opacity=".72">{escape(clip(end, 19))}</text>'
        )
    return _figure(name, data, "".join(parts), _HEIGHT + 18)


def _categories(name: str, data: Histogram) -> str:
    """Returns one line per category, most frequent first: its name and two thin bars."""
    order = sorted(range(len(data.labels)), key=lambda index: -max(data.before[index], data.after[index]))
    shown = order[:_CATEGORIES]
    largest = max(1, *data.before, *data.after)
    old, new = colors(data)
    paired = any(data.before) and any(data.after)
    room = 34 if paired else 46
    parts = []
    for line, index in enumerate(shown):
        y = line * 17
        label = data.labels[index]
        before, after = data.before[index], data.after[index]
        parts.append(f"<g><title>{escape(label)}: {count(before)} before, {count(after)} after</title>")
        # an SVG of its own width, so that the name ends before the bars
        parts.append(
            f'<svg x="0" y="{y}" width="36%" height="17" style="overflow:hidden">'
            f'<text y="10">{escape(clip(label, 13))}</text></svg>'
        )
        if before:
            parts.append(_bar(y + (1 if after else 3), room * before / largest, old))
        if after:
            parts.append(_bar(y + (7 if before else 3), room * after / largest, new))
        text = (
            compact(before) if not after else compact(after) if not before else f"{compact(before)} → {compact(after)}"
        )
        parts.append(f'<text x="100%" y="{y + 10}" text-anchor="end" opacity=".72">{text}</text></g>')
    height = len(shown) * 17
    if more := data.more + len(order) - len(shown):
        parts.append(f'<text x="0" y="{height + 11}" opacity=".72">{counted(more, "rarer value")}</text>')
        height += 15
    return _figure(name, data, "".join(parts), height)


def _bar(y: float, width: float, color: str) -> str:
    return f'<rect x="38%" y="{y}" width="{max(width, 0.8):.1f}%" height="5" rx="1.5" fill="{color}"/>'


def _baseline() -> str:
    return f'<line x1="0" x2="100%" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="currentColor" stroke-opacity=".3"/>'


def _figure(name: str, data: Histogram, content: str, height: float) -> str:
    sums = f"{count(sum(data.before))} values before, {count(sum(data.after))} after"
    label = f"Distribution of {clip(name, 60)} in the changed rows: {sums}"
    return (
        f'<div><b>{escape(clip(name, 40))}</b><svg role="img" aria-label="{escape(label)}" width="100%" '
        f'height="{height:.0f}" style="margin-top:6px">{content}</svg></div>'
    )
