"""A chart of rows: its points for a browser, and a table of them without a kernel."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ducklake_lab.redaction import hide
from ducklake_lab.widgets import values
from ducklake_lab.widgets.arrow import pack
from ducklake_lab.widgets.html import cell, clip, count, escape, heading, scroll, table, view, visible

if TYPE_CHECKING:
    from ducklake_lab.session.rows.chart import Chart
    from ducklake_lab.session.rows.view import RowsView

#: Largest number of points in the table.
POINTS = 20
#: Placeholder for the browser's drawing in the saved picture.
PLACE_OF_DRAWING = '<div class="dlk-chart"></div>'

_STYLE = """
.dlk .dlk-tb-axis{stroke:var(--dlk-line)}
.dlk .dlk-tb-line{fill:none;stroke-width:1.5}
.dlk svg .dlk-tb-name{font-weight:600}
"""


def render(chart: Chart) -> str:
    """Returns the chart's title, notes and first points as HTML."""
    columns = [
        ("label", chart.x_title),
        ("until", "until"),
        ("series", chart.choice.color or ""),
        ("value", chart.y_title),
        ("value_until", "until"),
        ("rows", "rows"),
    ]
    is_colored = bool(chart.series[0][0])
    shown = [
        (name, title)
        for name, title in columns
        if (is_colored if name == "series" else chart.points.column(name).null_count < chart.points.num_rows)
    ]
    if chart.y_title == "rows":
        shown = [(name, title) for name, title in shown if name != "rows"]
    listed = chart.points.slice(0, POINTS).to_pylist()
    head = [heading(clip(title, 80), right=name not in ("label", "series")) for name, title in shown]
    body = (
        "<tr>"
        + "".join(cell(values.html(point[name]), right=name not in ("label", "series")) for name, _ in shown)
        + "</tr>"
        for point in listed
    )
    more = f"first {POINTS} of {count(chart.points.num_rows)} points" if chart.points.num_rows > POINTS else ""
    foot = " · ".join(escape(clip(part, 200)) for part in (more, *chart.notes) if part)
    return view(
        f'<p><span class="dlk-title">{escape(clip(chart.title, 160))}</span></p>{scroll(table(head, body), "Points")}'
        f'<div class="dlk-foot">{foot}</div>',
        label=clip(chart.title, 160),
    )


def picture(data: RowsView, chart: Chart) -> str:
    """Returns a chart above the saved rows: title, notes, and a placeholder for the drawing."""
    seen = [f"of the {count(data.passing)} rows that are seen"] if data.filters or data.search.strip() else []
    notes = " · ".join(escape(clip(part, 200)) for part in (*seen, *chart.notes))
    return view(
        f'<p><span class="dlk-title">{escape(clip(chart.title, 160))}</span> <span class="dlk-soft">{notes}</span></p>'
        f"{PLACE_OF_DRAWING}",
        style=_STYLE,
        label=clip(chart.title, 160),
    )


def answer(data: RowsView, chart: Chart) -> tuple[dict[str, Any], list[bytes]]:
    """Returns a chart for a browser: its choice, the possible choices, and its points."""
    from ducklake_lab.session.rows.chart import PALETTE
    from ducklake_lab.session.rows.chart_bins import UNITS, role
    from ducklake_lab.session.rows.chart_choice import AGGREGATES, KINDS

    roles = {column.name: role(column.kind) for column in data.columns}
    kind = chart.choice.kind
    content = {
        "choice": asdict(chart.choice),
        "kinds": list(KINDS),
        "xs": [_named(name) for name, its in roles.items() if kind == "bar" or its != "category"],
        "ys": [_named(name) for name, its in roles.items() if its == "number"],
        "colors": [_named(name) for name in roles],
        "palette": list(PALETTE),
        "bins": list(UNITS),
        "is_time": roles[chart.choice.x] == "time",
        "ticks": [list(tick) for tick in chart.ticks],
        "aggregates": [name for name in AGGREGATES if name != "count"],
        "title": visible(chart.title),
        "notes": [visible(note) for note in chart.notes],
        "x_title": visible(chart.x_title),
        "y_title": visible(chart.y_title),
        "x_role": chart.x_role,
        "sql": hide(chart.sql),
    }
    points: dict[str, tuple[str, list[object]]] = {}
    for name, column in zip(chart.points.column_names, chart.points.columns, strict=True):
        listed = column.to_pylist()
        is_text = name in ("label", "until", "value", "value_until", "series")
        points[name] = (
            ("text", [None if one is None else visible(one) for one in listed]) if is_text else ("float", listed)
        )
    return content, [pack(points)]


def _named(name: str) -> list[str]:
    """Returns a column's name, and its display form."""
    return [name, visible(clip(name, 60))]
