"""Every view in the colours of VS Code and Google Colab: their names on a page that has JupyterLab's too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.first_paint import settle
from tests.browser.lab import Lab, Screenshot, brightness, close, run_all, serious

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = (
    "%load_ext ducklake_lab\n%config DuckLakeMagics.engine = 'duckdb'\n%ducklake connect ducklake:sqlite:places.sqlite --alias lake",
    "%%ducklake\nCREATE TABLE t AS SELECT i AS n, 'note ' || i AS note FROM range(300) r(i)",
    "%%ducklake\nUPDATE t SET note = 'new' WHERE n % 10 = 0",
    "%%ducklake --grid\nSELECT * FROM t ORDER BY n",
    "%ducklake snapshots",
    "%ducklake schema",
    "%ducklake files t",
    "%ducklake diff t 1 2",
    "%%ducklake --preview\nDELETE FROM t WHERE n < 3",
)
VIEWS = (".dlk-tb", ".dlk-sb", ".dlk-sc", ".dlk-fb", ".dlk-df", ".dlk-pv")
#: The text and the background of each place, and its names for them.
PLACES = {
    "vscode-dark": ("#cccccc", "#1f1f1f", "--vscode-editor-foreground", "--vscode-editor-background"),
    "vscode-light": ("#3b3b3b", "#ffffff", "--vscode-editor-foreground", "--vscode-editor-background"),
    "vscode-high-contrast": ("#ffffff", "#000000", "--vscode-editor-foreground", "--vscode-editor-background"),
    "colab-dark": ("#d5d5d5", "#383838", "--colab-primary-text-color", "--colab-primary-surface-color"),
    "colab-light": ("#212121", "#ffffff", "--colab-primary-text-color", "--colab-primary-surface-color"),
}
_WEAR = """rules => {
    const style = document.querySelector("#place") ?? document.head.appendChild(document.createElement("style"));
    style.id = "place";
    style.textContent = rules;
}"""


def rules(place: str) -> str:
    """The style of a page there."""
    text, background, text_name, background_name = PLACES[place]
    field = "#313131" if place == "vscode-dark" else background
    fields = f"--vscode-dropdown-background:{field};" if place.startswith("vscode") else ""
    return (
        f":root{{{text_name}:{text};{background_name}:{background};{fields}}}"
        f".jp-Notebook,.jp-OutputArea-output{{background:{background} !important;color:{text}}}"
        ".cell-output-ipywidget-background{background:white !important}"
    )


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    _lab.write("places.ipynb", CELLS)
    page = _lab.open("places.ipynb")
    page.set_viewport_size({"width": 1320, "height": 6000})
    run_all(page)
    for view in VIEWS:
        expect(page.locator(f"{view}:not(.dlk-tb-unseen)").first).to_be_visible()
    settle(page)
    yield page
    close(page, window=True)


@pytest.mark.parametrize("place", PLACES)
def test_views_take_the_colours_of_the_place(notebook: Page, place: str, screenshot: Screenshot):
    notebook.evaluate(_WEAR, rules(place))
    dark = int(PLACES[place][1][1:], 16) < 0x808080
    for view in VIEWS:
        assert (brightness(notebook.locator(view).first, "color") > 128) == dark
    screenshot(notebook, place)
    # whichever of its themes JupyterLab's own names are from
    assert serious(notebook, ".dlk-live", ".dlk-pv", ".jp-OutputArea-output .dlk") == []


def test_a_view_has_a_background_where_all_widgets_are_on_white(notebook: Page):
    notebook.evaluate(_WEAR, rules("vscode-dark"))
    view = notebook.locator(".dlk-sb")
    output = view.locator("xpath=ancestor::*[contains(@class, 'jp-OutputArea-output')]")
    output.evaluate("node => node.classList.add('cell-output-ipywidget-background')")
    assert brightness(view, "backgroundColor") == 0x1F
    assert serious(notebook, ".dlk-sb") == []
    output.evaluate("node => node.classList.remove('cell-output-ipywidget-background')")
