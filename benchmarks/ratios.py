"""Pictures of ratios, one for each kind of work: times of ours by times of what it is compared with; the goal is 1."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from benchmarks.measure import Comparison
from benchmarks.peer import PEER
from benchmarks.pictures import COLOURS, GRID, MARKS, style, write

#: Kinds of work by what the names of their comparisons begin with, after the kind of catalog.
GROUPS = {
    "looking": r"small |TPC-H|fresh kernel|Spark starts|when among|blame of|life of",
    "commits": r"CREATE TABLE|INSERT of|\d+ commits of|UPDATE of \d+ rows|MERGE of|revert of",
    "planning": r"attach|DataFrame of|open a table of",
    "spark": r"read |append |(?:sum|Q1|Q6) of|(?:DELETE|UPDATE) of 1%",
}
#: What a baseline is called beside kinds of catalogs.
_NAMES = {"DuckDB": "the reference"}
_TICKS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
_TEXTS = ("1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8")
_WIDTH, _ROW, _MARGINS = 980, 26, 76


def load(path: Path) -> list[Comparison]:
    """The comparisons of a file that `python -m benchmarks` writes."""
    report = json.loads(path.read_text(encoding="utf-8"))
    return [Comparison(c["name"], c["baseline"], c["ours"], c["theirs"]) for c in report["comparisons"]]


def group(comparison: Comparison) -> str:
    """The kind of work.

    Raises:
        ValueError: no kind of work, or more than one, has such a name.
    """
    if comparison.baseline == PEER:
        return "peer"
    name = re.sub(r"^(?:DuckDB|SQLite|PostgreSQL): ", "", comparison.name)
    found = [kind for kind, begins in GROUPS.items() if re.match(begins, name)]
    if len(found) != 1:
        raise ValueError(f"{comparison.name} belongs to {len(found)} kinds of work; change GROUPS in {__name__}.")
    return found[0]


def figure(comparisons: Sequence[Comparison], ink: str) -> go.Figure:
    """A line for each comparison: the median, and the lowest to the highest round; right of 1, ours is slower."""
    drawn = go.Figure()
    names = [f"{c.name} <i>({_NAMES.get(c.baseline, c.baseline)})</i>" for c in comparisons]
    for role, slower in (("ours", False), ("the reference", True)):
        chosen = [(name, c) for name, c in zip(names, comparisons, strict=True) if (c.ratio > 1) is slower]
        drawn.add_scatter(
            x=[c.ratio for _, c in chosen],
            y=[name for name, _ in chosen],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [c.ratios[-1] - c.ratio for _, c in chosen],
                "arrayminus": [c.ratio - c.ratios[0] for _, c in chosen],
                "thickness": 1.5,
                "width": 4,
            },
            mode="markers",
            name="ours is faster" if role == "ours" else "ours is slower",
            marker={"color": COLOURS[role], "symbol": MARKS[role], "size": 10},
            showlegend=True,
        )
    lowest, highest = min(1 / 16, *(c.ratios[0] for c in comparisons)), max(8.0, *(c.ratios[-1] for c in comparisons))
    drawn.update_xaxes(
        type="log", tickvals=_TICKS, ticktext=_TEXTS, range=[math.log10(lowest * 0.9), math.log10(highest * 1.1)],
        gridcolor=GRID, linecolor=GRID, zeroline=False, title_text="time, ours / compared with",
    )  # fmt: skip
    drawn.update_yaxes(categoryorder="array", categoryarray=names[::-1], showgrid=False, automargin=True)
    for name, comparison in zip(names, comparisons, strict=True):
        drawn.add_annotation(
            x=1.01, xref="paper", xanchor="left", y=name, text=f"{comparison.ratio:.2f}", showarrow=False
        )
    drawn.add_vline(x=1, line={"color": ink, "width": 2})
    style(drawn, ink)
    drawn.update_layout(
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        margin={"l": 12, "r": 56, "t": 28, "b": 48},
    )
    return drawn


def draw(comparisons: Sequence[Comparison], folder: Path) -> None:
    """Writes `ratios-<kind of work>.svg`, light and dark, for each kind that was measured."""
    groups: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault(group(comparison), []).append(comparison)
    for kind, members in groups.items():
        height = _MARGINS + _ROW * len(members)
        write(f"ratios-{kind}", lambda ink, members=members: figure(members, ink), folder, _WIDTH, height)  # type: ignore[misc]
