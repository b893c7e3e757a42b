"""What all figures share: colours, and a look that suits light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from ducklake_lab.model.history import ChangeKind

#: The colours of the static views, so that a picture and a table speak the same language.
KINDS: Mapping[ChangeKind, str] = {
    "insert": "#159a72",
    "update": "#c07c00",
    "delete": "#d9482f",
    "schema": "#8a63d2",
    "maintenance": "#7d8590",
    "none": "#a0a7af",
}
BEFORE = "#8b939c"
AFTER = "#4f7fd6"

# Mid-grey text and lines read on white and on near-black; the background is the page's own.
_TEXT = "#808890"
_LINE = "rgba(128,136,144,.25)"


def finish(figure: go.Figure, title: str, height: int) -> go.Figure:
    """Applies the common look. Texts from a catalog must have gone through `plain` before."""
    figure.update_layout(
        title={
            "text": title,
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 10},
            "font": {"size": 15},
        },
        template="none",
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": _TEXT},
        margin={"l": 56, "r": 16, "t": 76, "b": 44},
        hoverlabel={"align": "left"},
        legend={"orientation": "h", "y": 1, "yref": "container", "yanchor": "top", "x": 1, "xanchor": "right"},
        bargap=0.25,
    )
    axis: dict[str, Any] = {"gridcolor": _LINE, "zerolinecolor": _LINE, "linecolor": _LINE, "automargin": True}
    figure.update_xaxes(**axis, showgrid=False)
    figure.update_yaxes(**axis)
    return figure


def plain(text: object, width: int = 60) -> str:
    """Text that plotly shows as it is: it reads a few HTML tags in every label."""
    shown = str(text)
    if len(shown) > width:
        shown = shown[: width - 1] + "…"
    return (
        "".join(character if character.isprintable() else "·" for character in shown)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
    )
