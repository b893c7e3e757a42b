"""Results of cells: a table at once, then a grid in its place that looks the same until it is used."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

#: Queries over tables wait until their rows are asked for, whatever the size of the table.
SETUP = """%load_ext ducklake_lab
import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
session = dl.connect("ducklake:{name}.ducklake", alias="lake", engine="duckdb", limits=Limits(eager=0))
%ducklake connect session"""
TABLE = """%%ducklake
CREATE TABLE t AS SELECT i AS n, CASE WHEN i % 10 > 0 THEN i % 7 END AS k, 'note ' || i AS note FROM range(3000) AS r(i)"""
COUNT, GROUPS, ALL, LIMITED, PLAIN, TWICE, NAMED, LOOP, HOSTILE, WIDE = range(2, 12)
CELLS = (
    TABLE,
    "%%ducklake\nSELECT count(*) AS rows FROM t WHERE n >= 0",
    "%%ducklake\nSELECT k, count(*) AS n, sum(n)::BIGINT AS total FROM t GROUP BY ALL ORDER BY ALL",
    "%%ducklake\nSELECT * FROM t ORDER BY n",
    "%%ducklake --limit 5\nSELECT n, note FROM t WHERE n >= 1000 ORDER BY n",
    "%%ducklake --no-grid\nSELECT n FROM t LIMIT 3",
    "%%ducklake\nSELECT 1 AS a, 2 AS a",
    "%%ducklake -o arrow rows = <<\nSELECT n FROM t ORDER BY n LIMIT 3",
    "for k in range(2):\n    display(session.sql(f'SELECT {k} AS k'))",
    """%%ducklake
SELECT * FROM (VALUES (1, '<b>bold</b>', {'a': [1, NULL]}, NULL), (NULL, '<img src=x onerror="window.hacked=1">', NULL, 1.50),
    (3, '🦆 Grüße 東京', {'a': []}, -2.25), (4, '', {'a': [4]}, 0.00)) AS v(id, "<i>text</i>", nested, x)""",
    "session.sql('SELECT ' + ', '.join(f'{i} AS column_{i}' for i in range(300)))",
)
#: Cells, and how many grids each shows.
GRIDS = {COUNT: 1, GROUPS: 1, ALL: 1, LIMITED: 1, PLAIN: 0, TWICE: 0, NAMED: 1, LOOP: 2, HOSTILE: 1, WIDE: 1}
_WATCH = """() => {
    window.moved = [];
    window.scrolled = new Set();
    const known = new Map();
    const look = () => {
        document.querySelectorAll(".jp-CodeCell").forEach((cell, at) => {
            const live = cell.querySelectorAll(".dlk-tb:not(.dlk-tb-unseen)").length > 0;
            const high = cell.querySelector(".jp-OutputArea")?.offsetHeight ?? 0;
            const before = known.get(at) ?? [false, 0];
            if (live && before[1] !== high) window.moved.push([at, before[1], high]);
            known.set(at, [live, high]);
        });
        for (const output of document.querySelectorAll(".jp-OutputArea-output")) {
            const isCut = output.scrollWidth > output.clientWidth + 1 || output.scrollHeight > output.clientHeight + 1;
            if (isCut) window.scrolled.add(output.textContent.slice(-80));
        }
        requestAnimationFrame(look);
    };
    look();
}"""


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    _lab.write("shown.ipynb", [SETUP.format(name="shown"), *CELLS])
    page = _lab.open("shown.ipynb")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1280, "height": 4000})
    page.evaluate(_WATCH)
    run_all(page)
    expect(page.locator(".dlk-tb:not(.dlk-tb-unseen)")).to_have_count(sum(GRIDS.values()))
    yield page
    close(page, window=True)


def grid(page: Page, cell: int) -> Locator:
    return page.locator(".jp-CodeCell").nth(cell).locator(".dlk-tb")


def status(view: Locator) -> Locator:
    return view.locator(".dlk-tb-foot").get_by_role("status")


def tool(view: Locator, name: str) -> Locator:
    return view.get_by_role("group", name="Tools").get_by_role("button", name=name, exact=True)


def listed(view: Locator) -> list[list[str]]:
    rows = view.locator(".dlk-tb-grid .dlk-g-rows .dlk-g-row")
    return [row.get_by_role("gridcell").all_inner_texts() for row in rows.all()]


def test_a_grid_looks_as_its_table_does(notebook: Page, lab: Lab, screenshot: Screenshot):
    notebook.wait_for_timeout(500)
    assert notebook.evaluate("window.moved") == []
    # the rows scroll, and nothing around them does, not while the grid is made either
    assert notebook.evaluate("[...window.scrolled]") == []
    for cell, count in GRIDS.items():
        expect(grid(notebook, cell)).to_have_count(count)
    first_paint(notebook)
    for width in (1280, 1920):
        notebook.set_viewport_size({"width": width, "height": 4000})
        screenshot(notebook, f"results-{width}")
    notebook.set_viewport_size({"width": 1280, "height": 4000})
    assert serious(notebook, ".dlk-live", ".jp-OutputArea-output .dlk") == []
    assert notebook.evaluate("window.hacked") is None
    # what each says is what stands in the notebook
    for cell in (COUNT, GROUPS, NAMED, HOSTILE):
        view = grid(notebook, cell)
        still: list[Any] = view.evaluate(
            """view => { const table = view.parentNode.querySelector("table");
                return [...table.rows].map(row => [...row.cells].map(cell => cell.innerHTML.includes("<br>")
                    ? cell.innerHTML.split("<br>")[0] : cell.textContent)); }"""
        )
        names = view.locator(".dlk-tb-sort").all_inner_texts()
        assert [[name.replace("<", "&lt;").replace(">", "&gt;") for name in names], *listed(view)] == still
    assert grid(notebook, GROUPS).locator("[role=columnheader]").nth(1).get_attribute("class") == "dlk-right"


def test_the_line_below_says_what_is_known(notebook: Page, lab: Lab):
    expect(status(grid(notebook, COUNT))).to_have_text("1 row")
    expect(status(grid(notebook, GROUPS))).to_have_text("8 rows")
    expect(status(grid(notebook, ALL))).to_have_text("first 50 rows · more exist")
    expect(status(grid(notebook, LIMITED))).to_have_text("first 5 rows · more exist")
    for cell in (GROUPS, ALL):
        expect(grid(notebook, cell).locator(".dlk-tb-foot")).to_contain_text(
            "s · snapshot 1 · in process · 1 of 1 file"
        )
    expect(grid(notebook, COUNT).get_by_role("button", name="Chart")).to_be_hidden()
    expect(grid(notebook, ALL).get_by_label("Search all columns")).to_be_hidden()
    expect(grid(notebook, ALL).locator("svg")).to_have_count(0)


def test_the_first_rows_need_no_others(notebook: Page, lab: Lab):
    view = grid(notebook, ALL)
    view.get_by_role("gridcell").nth(2).click()
    detail = view.get_by_role("region", name="Cell")
    expect(detail.get_by_role("status")).to_contain_text("Row 1 · note VARCHAR")
    view.get_by_role("grid", name="Rows").focus()
    for _ in range(2):
        notebook.keyboard.press("PageDown")
    notebook.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    tool(view, "SQL").click()
    expect(view.locator(".dlk-tb-sql")).to_have_text("SELECT * FROM t ORDER BY n")
    tool(view, "SQL").click()
    expect(status(view)).to_have_text("first 50 rows · more exist")


def test_the_rest_comes_when_it_is_needed(notebook: Page, lab: Lab, screenshot: Screenshot):
    limited = grid(notebook, LIMITED)
    rows = limited.get_by_role("grid", name="Rows")
    rows.focus()
    notebook.keyboard.press("End")
    expect(status(limited)).to_have_text("2,000 rows")
    expect(limited.get_by_role("region", name="Cell").get_by_role("status")).to_contain_text("Row 2,000 · n BIGINT")
    notebook.keyboard.press("Escape")
    view = grid(notebook, ALL)
    tool(view, "Profile").click()
    heads = view.get_by_role("columnheader")
    expect(heads.nth(0)).to_contain_text("3,000 distinctno nulls")
    expect(heads.nth(1)).to_contain_text("7 distinct10% null")
    expect(status(view)).to_have_text("3,000 rows")
    view.get_by_role("button", name="n", exact=True).click()
    view.get_by_role("button", name="n", exact=True).click()
    expect(heads.nth(0)).to_have_attribute("aria-sort", "descending")
    expect(view.locator(".dlk-g-rows .dlk-g-row").first).to_contain_text("note 2999")
    tool(view, "Filter").click()
    view.get_by_label("Filter k").fill("null")
    expect(status(view)).to_have_text("300 of 3,000 rows")
    view.get_by_label("Search all columns").fill("NOTE 29")
    expect(status(view)).to_have_text("11 of 3,000 rows")
    expect(heads.nth(0)).to_contain_text("11 distinctno nulls")
    settle(notebook)
    screenshot(notebook, "results-used")
    assert serious(notebook, ".dlk-live") == []
    tool(view, "Download").focus()
    notebook.keyboard.press("Enter")
    with notebook.expect_download() as started:
        view.get_by_role("button", name="CSV").click()
    found = [int(row["n"]) for row in csv.DictReader(started.value.path().open(newline="", encoding="utf-8"))]
    assert found == [*range(2990, 2890, -10), 290]
    tool(view, "Chart").click()
    expect(view.get_by_role("region", name="Chart", exact=True).get_by_role("img")).to_be_visible()
    tool(view, "Chart").click()


def test_scrolling_on_brings_the_rest(notebook: Page, lab: Lab):
    view = grid(notebook, ALL)
    run_cell(notebook, ALL)
    expect(status(view)).to_have_text("first 50 rows · more exist")
    rows = view.get_by_role("grid", name="Rows")
    expect(rows).to_be_visible()
    rows.hover()
    notebook.mouse.wheel(0, 300)
    notebook.wait_for_timeout(300)
    expect(status(view)).to_have_text("first 50 rows · more exist")
    notebook.mouse.wheel(0, 3000)
    expect(status(view)).to_have_text("3,000 rows")
    expect(view.locator('[aria-rowindex="52"]')).to_contain_text("note 50")
    assert rows.evaluate("node => node.scrollTop") > 500


def test_clicks_while_the_rest_is_computed_all_count(notebook: Page, lab: Lab):
    view = grid(notebook, LIMITED)
    run_cell(notebook, LIMITED)
    expect(status(view)).to_have_text("first 5 rows · more exist")
    view.evaluate(
        """view => { const [n, note] = view.querySelectorAll(".dlk-tb-sort");
            note.click(); n.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true })); }"""
    )
    expect(view.locator(".dlk-tb-mark")).to_have_text(["▲2", "▲1"])
    expect(view.locator(".dlk-g-rows .dlk-g-row").first).to_contain_text("note 1000")


def test_only_tables_are_saved(notebook: Page, lab: Lab):
    save(notebook)
    saved = nbformat.read(lab.files / "shown.ipynb", 4)
    assert "widgets" not in saved.metadata
    for cell in GRIDS:
        for output in saved.cells[cell].outputs:
            assert set(output.data) == {"text/plain", "text/html"}
            assert "<table" in output.data["text/html"] and 'class="dlk-live' not in output.data["text/html"]


def test_an_older_grid_becomes_a_table_again(lab: Lab):
    lab.write("older.ipynb", [SETUP.format(name="older"), "from ducklake_lab.widgets import grids\ngrids.MOST = 1",
        "%%ducklake\nSELECT 1 AS i", "%%ducklake\nSELECT 2 AS i"])  # fmt: skip
    page = lab.open("older.ipynb")
    run_all(page)
    expect(grid(page, 3)).to_be_visible()
    expect(grid(page, 2)).to_have_count(0)
    expect(page.locator(".jp-CodeCell").nth(2).locator(".jp-OutputArea-output table")).to_be_visible()
    close(page)
