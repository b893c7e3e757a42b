"""Pictures for the documentation as SVG, on light and dark pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import plotly.graph_objects as go

from tests import chromium

#: Colours and marks of the two that are compared.
COLOURS = {"ours": "#4c7fd9", "the reference": "#c77c02"}
MARKS = {"ours": "circle", "the reference": "diamond"}
GRID = "rgba(128, 128, 128, 0.25)"
_CLEAR = "rgba(0, 0, 0, 0)"
#: Of text on light and dark pages, by what follows the file's name.
_INK = {"": "#333333", "-dark": "#cccccc"}


def style(drawn: go.Figure, ink: str) -> None:
    """Gives a figure the colour of its text and no background."""
    drawn.update_layout(font={"color": ink, "size": 12}, paper_bgcolor=_CLEAR, plot_bgcolor=_CLEAR)


def write(name: str, figure: Callable[[str], go.Figure], folder: Path, width: int, height: int) -> None:
    """Writes `<name>.svg` and `<name>-dark.svg`; makes the folder if need be.

    Args:
        figure: makes it for a colour of text.
        width: in pixels, like the height.
    """
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.required(), args=["--no-sandbox"])
        page = browser.new_page()
        for theme, ink in _INK.items():
            page.set_content(figure(ink).to_html(include_plotlyjs=True, div_id="plot"))
            size = f"{{format: 'svg', width: {width}, height: {height}}}"
            url = page.evaluate(f"async () => await Plotly.toImage(document.getElementById('plot'), {size})")
            (folder / f"{name}{theme}.svg").write_text(unquote(url.partition(",")[2]), encoding="utf-8")
        browser.close()
