"""A diff as a figure: the counts, and the values of changed rows before and after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ducklake_lab.diff.model import ColumnDiff, Histogram
from ducklake_lab.hooks import hook
from ducklake_lab.model.labels import KIND_COLORS, distinct
from ducklake_lab.plots.sources import DiffSource
from ducklake_lab.plots.style import AFTER, BEFORE, Picture, finish, plain

#: Columns drawn, those that updates touched first.
LIMIT = 8
_ACROSS = 3


def plot(diff: DiffSource, columns: int = LIMIT) -> go.Figure:
    """Counts of changed rows, then one histogram of before and after per column.

    Args:
        columns: how many columns at most.
    """
    drawn = sorted((column for column in diff.columns if column.histogram), key=lambda column: -column.share)[:columns]
    total = len(drawn) + 1
    across = min(_ACROSS, total)
    down = -(-total // across)
    titles = ["rows", *(_title(column) for column in drawn)]
    figure = make_subplots(
        rows=down, cols=across, subplot_titles=titles, vertical_spacing=0.3 / down, horizontal_spacing=0.09
    )
    _counts(figure, diff)
    for index, column in enumerate(drawn, start=1):
        _histogram(figure, column, index // across + 1, index % across + 1, legend=index == 1)
    figure.update_annotations(font={"size": 13})
    figure.update_yaxes(row=1, col=1, autorange="reversed")
    end = "uncommitted" if diff.end is None else str(diff.end.snapshot_id)
    finish(figure, f"{plain(diff.table)}: {diff.start.snapshot_id} → {end}", 110 + 230 * down)
    figure.update_layout(barmode="overlay", bargap=0.08)
    figure.update_yaxes(row=1, col=1, showgrid=False)
    return Picture(figure, lambda: str(hook("diff.picture")(diff)))


def _title(column: ColumnDiff) -> str:
    more = column.histogram.more if column.histogram is not None else 0
    return plain(column.name, 40) + (f", {more:,} rarer not shown" if more else "")


def _counts(figure: go.Figure, diff: DiffSource) -> None:
    summary = diff.summary
    numbers = (summary.deleted, summary.inserted, summary.updated)
    figure.add_bar(
        row=1,
        col=1,
        y=["− deleted", "+ inserted", "→ updated"],
        x=numbers,
        orientation="h",
        text=[f"{number:,}" for number in numbers],
        textposition="auto",
        marker={"color": [KIND_COLORS["delete"], KIND_COLORS["insert"], KIND_COLORS["update"]]},
        showlegend=False,
        hovertemplate="%{y}: %{x:,}<extra></extra>",
    )


def _histogram(figure: go.Figure, column: ColumnDiff, row: int, col: int, *, legend: bool) -> None:
    data = column.histogram
    if data is None:
        return
    names = [plain(label, 24) for label in data.labels]
    labels: list[object] = list(_middles(data)) if data.numeric else [*distinct(names)]
    # Where rows are only deleted, or only inserted, the colour says which.
    before = BEFORE if any(data.after) else KIND_COLORS["delete"]
    after = AFTER if any(data.before) else KIND_COLORS["insert"]
    for name, counts, marker in (
        ("before", data.before, {"color": before}),
        ("after", data.after, {"color": "rgba(79,127,214,.25)", "line": {"color": after, "width": 1.6}}),
    ):
        if not any(counts):
            continue
        figure.add_bar(
            row=row,
            col=col,
            x=labels,
            customdata=names,
            y=counts,
            name=name,
            legendgroup=name,
            showlegend=legend,
            marker=marker,
            hovertemplate=f"{'from ' if data.numeric else ''}%{{customdata}}: %{{y:,}} {name}<extra></extra>",
        )
    figure.update_yaxes(row=row, col=col, tickformat="~s")
    if not data.numeric:
        figure.update_xaxes(row=row, col=col, type="category")


def _middles(data: Histogram) -> Sequence[object]:
    """Return the middles of the bins, where bars are drawn: bins begin at their edges, numbers or times."""
    try:
        numbers = [float(label) for label in data.labels]
    except ValueError:
        pass
    else:
        return [edge + (numbers[1] - numbers[0]) / 2 for edge in numbers] if len(numbers) > 1 else numbers
    try:
        times = [datetime.fromisoformat(label) for label in data.labels]
    except ValueError:
        return data.labels
    return [edge + (times[1] - times[0]) / 2 for edge in times] if len(times) > 1 else times
