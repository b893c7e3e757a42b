"""The schema, file and table browsers and the preview on a hostile lake, in a real JupyterLab."""

from __future__ import annotations

import re
from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Page, expect

from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

SETUP = """%load_ext ducklake_lab
from pathlib import Path
from tests.browser import hostile, samples
from ducklake_lab.widgets.file_browser import FileBrowser
folder = Path("{name}-lake"); folder.mkdir()
session = hostile.build(folder)
%ducklake connect session"""

CELLS = (
    "tree = %ducklake schema\ntree",
    "",
    "table = %ducklake preview flights\ntable",
    "files = FileBrowser(samples.files())\nfiles",
    "%%ducklake --preview\nINSERT INTO flights VALUES (9001, 'B6', 1.5), (9002, '<b>', NULL)",
    "print(len(session.snapshots()), tree.selected, table.sort, table.filters, files.place)",
)


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    _lab.write("browsers.ipynb", [SETUP.format(name="browsers"), *CELLS])
    page = _lab.open("browsers.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2600})
    run_all(page)
    expect(page.locator(".dlk-live")).to_have_count(4)
    expect(page.locator(".dlk-pv")).to_have_count(1)
    expect(page.get_by_role("tree").get_by_role("treeitem")).to_have_count(4)
    first_paint(page)
    yield page
    close(page)


def output(page: Page, index: int) -> str:
    run_cell(page, index)
    shown = page.locator(".jp-CodeCell").nth(index).locator(".jp-OutputArea-output")
    expect(shown).to_have_count(1)
    return shown.inner_text()


def test_schema_is_searched_folded_and_inserts_a_query(lab: Lab, notebook: Page):
    tree = notebook.get_by_role("tree")
    notebook.get_by_label("Search names and comments").fill("carrier")
    expect(tree.get_by_role("treeitem")).to_have_count(2)
    notebook.get_by_label("Search names and comments").fill("")
    expect(tree.get_by_role("treeitem")).to_have_count(4)
    flights = tree.get_by_role("treeitem", name="flights")
    flights.click()
    expect(tree.get_by_role("treeitem", name="carrier")).to_be_visible()
    expect(flights).to_have_attribute("aria-expanded", "true")
    tree.focus()
    notebook.keyboard.press("ArrowLeft")
    expect(flights).to_have_attribute("aria-expanded", "false")
    notebook.keyboard.press("Enter")
    expect(notebook.locator(".jp-CodeCell").nth(2).locator(".cm-content")).to_contain_text("FROM lake.main.flights")
    assert "['main', 'flights']" in output(notebook, 6)


def test_rows_are_sorted_filtered_scrolled_and_told_as_sql(lab: Lab, notebook: Page):
    view = notebook.locator(".dlk-tb")
    expect(view.get_by_role("status")).to_have_text("3,000 rows")
    view.get_by_role("button", name="delay", exact=True).click()
    view.get_by_role("button", name="delay").click()
    expect(view.locator(".dlk-tb-sql")).to_contain_text('ORDER BY "delay" DESC NULLS LAST')
    view.get_by_label("Filter carrier").fill("= UA")
    expect(view.get_by_role("status")).to_have_text("750 of 3,000 rows")
    expect(view.locator(".dlk-tb-sql")).to_contain_text("WHERE \"carrier\" = 'UA'")
    view.get_by_label("Filter i").fill("soon")
    expect(view.get_by_role("alert")).to_contain_text('"soon" is no INTEGER')
    view.get_by_label("Filter i").fill("")
    expect(view.get_by_role("alert")).to_have_text("")
    grid = view.get_by_role("grid")
    grid.focus()
    notebook.keyboard.press("End")
    expect(grid.locator('[aria-rowindex="751"]')).to_be_visible()
    expect(view.locator(".dlk-tb-detail")).to_contain_text("Row 750")
    expect(grid.locator(".dlk-tb-profile svg").first).to_be_visible()
    assert "[['delay', True]] {'carrier': '= UA'}" in output(notebook, 6)


def test_files_are_sorted_and_selected(lab: Lab, notebook: Page):
    view = notebook.locator(".dlk-fb")
    expect(view.locator(".dlk-fb-map rect").first).to_be_visible()
    view.get_by_role("button", name="deleted").click()
    expect(view.get_by_role("columnheader", name="deleted")).to_have_attribute("aria-sort", "descending")
    view.get_by_role("row").nth(2).click()
    expect(view.locator(".dlk-fb-detail table")).to_be_visible()
    view.get_by_label("Column whose intervals are drawn").select_option("carrier")
    expect(view.locator(".dlk-fb-ranges")).to_contain_text("a filter on one value reads 12.0 of 12 files on average")
    expect(view.locator(".dlk-fb-strip line")).to_have_count(12)
    assert output(notebook, 6).strip().endswith("} 1")


def test_nothing_of_a_catalog_becomes_code_and_axe_has_no_serious_finding(
    lab: Lab, notebook: Page, screenshot: Screenshot
):
    screenshot(notebook, "browsers")
    notebook.locator(".jp-CodeCell").nth(1).scroll_into_view_if_needed()
    notebook.locator(".jp-WindowedPanel-outer").evaluate("node => node.scrollTo(0, 0)")
    settle(notebook)
    screenshot(notebook, "browsers-top")
    assert notebook.evaluate("window.hacked") is None
    assert serious(notebook, ".dlk-live", ".dlk-pv", ".dlk") == []


def test_a_preview_is_committed_by_its_button(lab: Lab, notebook: Page, screenshot: Screenshot):
    before = int(output(notebook, 6).split()[0])
    bar = notebook.locator(".dlk-pv")
    bar.scroll_into_view_if_needed()
    screenshot(notebook, "preview")
    bar.get_by_label("Commit message").fill("two more")
    bar.get_by_role("button", name="Commit").click()
    expect(bar).to_contain_text("Committed")
    expect(notebook.locator(".dlk-pv-state").first).to_have_text(re.compile(r"^\d+$"))
    assert int(output(notebook, 6).split()[0]) == before + 1


def test_saved_and_opened_without_a_kernel_all_of_it_is_there(lab: Lab, notebook: Page):
    save(notebook)
    cells = nbformat.read(lab.files / "browsers.ipynb", 4).cells
    for index in (1, 3, 4, 5):
        (kept,) = cells[index].outputs
        assert set(kept.data) == {"text/plain", "text/html"}
        assert "<script>window" not in kept.data["text/html"]
        assert len(kept.data["text/html"]) < 300_000
    # what became of the change is saved
    assert re.search(r"<b>Committed</b> as snapshot \d+<", cells[5].outputs[0].data["text/html"])
    assert "not committed" not in cells[5].outputs[0].data["text/html"].casefold()


def test_a_result_is_a_grid(lab: Lab, screenshot: Screenshot):
    count = "session.sql('SELECT count(DISTINCT coalesce(carrier, 0::VARCHAR)) FROM flights').fetchone()[0]"
    query = "SELECT carrier, count(*) AS n, max(delay) AS most FROM flights GROUP BY ALL ORDER BY n DESC, carrier"
    lab.write("grid.ipynb", [SETUP.format(name="grid"), f"%%ducklake --grid\n{query}", count])
    page = lab.open("grid.ipynb")
    run_all(page)
    view = page.locator(".dlk-tb")
    expect(view.get_by_role("grid")).to_be_visible()
    first_paint(page)
    screenshot(page, "grid")
    rows = int(output(page, 2))
    expect(view.get_by_role("status")).to_have_text(f"{rows} rows")
    expect(view.locator(".dlk-tb-sql")).to_have_text(query)
    view.get_by_label("Filter carrier").fill("= UA")
    expect(view.get_by_role("status")).to_have_text(f"1 of {rows} rows")
    expect(view.locator(".dlk-tb-sql")).to_have_text(f"SELECT * FROM (\n{query}\n)\nWHERE \"carrier\" = 'UA'")
    assert page.evaluate("window.hacked") is None
    assert serious(page, ".dlk-live", ".dlk") == []
    close(page)
