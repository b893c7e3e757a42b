"""A chart of rows as a figure, and as the code that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from ducklake_lab.hooks import hook
from ducklake_lab.model.labels import distinct
from ducklake_lab.plots.style import AFTER, Picture, finish, plain

if TYPE_CHECKING:
    from ducklake_lab.session.rows.chart import Chart
    from ducklake_lab.session.rows.view import RowsView

_MILLISECONDS = 1000


def plot(chart: Chart) -> go.Figure:
    """The points of a chart; what it leaves out is below the title."""
    points = chart.points.to_pydict()
    figure = go.Figure(_trace(chart, points))
    figure.update_traces(marker_color=AFTER, selector={"type": "bar"})
    figure.update_xaxes(title=plain(chart.x_title))
    figure.update_yaxes(title=plain(chart.y_title))
    lines = [
        plain(chart.title, 120),
        *(f'<span style="font-size:12px">{plain(note, 160)}</span>' for note in chart.notes),
    ]
    made = finish(figure, "<br>".join(lines), 420)
    made.update_layout(showlegend=False, margin_t=60 + 16 * len(chart.notes))
    return Picture(made, lambda: str(hook("chart.html")(chart)))


def _trace(chart: Chart, points: Mapping[str, Sequence[object]]) -> go.Bar | go.Scatter:
    labels = distinct(plain(label) for label in chart.labels)
    x = points["x"] if chart.x_role == "number" else labels
    if chart.choice.kind == "bar":
        return go.Bar(x=labels, y=points["y"])
    if chart.choice.kind == "line":
        return go.Scatter(x=x, y=points["y"], mode="lines+markers", line={"color": AFTER})
    if chart.choice.kind == "histogram":
        return go.Bar(x=x, y=points["y"], offset=0, width=_widths(chart, points))
    return go.Scatter(x=x, y=points["y"], mode="markers", marker={"color": points["rows"], "showscale": True})


def _widths(chart: Chart, points: Mapping[str, Sequence[object]]) -> list[float]:
    """Of intervals, as Plotly measures them."""
    scale = _MILLISECONDS if chart.x_role == "time" else 1
    return [
        (float(str(end)) - float(str(start))) * scale for start, end in zip(points["x"], points["x_end"], strict=True)
    ]


def code(view: RowsView, chart: Chart) -> str:
    """Python that draws the same points by Plotly, of a variable `result` that holds the result or the table."""
    choice = chart.choice
    x = 'points["x"]' if chart.x_role == "number" else "chart.labels"
    scale = f" * {_MILLISECONDS}" if chart.x_role == "time" else ""
    trace = {
        "bar": 'go.Bar(x=chart.labels, y=points["y"])',
        "line": f'go.Scatter(x={x}, y=points["y"], mode="lines+markers")',
        "histogram": f'go.Bar(x={x}, y=points["y"], offset=0, width=(points["x_end"] - points["x"]){scale})',
        "scatter": f'go.Scatter(x={x}, y=points["y"], mode="markers", marker={{"color": points["rows"], "showscale": True}})',
    }[choice.kind]
    seen = [list(view.sort), view.filters, view.search]
    given = ", ".join(repr(one) for one in (choice.kind, choice.x, choice.y, choice.aggregate))
    return "\n".join(
        [
            "import plotly.graph_objects as go",
            "",
            "view = result.view()  # result: the variable of this result or table",
            *([f"view.look({', '.join(map(repr, seen))})"] if any(seen) else []),
            f"chart = view.chart({given})",
            "points = chart.points.to_pandas()",
            f"figure = go.Figure({trace})",
            'figure.update_layout(title="<br>".join([chart.title, *chart.notes]), xaxis_title=chart.x_title, yaxis_title=chart.y_title)',
            "figure",
        ]
    )
