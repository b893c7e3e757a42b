"""Style of all figures: colours, and a look that suits light and dark pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

BEFORE = "#8b939c"
AFTER = "#4f7fd6"

# Mid-grey text and lines read on white and on near-black; the background is the page's own.
_TEXT = "#808890"
_LINE = "rgba(128,136,144,.25)"


class Picture(go.Figure):
    """A figure that leaves a still picture behind: notebooks that are exported or reopened have no plotly."""

    def __init__(self, figure: go.Figure, still: Callable[[], str]) -> None:
        super().__init__(figure)
        self._still = still

    def _repr_mimebundle_(self, *arguments: object, **options: object) -> dict[str, Any]:
        """Plotly's own forms, and HTML that needs nothing."""
        bundle = dict(super()._repr_mimebundle_(*arguments, **options) or {})
        bundle["text/html"] = self._still()
        return bundle

    def _ipython_display_(self) -> None:
        """Leaves displaying to the bundle; plotly's own way would publish its forms alone."""
        raise NotImplementedError


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
        margin={"l": 56, "r": 16, "t": 86, "b": 44},
        hoverlabel={"align": "left"},
        # below the title: plotly's toolbar is at the right
        legend={
            "orientation": "h",
            "y": 1 - 30 / height,
            "yref": "container",
            "yanchor": "top",
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
        },
        bargap=0.25,
    )
    axis: dict[str, object] = {"gridcolor": _LINE, "zerolinecolor": _LINE, "linecolor": _LINE, "automargin": True}
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
