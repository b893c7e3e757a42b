"""The changes of an answer as a chart over snapshots; with a kernel, a click on one shows its diff."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import traitlets

from ducklake_lab.errors import UsageError
from ducklake_lab.redaction import hide
from ducklake_lab.widgets import result, values
from ducklake_lab.widgets.html import DOT, clip, counted, escape, time, view, visible, zone
from ducklake_lab.widgets.mounted import Mounted, script, styles

if TYPE_CHECKING:
    from ducklake_lab.session.when import AnswerChanges

#: Most points drawn, the newest; and rows of the table.
LIMIT = 240
ROWS = 200
#: Room for labels at the left and the right, in percent of the width.
_LEFT, _RIGHT = 12.0, 4.0
_TOP, _HIGH, _BELOW = 16.0, 84.0, 30.0
#: Least distance of two labels, in percent.
_GAP = 5.0
_COLOR = "#4f7fd6"


def render(changes: AnswerChanges) -> str:
    """Returns the chart and the table as static HTML."""
    query = clip(" ".join(hide(changes.query).split()), 160)
    title = f'<p><span class="dlk-title">{escape(query)}</span></p>'
    drawn = view(title + svg(changes), label=f"Changes of the answer of {query}")
    return drawn + result.render(changes, ROWS)


def svg(changes: AnswerChanges) -> str:
    """Returns a point for each change of the answer; numbers at their heights, and lines for as long as they held."""
    lines = changes.lines[-LIMIT:]
    if not lines:
        return ""
    heights, (low, high) = _heights(changes.numbers[-LIMIT:] if changes.numbers is not None else None, len(lines))
    first, last = lines[0].snapshot_id, max(changes.last, lines[-1].snapshot_id)
    span = max(1, last - first)
    places = [_LEFT + (100 - _LEFT - _RIGHT) * (line.snapshot_id - first) / span for line in lines]
    bottom = _TOP + _HIGH
    parts = [
        f'<line x1="{_LEFT}%" x2="100%" y1="{bottom + 8}" y2="{bottom + 8}" stroke="currentColor" stroke-opacity=".3"/>'
    ]
    known = _known(changes, len(lines))
    for at, (place, height) in enumerate(zip(places, heights, strict=True)):
        end = places[at + 1] if at + 1 < len(places) else 100 - _RIGHT / 2
        if known[at]:
            parts.append(_line(place, end, height, height))
        if all(known[at : at + 2]) and at + 1 < len(places):
            parts.append(_line(end, end, height, heights[at + 1]))
    free_from = -1.0
    for line, place, height, is_known in zip(lines, places, heights, known, strict=True):
        fill = _COLOR if is_known else "none"
        point = (
            f'<circle cx="{place:.2f}%" cy="{height:.1f}" r="4.5" fill="{fill}" stroke="{_COLOR}" stroke-width="1.5"/>'
        )
        parts.append(f'<g class="dlk-wn-point"><title>{escape(_describe(line))}</title>{point}</g>')
        if place >= free_from:
            free_from = place + _GAP
            parts.append(f'<text x="{place:.2f}%" y="{bottom + 24:.0f}" text-anchor="middle">{line.snapshot_id}</text>')
    if low != high:
        parts += [
            f'<text x="0" y="{y:.0f}">{escape(clip(text, 12))}</text>'
            for text, y in ((high, _TOP + 4), (low, bottom + 4))
        ]
    label = f"The answer from snapshot {first} to {last}; the table below has the same in words"
    return (
        f'<svg role="img" aria-label="{label}" width="100%" height="{bottom + _BELOW:.0f}" '
        f'style="margin:2px 0 8px">{"".join(parts)}</svg>'
    )


def _line(x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{_COLOR}" stroke-width="1.5" stroke-opacity=".6"/>'


def _known(changes: AnswerChanges, count: int) -> list[bool]:
    """Returns for each drawn point whether it has an answer, and a number where the others are numbers."""
    if changes.numbers is not None:
        return [number is not None and math.isfinite(number) for number in changes.numbers[-count:]]
    return [line.answer is not None for line in changes.lines[-count:]]


def _heights(numbers: Sequence[float | None] | None, count: int) -> tuple[list[float], tuple[str, str]]:
    """Returns the heights of points in pixels from the top, and the least and the greatest number as texts."""
    finite = [number for number in numbers or () if number is not None and math.isfinite(number)]
    if numbers is None or not finite or min(finite) == max(finite):
        return [_TOP + _HIGH / 2] * count, ("", "")
    low, high = min(finite), max(finite)

    def height(number: float | None) -> float:
        # halves do not overflow
        share = 0.0 if number is None or not math.isfinite(number) else (number / 2 - low / 2) / (high / 2 - low / 2)
        return _TOP + _HIGH * (1 - share)

    return [height(number) for number in numbers], (f"{low:.6g}", f"{high:.6g}")


def _describe(line: Any) -> str:
    answer = "no answer" if line.answer is None else clip(values.text(line.answer), 200)
    moment = f"{time(line.time)} {zone(line.time)}"
    return DOT.join(part for part in (str(line.snapshot_id), moment, line.author, line.message, answer) if part)


class WhenView(Mounted):
    """The changes of an answer, each of which leads to its diff.

    Attributes:
        changes: the lines.
        first: the line of the first drawn point.
    """

    _esm = script("when")
    _css = styles("when")

    first = traitlets.Int(0).tag(sync=True)

    def __init__(self, changes: AnswerChanges) -> None:
        self.changes = changes
        super().__init__(first=max(0, len(changes.lines) - LIMIT))

    def answer_diff(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static diff of the answers before and after a change."""
        lines, at = self.changes.lines, int(content["line"])
        if not 0 <= at < len(lines):
            raise UsageError("There is no such change of the answer; run the cell again.")
        if at == 0:
            return {
                "html": "",
                "sentence": f"The answer at snapshot {lines[0].snapshot_id}, where this history begins.",
            }
        diff = self.changes.compare(lines[at - 1].snapshot_id, lines[at].snapshot_id)
        about = DOT.join(filter(None, (lines[at].author, lines[at].message)))
        sentence = f"Changed in snapshot {lines[at].snapshot_id}" + (f" · {visible(clip(about, 300))}" if about else "")
        return {"html": diff._repr_html_(), "sentence": sentence}

    def still(self) -> str:
        return render(self.changes)

    def __repr__(self) -> str:
        lines = (visible(_describe(line)) for line in self.changes.lines[:ROWS])
        return "\n".join([f"{counted(len(self.changes.lines), 'answer')}", *lines])


def live(changes: AnswerChanges) -> Any:
    """Returns a notebook's output for the changes of an answer."""
    return WhenView(changes)._repr_mimebundle_()
