"""The snapshot browser in a real JupyterLab: clicked, typed in, driven from Python, and without a kernel."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Page, expect

from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = (
    "from ducklake_lab.widgets import diff\nfrom ducklake_lab.widgets.snapshot_browser import SnapshotBrowser\n"
    "from tests.browser import samples",
    "browser = SnapshotBrowser(samples.history(), diff=lambda table, start, end: diff.render(samples.deleted()))\nbrowser",
    "print(browser.selected, browser.compare, browser.query)",
    "browser.compare = [3, 9]; browser.selected = 9",
)


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    """A notebook whose browser is live."""
    _lab.write("browser.ipynb", CELLS[:3])
    page = _lab.open("browser.ipynb")
    run_all(page)
    expect(page.locator(".dlk-sb")).to_have_count(1)
    first_paint(page, {".dlk-sb": ["18 snapshots", "fix tail numbers", "+328,521 \u2212328,521"]})
    yield page
    close(page)


def test_click_and_shift_click_select_and_compare(lab: Lab, notebook: Page, screenshot: Screenshot):
    rows = notebook.locator(".dlk-g-rows .dlk-g-row")
    rows.nth(3).click()
    expect(notebook.locator(".dlk-sb-detail")).to_contain_text("Snapshot 14 fix tail numbers")
    rows.nth(2).click(modifiers=["Shift"])
    expect(notebook.locator(".dlk-sb-detail")).to_contain_text("%ducklake diff main.flights 14 15")
    expect(notebook.locator(".dlk-g-rows [aria-selected=true]")).to_have_count(2)
    notebook.get_by_role("button", name="Show diff").click()
    expect(notebook.locator(".dlk-sb-result")).to_contain_text("8,255 deleted")
    screenshot(notebook, "browser-compare")
    rows.nth(4).click()
    notebook.get_by_role("button", name="What it changed").click()
    expect(notebook.locator(".dlk-sb-result")).to_contain_text("8,255 deleted")
    rows.nth(3).click()
    rows.nth(2).click(modifiers=["Shift"])
    run_cell(notebook, 2)
    expect(notebook.locator(".jp-CodeCell").nth(2).locator(".jp-OutputArea-output")).to_have_text("15 [14, 15] \n")


def test_keyboard_moves_the_selection_and_not_the_notebook(lab: Lab, notebook: Page):
    cells = notebook.locator(".jp-CodeCell").count()
    notebook.locator(".dlk-g-rows .dlk-g-row").nth(0).click()
    notebook.keyboard.press("ArrowDown")
    expect(notebook.locator(".dlk-sb-detail")).to_contain_text("Snapshot 16")
    notebook.keyboard.press("Shift+ArrowDown")
    expect(notebook.locator(".dlk-sb-detail")).to_contain_text("Snapshot 15 → 16")
    notebook.keyboard.press("Escape")
    expect(notebook.locator(".dlk-g-rows [aria-selected=true]")).to_have_count(1)
    notebook.keyboard.press("End")
    expect(notebook.locator(".dlk-sb-detail")).to_contain_text("Snapshot 0")
    expect(notebook.locator(".dlk-g-rows [aria-selected=true]")).to_be_in_viewport()
    # In a notebook these add, delete and cut cells.
    for key in ("a", "b", "x", "d", "d"):
        notebook.keyboard.press(key)
    assert notebook.locator(".jp-CodeCell").count() == cells


def test_typing_filters(lab: Lab, notebook: Page):
    search = notebook.get_by_label("Filter snapshots")
    search.fill("loader june")
    expect(notebook.locator(".dlk-g-rows .dlk-g-row")).to_have_count(1)
    expect(notebook.locator(".dlk-bar")).to_contain_text("1 of 18 snapshots")
    search.fill("")
    notebook.locator(".dlk-sb-kinds button", has_text="insert").click()
    expect(notebook.locator(".dlk-bar")).to_contain_text("5 of 18 snapshots")
    notebook.locator(".dlk-sb-kinds button", has_text="insert").click()
    expect(notebook.locator(".dlk-bar")).to_contain_text("18 snapshots")


def test_python_drives_it(lab: Lab, screenshot: Screenshot):
    lab.write("driven.ipynb", CELLS)
    page = lab.open("driven.ipynb", theme="dark")
    run_all(page)
    expect(page.locator(".dlk-sb-detail")).to_contain_text("Snapshot 3 → 9")
    expect(page.locator(".dlk-sb-time .dlk-sb-inside")).to_have_count(5)
    first_paint(page)
    screenshot(page, "browser")
    assert serious(page, ".dlk-live") == []
    # axe finds what cannot be read in one theme only
    page.add_style_tag(content="body[data-jp-theme-light=false] .dlk-live * { color: #333 !important; }")
    assert [(theme, rule) for theme, rule, *_ in serious(page, ".dlk-live")] == [("dark", "color-contrast")]
    close(page, window=True)


def test_in_a_box_it_is_an_ordinary_widget(lab: Lab):
    lab.write("box.ipynb", [CELLS[0], f"import ipywidgets\n{CELLS[1]}\nipywidgets.Box([browser])"])
    page = lab.open("box.ipynb")
    run_all(page)
    expect(page.locator(".dlk-sb .dlk-g-rows .dlk-g-row").nth(3)).to_contain_text("fix tail numbers")
    page.locator(".dlk-sb .dlk-g-rows .dlk-g-row").nth(3).click()
    expect(page.locator(".dlk-sb-detail")).to_contain_text("Snapshot 14 fix tail numbers")
    save(page)
    (output,) = nbformat.read(lab.files / "box.ipynb", 4).cells[1].outputs
    assert set(output.data) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    close(page)


def test_a_page_loaded_again_finds_its_kernel_and_without_one_shows_the_static_view(
    lab: Lab, browser: Browser, screenshot: Screenshot
):
    path = lab.write("reopened.ipynb", CELLS[:2])
    page = lab.open("reopened.ipynb")
    run_all(page)
    expect(page.locator(".dlk-sb")).to_have_count(1)
    save(page)
    page.reload()
    expect(page.locator(".dlk-sb")).to_have_count(1, timeout=30_000)
    close(page, window=True)

    (output,) = nbformat.read(path, 4).cells[1].outputs
    assert set(output.data) == {"text/plain", "text/html"}

    page = lab.open("reopened.ipynb", fresh=True)
    expect(page.locator(".jp-OutputArea-output .dlk")).to_be_visible()
    expect(page.locator(".jp-OutputArea-output .dlk")).to_contain_text("drop cancelled")
    assert "Error displaying widget" not in page.locator(".jp-Notebook").inner_text()
    screenshot(page, "reopened")
    close(page)

    html, _ = HTMLExporter(template_name="lab").from_filename(str(path))
    exported = browser.new_context(offline=True).new_page()
    exported.set_content(html, wait_until="domcontentloaded")
    expect(exported.locator(".dlk")).to_contain_text("drop cancelled")
    screenshot(exported, "exported")
    exported.context.close()


def test_a_model_whose_kernel_is_gone_leaves_the_static_view(lab: Lab):
    path = lab.write("executed.ipynb", CELLS[:2])
    folder = {"metadata": {"path": str(lab.files)}}
    document = NotebookClient(nbformat.read(path, 4), kernel_name="python3", resources=folder).execute()
    assert document.metadata["widgets"]
    nbformat.write(document, path)
    NotebookNotary(data_dir=str(lab.folder / "data")).sign(document)
    page = lab.open("executed.ipynb")
    expect(page.locator(".jp-OutputArea-output .dlk")).to_contain_text("drop cancelled")
    first_paint(page)
    expect(page.locator(".dlk-sb")).to_have_count(0)
    close(page)
