"""A chart of rows as a figure, and as the code that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from ducklake_lab.hooks import hook
from ducklake_lab.model.labels import distinct
from ducklake_lab.plots.style import Picture, finish, plain
from ducklake_lab.session.rows.chart import PALETTE

if TYPE_CHECKING:
    from ducklake_lab.session.rows.chart import Chart
    from ducklake_lab.session.rows.view import RowsView

_MILLISECONDS = 1000


def plot(chart: Chart) -> go.Figure:
    """Draw the points of a chart; a line below the title names the omitted rows."""
    places = _places(chart)
    figure = go.Figure()
    for number, (name, points) in enumerate(chart.series):
        figure.add_trace(_trace(chart, places, name, points.to_pydict(), PALETTE[number]))
    if chart.choice.kind == "histogram":
        figure.update_layout(barmode="stack")
    figure.update_xaxes(title=plain(chart.x_title))
    figure.update_yaxes(title=plain(chart.y_title))
    lines = [
        plain(chart.title, 120),
        *(f'<span style="font-size:12px">{plain(note, 160)}</span>' for note in chart.notes),
    ]
    made = finish(figure, "<br>".join(lines), 420)
    is_colored = bool(chart.series[0][0])
    made.update_layout(
        showlegend=is_colored,
        legend={"title": plain(chart.choice.color or ""), "y": 1 - (30 + 16 * len(chart.notes)) / 420},
        margin_t=60 + 16 * len(chart.notes) + 24 * is_colored,
    )
    return Picture(made, lambda: str(hook("chart.html")(chart)))


def _places(chart: Chart) -> Mapping[int, str]:
    """Return a label for each value of x that is no number, no two alike."""
    labels = dict(zip(chart.points.column("place").to_pylist(), chart.labels, strict=True))
    return dict(zip(labels, distinct(plain(label) for label in labels.values()), strict=True))


def _trace(
    chart: Chart, places: Mapping[int, str], name: str, points: Mapping[str, Sequence[object]], color: str
) -> go.Bar | go.Scatter:
    labels = [places[int(str(place))] for place in points["place"]]
    x = points["x"] if chart.x_role == "number" else labels
    look = {"name": plain(name), "marker_color": color}
    if chart.choice.kind == "bar":
        return go.Bar(x=labels, y=points["y"], **look)
    if chart.choice.kind == "line":
        return go.Scatter(x=x, y=points["y"], mode="lines+markers", line={"color": color}, **look)
    if chart.choice.kind == "histogram":
        return go.Bar(x=x, y=points["y"], offset=0, width=_widths(chart, points), **look)
    if name:
        return go.Scatter(x=x, y=points["y"], mode="markers", **look)
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
    is_colored = bool(chart.series[0][0])
    labels = "[places[at] for at in points.place]" if is_colored else "chart.labels"
    x = 'points["x"]' if chart.x_role == "number" else labels
    scale = f" * {_MILLISECONDS}" if chart.x_role == "time" else ""
    marker = "" if is_colored else ', marker={"color": points["rows"], "showscale": True}'
    trace = {
        "bar": f'go.Bar(x={labels}, y=points["y"]',
        "line": f'go.Scatter(x={x}, y=points["y"], mode="lines+markers"',
        "histogram": f'go.Bar(x={x}, y=points["y"], offset=0, width=(points["x_end"] - points["x"]){scale}',
        "scatter": f'go.Scatter(x={x}, y=points["y"], mode="markers"{marker}',
    }[choice.kind]
    seen = [list(view.sort), view.filters, view.search]
    given = ", ".join(repr(one) for one in (choice.kind, choice.x, choice.y, choice.aggregate))
    more = (("color", choice.color), ("bins", choice.bins))
    given += "".join(f", {name}={value!r}" for name, value in more if value is not None)
    drawn = ["points = chart.points.to_pandas()", f"figure = go.Figure({trace}))"]
    if is_colored:
        drawn = [
            'places = dict(zip(chart.points["place"].to_pylist(), chart.labels))',
            "figure = go.Figure()",
            "for name, part in chart.series:",
            "    points = part.to_pandas()",
            f"    figure.add_trace({trace}, name=name))",
            *(['figure.update_layout(barmode="stack")'] if choice.kind == "histogram" else []),
        ]
    return "\n".join(
        [
            "import plotly.graph_objects as go",
            "",
            "view = result.view()  # result: the variable of this result or table",
            *([f"view.look({', '.join(map(repr, seen))})"] if any(seen) else []),
            f"chart = view.chart({given})",
            *drawn,
            'figure.update_layout(title="<br>".join([chart.title, *chart.notes]), xaxis_title=chart.x_title, yaxis_title=chart.y_title)',
            "figure",
        ]
    )
