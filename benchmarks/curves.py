"""Pictures of commits a second against writers, for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from benchmarks.pictures import COLOURS, GRID, MARKS, style, write

_WIDTH, _HEIGHT = 980, 620


@dataclass(frozen=True, slots=True)
class Point:
    """A measured rate.

    Attributes:
        kind: of catalog.
        role: who writes.
        rate: commits a second of all writers.
    """

    kind: str
    role: str
    conflicts: bool
    writers: int
    rate: float


def figure(points: Sequence[Point], ink: str) -> go.Figure:
    """A panel for each kind of catalog, without conflicts above and with conflicts below."""
    kinds = list(dict.fromkeys(point.kind for point in points))
    titles = [f"{kind}, {what}" for what in ("inserts", "deletes from one file") for kind in kinds]
    drawn = make_subplots(2, len(kinds), subplot_titles=titles, vertical_spacing=0.16, horizontal_spacing=0.06)
    for row, conflicts in enumerate((False, True), 1):
        for column, kind in enumerate(kinds, 1):
            for role, colour in COLOURS.items():
                line = [p for p in points if (p.kind, p.role, p.conflicts) == (kind, role, conflicts)]
                if not line:
                    continue
                drawn.add_scatter(
                    x=[p.writers for p in line],
                    y=[p.rate for p in line],
                    name=role,
                    mode="lines+markers",
                    line={"color": colour, "width": 2},
                    marker={"size": 7, "symbol": MARKS[role]},
                    legendgroup=role,
                    showlegend=(row, column) == (1, 2),
                    row=row,
                    col=column,
                )
    writers = sorted({point.writers for point in points})
    drawn.update_xaxes(type="log", tickvals=writers, ticktext=list(map(str, writers)), showgrid=False, linecolor=GRID)
    drawn.update_yaxes(rangemode="tozero", gridcolor=GRID, zerolinecolor=GRID)
    drawn.update_xaxes(title_text="writers", row=2)
    drawn.update_yaxes(title_text="commits/s", col=1)
    style(drawn, ink)
    drawn.update_layout(
        legend={"orientation": "h", "x": 0, "y": 1.14},
        margin={"l": 56, "r": 12, "t": 76, "b": 48},
    )
    drawn.update_annotations(font_size=13)
    return drawn


def draw(points: Sequence[Point], folder: Path) -> None:
    """Writes `writers.svg` and `writers-dark.svg`; makes the folder if need be."""
    write("writers", lambda ink: figure(points, ink), folder, _WIDTH, _HEIGHT)
