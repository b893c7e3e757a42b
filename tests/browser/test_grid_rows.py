"""Rows of a grid while it scrolls: elements that leave the view show the rows that come into it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import Lab, close, run_all, serious

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = [
    "%load_ext ducklake_lab\n%config DuckLakeMagics.engine = 'duckdb'\n%ducklake connect ducklake:scrolled.ducklake",
    "%%ducklake --grid\nSELECT i, 'note ' || i AS note, CASE WHEN i % 2 = 0 THEN i END AS half FROM range(3000) AS r(i)",
]
#: The rows in the page: number, text of the cells, and the mark that a test has left on their element.
ROWS = """grid => [...grid.querySelectorAll(".dlk-g-rows .dlk-g-row")].map(row => ({
    at: Number(row.getAttribute("aria-rowindex")) - 2, id: row.id, mark: row.mark,
    cells: [...row.children].map(cell => cell.textContent), ids: [...row.children].map(cell => cell.id),
}))"""
MARK = """grid => grid.querySelectorAll(".dlk-g-rows .dlk-g-row").forEach(row => {
    row.mark = Number(row.getAttribute("aria-rowindex")) - 2; })"""


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    _lab.write("scrolled.ipynb", CELLS)
    page = _lab.open("scrolled.ipynb")
    run_all(page)
    expect(page.locator(".dlk-tb").get_by_role("grid")).to_be_visible()
    yield page
    close(page)


@pytest.fixture
def grid(lab: Lab, notebook: Page) -> Locator:
    """The grid at its top, each row's element marked with its number."""
    found = notebook.locator(".dlk-tb").get_by_role("grid")
    found.evaluate("grid => { grid.scrollTop = 0; }")
    expect(found.locator('[aria-rowindex="2"]')).to_be_visible()
    found.evaluate(MARK)
    return found


def scroll(grid: Locator, rows: int) -> None:
    """Scroll to a row, and wait until the rows around it are here."""
    grid.evaluate(
        "(grid, rows) => { grid.scrollTop = rows * grid.querySelector('.dlk-g-rows .dlk-g-row').offsetHeight; }", rows
    )
    expect(grid.locator(f'[aria-rowindex="{rows + 3}"]')).to_contain_text(f"note {rows + 1}")


def check(grid: Locator) -> list[dict[str, object]]:
    """The rows in the page, which stand in order and show what is theirs."""
    rows: list[dict[str, object]] = grid.evaluate(ROWS)
    places = [int(str(row["at"])) for row in rows]
    assert places == list(range(places[0], places[0] + len(rows)))
    assert [row["cells"] for row in rows] == [
        [str(at), f"note {at}", str(at) if at % 2 == 0 else "NULL"] for at in places
    ]
    ids = [one for row in rows for one in (row["id"], *row["ids"])]  # type: ignore[misc]
    assert len(set(ids)) == len(ids) and all(str(row["id"]).endswith(f"-{row['at']}") for row in rows)
    return rows


def test_rows_that_stay_in_view_keep_their_elements(grid: Locator):
    scroll(grid, 9)
    rows = check(grid)
    assert rows[0]["at"] == 3
    # six are drawn above those in view, so that the first three have left the page
    assert [row["mark"] for row in rows[:-3]] == [row["at"] for row in rows[:-3]]
    assert {row["mark"] for row in rows[-3:]} == {0, 1, 2}


def test_a_jump_makes_no_new_elements(grid: Locator):
    scroll(grid, 100)
    grid.evaluate(MARK)
    before = len(check(grid))
    for rows in (1500, 2000, 103):
        scroll(grid, rows)
        found = check(grid)
        assert len(found) <= before + 1
        assert sum(row["mark"] is None for row in found) <= 1
    assert serious(grid.page, ".dlk-live") == []


def test_the_end_and_the_cursor_are_where_they_should_be(grid: Locator):
    grid.locator('[aria-rowindex="4"] [role=gridcell]').nth(1).click()
    assert grid.get_attribute("aria-activedescendant") == grid.locator(".dlk-g-at").get_attribute("id")
    scroll(grid, 1000)
    assert grid.get_attribute("aria-activedescendant") is None
    expect(grid.locator(".dlk-g-at, [aria-selected=true]")).to_have_count(0)
    scroll(grid, 0)
    expect(grid.locator(".dlk-g-at")).to_have_text("note 2")
    expect(grid.locator("[aria-selected=true]")).to_have_attribute("aria-rowindex", "4")
    grid.press("End")
    expect(grid.locator(".dlk-g-last")).to_have_attribute("aria-rowindex", "3001")
    expect(grid.locator(".dlk-g-at")).to_have_text("note 2999")
    scroll(grid, 2900)
    expect(grid.locator(".dlk-g-last")).to_have_count(0)
    check(grid)


def test_selected_text_stays_selected(grid: Locator):
    scroll(grid, 10)
    cell = grid.locator('[aria-rowindex="18"] [role=gridcell]').nth(1)
    cell.evaluate("cell => getSelection().selectAllChildren(cell)")
    scroll(grid, 13)
    assert grid.evaluate("() => getSelection().toString()") == "note 16"
