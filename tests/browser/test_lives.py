"""A click on a cell says who set it; a second one unfolds the life of its row."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

import ducklake_lab as dl
from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious

pytestmark = pytest.mark.sampled(3)

SETUP = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = 'duckdb'
%ducklake connect ducklake:sqlite:lives/lake.sqlite --alias lake"""
TABLE, RESULT, ALIKE, GROUPS, DIFF, ANSWERS, PREVIEW = range(1, 8)
CELLS = (
    "%ducklake preview people",
    "%%ducklake\nSELECT name, city, upper(city) AS loud FROM people WHERE id >= 3 ORDER BY id",
    "%%ducklake\nSELECT city FROM people WHERE id IN (2, 4)",
    "%%ducklake\nSELECT city, count(*) AS n FROM people GROUP BY ALL ORDER BY ALL",
    "%ducklake diff people 2 5",
    "%ducklake compare 'SELECT count(*) AS n, city FROM people GROUP BY ALL' 2 5",
    "%%ducklake --preview\nUPDATE people SET city = 'Paris' WHERE id = 3",
)


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    (_lab.files / "lives").mkdir()
    with dl.connect(f"ducklake:sqlite:{_lab.files}/lives/lake.sqlite", alias="lake", engine="duckdb") as session:
        session.record_statements = lambda: {"notebook": "fix.ipynb", "cell": 4}
        session.sql("CREATE TABLE people (id INTEGER, name VARCHAR, city VARCHAR)")
        session.sql(
            "INSERT INTO people VALUES (1, 'Ada', 'London'), (2, 'Grace', 'New York'), (3, 'Alan', 'London'), "
            "(4, 'Edsger', 'New York'), (5, NULL, '<b>bold</b>')",
            message="load",
        )
        session.author = "bob"
        session.sql(
            "UPDATE people SET city = 'Bletchley' WHERE id = 3", message="<img src=x onerror='window.hacked=1'>"
        )
        session.sql("UPDATE people SET name = NULL, city = '<script>window.hacked=2</script>' WHERE id = 3")
        session.sql("DELETE FROM people WHERE id = 1")
    _lab.write("lives.ipynb", [SETUP, *CELLS])
    page = _lab.open("lives.ipynb")
    page.set_viewport_size({"width": 1320, "height": 4000})
    run_all(page)
    expect(page.locator(".dlk-tb:not(.dlk-tb-unseen)")).to_have_count(4)
    expect(page.locator(".dlk-df .dlk-g-rows .dlk-g-row").first).to_be_visible()
    settle(page)
    yield page
    close(page)


def output(page: Page, cell: int) -> Locator:
    return page.locator(".jp-CodeCell").nth(cell)


def at(page: Page, cell: int, row: int, column: int) -> Locator:
    return output(page, cell).locator(".dlk-g-rows .dlk-g-row").nth(row).get_by_role("gridcell").nth(column)


def panel(page: Page, cell: int) -> Locator:
    return output(page, cell).get_by_role("region", name="Who set the value")


def test_a_cell_of_a_table(lab: Lab, notebook: Page, screenshot: Screenshot):
    said = panel(notebook, TABLE)
    expect(said).to_be_hidden()
    at(notebook, TABLE, 1, 2).click()
    expect(said.locator(".dlk-lf-title")).to_have_text("city row id 2 of main.people, as of snapshot 5")
    expect(said).to_contain_text("Bletchley → <script>window.hacked=2</script> updated in snapshot 4")
    expect(said).to_contain_text("bob · fix.ipynb [4]")
    life = said.get_by_role("list", name="Life of the row")
    expect(life).to_be_hidden()
    # the second click, on the same cell
    at(notebook, TABLE, 1, 2).click()
    expect(life.locator("> li")).to_have_count(3)
    expect(life.locator("> li").nth(0)).to_contain_text("insert in snapshot 2 load")
    expect(life.locator("> li").nth(1)).to_contain_text("update in snapshot 3 <img src=x onerror='window.hacked=1'>")
    expect(life.locator("> li").nth(2)).to_have_attribute("aria-current", "true")
    expect(life.locator("> li").nth(2)).to_contain_text("name Alan → NULL")
    assert notebook.evaluate("window.hacked") is None
    screenshot(notebook, "lives-table")
    assert serious(notebook, ".dlk-lf") == []
    # another cell has another answer, by the keyboard too
    output(notebook, TABLE).get_by_role("grid").focus()
    notebook.keyboard.press("ArrowLeft")
    notebook.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("3 inserted with its row in snapshot 2 load")
    expect(life).to_be_hidden()
    said.get_by_role("button", name="Life of the row (3 changes)").click()
    expect(life.locator("> li")).to_have_count(3)
    output(notebook, TABLE).get_by_role("button", name="Close", exact=True).click()
    expect(said).to_be_hidden()


def test_a_cell_of_a_result(lab: Lab, notebook: Page):
    said = panel(notebook, RESULT)
    at(notebook, RESULT, 1, 0).click()
    expect(said.locator(".dlk-lf-title")).to_have_text("name row id 3 of main.people, as of snapshot 5")
    expect(said).to_contain_text("Edsger inserted with its row in snapshot 2 load")
    at(notebook, RESULT, 0, 2).click()
    expect(said).to_contain_text("This value is no column of main.people.")
    expect(said.get_by_role("list", name="Life of the row").locator("> li")).to_have_count(3)


def test_rows_that_look_alike_are_offered(lab: Lab, notebook: Page):
    said = panel(notebook, ALIKE)
    at(notebook, ALIKE, 0, 0).click()
    expect(said).to_contain_text("2 rows of main.people show these values:")
    said.get_by_role("button", name="row id 3", exact=True).click()
    expect(said.locator(".dlk-lf-title")).to_have_text("city row id 3 of main.people, as of snapshot 5")


def test_a_cell_of_other_rows_says_nothing_of_that(lab: Lab, notebook: Page):
    at(notebook, GROUPS, 0, 0).click()
    expect(output(notebook, GROUPS).get_by_role("region", name="Cell")).to_be_visible()
    expect(panel(notebook, GROUPS)).to_have_count(0)
    at(notebook, ANSWERS, 0, 1).click()
    notebook.wait_for_timeout(300)
    expect(panel(notebook, ANSWERS)).to_be_hidden()
    heads = output(notebook, ANSWERS).locator(".dlk-df .dlk-cg").first.get_by_role("columnheader")
    expect(heads).to_have_text(["", "city", "n"])


def test_a_cell_of_a_diff(lab: Lab, notebook: Page, screenshot: Screenshot):
    said = panel(notebook, DIFF)
    rows = output(notebook, DIFF).locator(".dlk-g-rows .dlk-g-row")
    heads = output(notebook, DIFF).locator(".dlk-df").get_by_role("columnheader").all_inner_texts()
    gone = rows.filter(has_text="Ada")
    gone.get_by_role("gridcell").nth(heads.index("name")).click()
    expect(said.locator(".dlk-lf-title")).to_have_text("name row id 0 of main.people, as of snapshot 2")
    expect(said).to_contain_text("Ada inserted with its row in snapshot 2 load")
    changed = rows.filter(has_text="Alan").get_by_role("gridcell").nth(heads.index("city"))
    changed.click()
    expect(said).to_contain_text("Bletchley → <script>window.hacked=2</script> updated in snapshot 4")
    changed.click()
    expect(said.get_by_role("list", name="Life of the row").locator("> li")).to_have_count(3)
    screenshot(notebook, "lives-diff")
    assert serious(notebook, ".dlk-lf", ".dlk-df") == []
    notebook.keyboard.press("Tab")
    said.get_by_role("button", name="Close").focus()
    notebook.keyboard.press("Escape")
    expect(said).to_be_hidden()


def test_a_cell_of_a_preview(lab: Lab, notebook: Page, screenshot: Screenshot):
    rows = output(notebook, PREVIEW).locator("table.dlk-rows tbody tr")
    said = panel(notebook, PREVIEW)
    rows.first.locator("td.dlk-edit").click()
    expect(said).to_contain_text("updated in snapshot 4")
    expect(said).to_contain_text("Changes that are not committed have no snapshot yet.")
    rows.first.locator("td.dlk-edit").click()
    expect(said.get_by_role("list", name="Life of the row").locator("> li")).to_have_count(3)
    screenshot(notebook, "lives-preview")
    notebook.keyboard.press("ArrowRight")
    notebook.keyboard.press("Enter")
    expect(said).to_contain_text("inserted with its row in snapshot 2")
    output(notebook, PREVIEW).get_by_role("button", name="Roll back").click()
    expect(output(notebook, PREVIEW)).to_contain_text("the lake is as it was")


def test_a_saved_notebook_without_a_kernel_has_no_such_panels(lab: Lab, notebook: Page):
    save(notebook)
    saved = nbformat.read(lab.files / "lives.ipynb", 4)
    for cell in saved.cells[1:]:
        assert all("dlk-lf" not in one.data["text/html"] for one in cell.outputs if "data" in one)
    first_paint(notebook)
