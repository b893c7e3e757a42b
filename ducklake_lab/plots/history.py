"""The history of a lake or table as a figure."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from ducklake_lab.hooks import hook
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.plots.style import Picture, finish, plain


def plot(history: Sequence[HistoryEntry]) -> go.Figure:
    """Rows added (up) and removed (down) by each snapshot, coloured by kind; zooms and pans.

    Snapshots are evenly spaced: many are made within a second and then none for a day.
    """
    figure = go.Figure()
    title = plain(getattr(history, "title", "Snapshots"))
    for kind, color in KIND_COLORS.items():
        entries = [entry for entry in history if entry.kind == kind]
        if not entries:
            continue
        ids = [entry.info.snapshot_id for entry in entries]
        texts = [_hover(entry) for entry in entries]
        look = {"hovertext": texts, "hoverinfo": "text", "legendgroup": kind, "marker": {"color": color}}
        moved = any(entry.rows_added or entry.rows_removed for entry in entries)
        if moved:
            figure.add_bar(x=ids, y=[entry.rows_added for entry in entries], name=kind, **look)
            figure.add_bar(x=ids, y=[-(entry.rows_removed or 0) for entry in entries], showlegend=False, **look)
        still = [at for at, entry in enumerate(entries) if not entry.rows_added and not entry.rows_removed]
        if still:
            figure.add_scatter(
                x=[ids[at] for at in still],
                y=[0] * len(still),
                mode="markers",
                name=kind,
                showlegend=not moved,
                hovertext=[texts[at] for at in still],
                hoverinfo="text",
                legendgroup=kind,
                marker={"color": color, "size": 10, "symbol": "diamond"},
            )
    figure.update_layout(barmode="relative")
    figure.update_xaxes(title="snapshot", tickformat="d")
    figure.update_yaxes(title="rows", tickformat="~s")
    return Picture(finish(figure, title, 340), lambda: str(hook("history.html")(history)))


def _hover(entry: HistoryEntry) -> str:
    info = entry.info
    lines = [f"<b>{info.snapshot_id}</b> · {info.snapshot_time:%Y-%m-%d %H:%M} {info.snapshot_time.tzinfo}"]
    if info.author or entry.message:
        lines.append(" · ".join(plain(part) for part in (info.author, entry.message) if part))
    lines += [plain(change, 80) for change in entry.changes[:6]]
    removed = "?" if entry.rows_removed is None else f"{entry.rows_removed:,}"
    lines.append(f"{'at most ' if entry.at_most else ''}+{entry.rows_added:,} −{removed} rows")
    return "<br>".join(lines)
