"""Violations of expectations over time: a bar for each check, below the rows of a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.widgets.html import cell, clip, count, counted, escape, heading, scroll, table, time

if TYPE_CHECKING:
    from ducklake_lab.expectations.outcomes import Outcome, Point

#: Most bars of an expectation, the last ones; most expectations.
_BARS, _ROWS = 60, 100
_HEIGHT, _STEP = 30, 7

STYLE = """
.dlk.dlk.dlk .dlk-ck tbody td{vertical-align:bottom}
.dlk .dlk-ck .dlk-scroll{border-bottom:0}
"""


def section(outcomes: Sequence[Outcome]) -> str:
    """Returns a chart for each expectation that was checked before; "" where none was."""
    shown = [outcome for outcome in outcomes if len(outcome.points) > 1]
    if not shown:
        return ""
    several = len({outcome.table for outcome in shown}) > 1
    heads = (
        heading("expectation"),
        heading("violations by check"),
        heading("snapshots"),
        heading("most", right=True),
        heading("now", right=True),
    )
    more = (
        f'<div class="dlk-foot">{counted(len(shown) - _ROWS, "more expectation")}</div>' if len(shown) > _ROWS else ""
    )
    rows = (_row(outcome, several=several) for outcome in shown[:_ROWS])
    return f'<div class="dlk-ck"><h4>Violations over time</h4>{scroll(table(heads, rows), "Violations over time")}{more}</div>'


def _row(outcome: Outcome, *, several: bool) -> str:
    points = outcome.points[-_BARS:]
    name = f"{outcome.table} {outcome.expectation.name}" if several else outcome.expectation.name
    first, last = points[0].snapshot_id, points[-1].snapshot_id
    of = f"{first} to {last}" if first != last else str(last)
    most = max(point.count for point in points)
    cells = (
        cell(escape(clip(name, 80)), title=outcome.shown),
        cell(_bars(name, points, most, KIND_COLORS["update" if outcome.expectation.on == "warn" else "delete"])),
        cell(f'<span class="dlk-soft">{of}</span>'),
        cell(count(most), right=True),
        cell(count(points[-1].count), right=True),
    )
    return f"<tr>{''.join(cells)}</tr>"


def _bars(name: str, points: Sequence[Point], most: int, color: str) -> str:
    """Returns a bar for each check; a check without violations is a short green one, below the line of the others."""
    told = ", ".join(f"{count(point.count)} at snapshot {point.snapshot_id}" for point in points[-10:])
    parts = [
        f'<svg role="img" aria-label="{escape(f"Violations of {clip(name, 80)}, the last checks: {told}")}" '
        f'width="{max(len(points) * _STEP, 2 * _STEP)}" height="{_HEIGHT + 5}">'
    ]
    for place, point in enumerate(points):
        x = place * _STEP
        title = f"{counted(point.count, 'violation')} at snapshot {point.snapshot_id}, {time(point.time)} UTC"
        if point.count:
            high = max(2.0, _HEIGHT * point.count / most)
            bar = f'y="{_HEIGHT - high:.1f}" height="{high:.1f}" fill="{color}"'
        else:
            bar = f'y="{_HEIGHT + 2}" height="3" fill="{KIND_COLORS["insert"]}"'
        parts.append(f'<rect x="{x}" width="{_STEP - 2}" {bar}><title>{escape(title)}</title></rect>')
    line = f'<line x1="0" x2="100%" y1="{_HEIGHT}.5" y2="{_HEIGHT}.5" stroke="currentColor" stroke-opacity=".3"/>'
    return f"{''.join(parts)}{line}</svg>"
