"""Uses of a result's grid beyond its rows, in a real JupyterLab, at 1280 px, by mouse and by keyboard."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator

import duckdb
import nbformat
import openpyxl
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

SETUP = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = 'duckdb'
%ducklake connect ducklake:{name}.ducklake"""
SALES = """%%ducklake --grid
SELECT DATE '2025-01-01' + (i // 10)::INTEGER AS day, ['north', 'south', 'east', NULL][i % 4 + 1] AS region, i AS n,
    CASE WHEN i % 9 > 0 THEN (i * 7919 % 1000) / 10 END AS price,
    {'sku': 'sku ' || i, 'tags': [region, '<b>bold</b>', NULL],
        'dims': {'w': i * 1.5, 'h': 10000000000000000000 + i}} AS item,
    CASE i % 50 WHEN 0 THEN repeat('long text ' || i || chr(10), 20000)
        WHEN 1 THEN '<img src=x onerror="window.hacked=1">' ELSE 'note ' || i END AS note
FROM range(3000) AS r(i)"""


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    _lab.write("results.ipynb", [SETUP.format(name="results"), SALES])
    page = _lab.open("results.ipynb")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1280, "height": 1400})
    run_all(page)
    expect(page.locator(".dlk-tb").get_by_role("grid")).to_be_visible()
    first_paint(page)
    yield page
    close(page)


@pytest.fixture
def view(lab: Lab, notebook: Page) -> Locator:
    return notebook.locator(".dlk-tb")


@pytest.fixture
def look(notebook: Page, screenshot: Screenshot) -> Callable[[str], None]:
    """Takes pictures and asks axe."""

    def take(name: str) -> None:
        settle(notebook)
        screenshot(notebook, f"grid-{name}")
        assert serious(notebook, ".dlk-live") == []
        assert notebook.evaluate("window.hacked") is None

    return take


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_rounded_shares_are_marked_and_exact_counts_are_not(view: Locator, lab: Lab):
    heads = view.get_by_role("columnheader")
    expect(heads.nth(1)).to_contain_text("3 distinct25% null")
    expect(heads.nth(2)).to_contain_text("3,000 distinctno nulls")
    expect(heads.nth(3)).to_contain_text("1,000 distinct≈11% null")
    expect(heads.nth(3).locator("title")).to_have_text("1,000 distinct, ≈11% null\nNULL in 334 rows\n0.0 to 99.9")


def test_a_cell_opens_in_full_by_mouse_and_keyboard(view: Locator, notebook: Page, look: Callable[[str], None]):
    detail = view.get_by_role("region", name="Cell")
    expect(detail).to_be_hidden()
    view.get_by_role("row").nth(2).get_by_role("gridcell").nth(4).click()
    expect(detail.get_by_role("status")).to_contain_text("Row 2 · item STRUCT(")
    value = detail.get_by_role("region", name="Value")
    expect(value).to_contain_text('"tags": ["south", "<b>bold</b>", null]')
    expect(value).to_contain_text('"h": 10000000000000000001')
    detail.get_by_role("button", name="Copy value").click()
    expect(detail.get_by_role("button", name="Copied")).to_be_visible()
    assert clipboard(notebook).startswith('{\n  "sku": "sku 1",')
    detail.get_by_role("button", name="Copy row").click()
    expect(detail.get_by_role("button", name="Copied")).to_have_count(2)
    day, region, n, price, item, note = clipboard(notebook).split("\t")
    assert (day, region, n, price) == ("2025-01-01", "south", "1", "91.9")
    assert item.startswith("{'sku': sku 1,") and note == '"<img src=x onerror=""window.hacked=1"">"'
    look("cell")
    grid = view.get_by_role("grid")
    grid.focus()
    notebook.keyboard.press("ArrowRight")
    expect(detail.get_by_role("status")).to_contain_text("Row 2 · note VARCHAR · 37 characters")
    assert grid.get_attribute("aria-activedescendant") == view.locator(".dlk-g-at").get_attribute("id")
    notebook.keyboard.press("ArrowUp")
    expect(detail.get_by_role("status")).to_contain_text("Row 1 · note VARCHAR · 240,000 characters")
    notebook.keyboard.press("ArrowLeft")
    notebook.keyboard.press("ArrowLeft")
    expect(detail.get_by_role("status")).to_have_text("Row 1 · price DOUBLE")
    notebook.keyboard.press("ArrowLeft")
    expect(detail.get_by_role("status")).to_contain_text("Row 1 · n BIGINT")
    notebook.keyboard.press("Control+c")
    expect(detail.get_by_role("button", name="Copied")).to_be_visible()
    assert clipboard(notebook) == "0"
    notebook.keyboard.press("Control+ArrowRight")
    expect(detail.get_by_role("status")).to_contain_text("Row 1 · note VARCHAR")
    notebook.keyboard.press("Enter")
    expect(value).to_be_focused()
    look("long")
    notebook.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    expect(grid).to_be_focused()


def test_all_columns_are_searched(view: Locator, notebook: Page, look: Callable[[str], None]):
    status = view.locator(".dlk-tb-foot").get_by_role("status")
    view.get_by_label("Search all columns").fill("SKU 299")
    expect(status).to_have_text("11 of 3,000 rows")
    expect(view.locator(".dlk-tb-sql")).to_contain_text("""OR contains(lower("item"::VARCHAR), 'sku 299') OR""")
    view.get_by_label("Filter region").fill("= south")
    expect(status).to_have_text("2 of 3,000 rows")
    look("search")
    with notebook.expect_download() as started:
        view.get_by_role("button", name="CSV").click()
    assert started.value.suggested_filename == "Result.csv"
    rows = list(csv.DictReader(started.value.path().open(newline="", encoding="utf-8")))
    assert [(row["region"], row["n"]) for row in rows] == [("south", "2993"), ("south", "2997")]
    with notebook.expect_download() as started:
        view.get_by_role("button", name="Excel").click()
    assert openpyxl.load_workbook(started.value.path().open("rb"))["rows"].dimensions == "A1:F3"
    view.get_by_label("Search all columns").fill("")
    view.get_by_label("Filter region").fill("")
    expect(status).to_have_text("3,000 rows")
    with notebook.expect_download() as started:
        view.get_by_role("button", name="Parquet").click()
    found = duckdb.execute(
        f"SELECT count(*), sum(n), count(region) FROM read_parquet('{started.value.path()}')"
    ).fetchall()
    # notes of 200,000 characters do not fit into Excel, which says so
    assert found == [(3000, 2999 * 1500, 2250)]
    view.get_by_role("button", name="Excel").click()
    expect(view.get_by_role("alert")).to_have_text(
        re.compile("Row 1 has a text of 240,000 characters in note, and a cell of")
    )
    look("refused")


def test_what_is_seen_is_drawn(view: Locator, notebook: Page, look: Callable[[str], None]):
    view.get_by_role("button", name="Chart").focus()
    notebook.keyboard.press("Enter")
    panel = view.get_by_role("region", name="Chart", exact=True)
    expect(view.get_by_role("grid", name="Rows of Result")).to_be_hidden()
    caption, note = panel.locator(".dlk-tb-caption strong"), panel.get_by_role("status")
    expect(caption).to_have_text("sum of n by day")
    expect(note).to_have_text("300 points")
    expect(panel.get_by_role("img")).to_have_attribute("aria-label", "sum of n by day; 300 points")
    look("line")
    panel.get_by_label("Chart", exact=True).select_option("bar")
    expect(caption).to_have_text("sum of n by region")
    bars = panel.locator(".dlk-tb-drawing rect title")
    # the sums of all i below 3000 with i % 4 == 3, 2, 1, 0
    expect(bars).to_have_text([f"region: {name}\nsum of n: {sum(range(start, 3000, 4))}\n750 rows" for name, start in
        (("NULL", 3), ("east", 2), ("south", 1), ("north", 0))])  # fmt: skip
    look("bar")
    panel.get_by_label("X", exact=True).select_option("n")
    expect(note).to_have_text(
        "40 points · the 40 largest of 3,000 values of n; 2,960 others, of 2,960 rows, are not drawn"
    )
    expect(panel.get_by_label("Y", exact=True)).to_have_value("n")
    panel.get_by_label("X", exact=True).select_option("day")
    panel.get_by_label("Y", exact=True).select_option("price")
    panel.get_by_label("Of", exact=True).select_option("max")
    expect(caption).to_have_text("max of price by day, in intervals of 1 month")
    expect(note).to_contain_text("max of price leaves out 334 rows where it is NULL")
    panel.get_by_label("Chart", exact=True).select_option("histogram")
    expect(caption).to_have_text("rows by n, in intervals of 100")
    expect(bars).to_have_text([f"n: {low} to {low + 100}\nrows: 100" for low in range(0, 3000, 100)])
    look("histogram")
    view.get_by_label("Search all columns").fill("note 12")
    expect(caption).to_have_text("rows by n, in intervals of 50")
    view.get_by_label("Search all columns").fill("")
    panel.get_by_label("Chart", exact=True).select_option("scatter")
    expect(caption).to_have_text("price by n, rows counted in fields of 50 by 5")
    expect(note).to_contain_text("334 rows without a finite price not drawn")
    panel.get_by_text("Numbers").click()
    expect(panel.get_by_role("grid", name="Points").get_by_role("row").nth(1)).to_have_text(re.compile(r"^050"))
    look("scatter")
    panel.get_by_role("button", name="Copy Plotly code").click()
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    assert "chart = view.chart('scatter', 'n', 'price', None)" in clipboard(notebook)
    view.get_by_role("button", name="Chart").click()
    expect(view.get_by_role("grid", name="Rows of Result")).to_be_visible()


def test_a_chart_stays_as_it_was_chosen(lab: Lab, screenshot: Screenshot):
    query = (
        "SELECT TIMESTAMP '2025-01-01' + to_hours(i) AS moment, ['north', 'south', '<b>', NULL][i % 4 + 1] AS region, i AS n "
        "FROM range(300) AS r(i)"
    )
    lab.write("chosen.ipynb", [SETUP.format(name="chosen"), f"%%ducklake\n{query}"])
    page = lab.open("chosen.ipynb", fresh=True)
    page.set_viewport_size({"width": 1280, "height": 1400})
    run_all(page)
    view = page.locator(".dlk-tb")
    view.get_by_role("button", name="Chart").click()
    panel = view.get_by_role("region", name="Chart", exact=True)
    marks = panel.locator(".dlk-tb-drawing rect title")

    def choose(name: str, value: str) -> None:
        panel.get_by_label(name, exact=True).focus()
        panel.get_by_label(name, exact=True).select_option(value)

    choose("Chart", "histogram")
    choose("X", "moment")
    choose("Bins", "day")
    expect(panel.locator(".dlk-tb-caption strong")).to_have_text("rows by moment, in intervals of 1 day")
    choose("Colour", "region")
    expect(panel.get_by_role("status")).to_have_text("52 points")
    expect(panel.get_by_label("Colour", exact=True)).to_be_focused()
    days = duckdb.execute(
        f"SELECT moment::DATE::TIMESTAMP AS d, region, count(*) FROM ({query}) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    told = [f"region: {'NULL' if region is None else region}\nrows: {rows}" for _, region, rows in days]
    expect(marks.nth(0)).to_have_text(f"moment: 2025-01-01 00:00:00 to 2025-01-02 00:00:00\n{told[0]}")
    # the legend has a title for each name, too
    assert ["\n".join(text.split("\n")[1:]) for text in marks.all_text_contents()] == told
    expect(panel.locator(".dlk-tb-drawing svg > text", has_text="2025-01-")).to_have_count(7)
    assert first_paint(page) is None
    assert serious(page, ".dlk-live") == []
    screenshot(page, "grid-chosen")
    save(page)
    saved = nbformat.read(lab.files / "chosen.ipynb", 4).cells[1].outputs[0].data["text/html"]
    assert "rows by moment, in intervals of 1 day" in saved and saved.count("&lt;b&gt;") > 1 and "<b>" not in saved
    assert saved.count("<rect") == 52 + 4
    page.reload()
    expect(marks).to_have_count(52)
    expect(panel.get_by_label("Bins", exact=True)).to_have_value("day")
    page.evaluate("() => [...window.jupyterapp.shell.widgets('main')][0].sessionContext.restartKernel()")
    output = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
    expect(output).to_contain_text("The kernel was restarted; run the cell again.rows by moment, in intervals of 1 day")
    expect(output.locator("svg:visible rect")).to_have_count(56)
    screenshot(page, "grid-chosen-still")
    close(page, window=True)


#: Cells of results that are looked at in part, wide, and of few names.
PART, WIDE, NAMES = 2, 3, 4
NAMED = "VALUES ('', 5), (NULL, 4), ('NULL', 3), ('''a''', 2), ('b', 1)"
OTHERS = (
    f"{SETUP.format(name='others')}\nimport ducklake_lab as dl\nsession = dl.Session(engine='duckdb')",
    "from ducklake_lab.session.rows import result\nresult.MAX_ROWS = 700",
    "%%ducklake --grid\nSELECT i, CASE WHEN i % 3 > 0 THEN i * 1e305 END AS x FROM range(3000) AS r(i)",
    "session.sql('SELECT ' + ', '.join(f'{i} AS c{i}' for i in range(150)))",
    f'session.sql("SELECT * FROM ({NAMED}) AS v(name, n)")',
)


@pytest.fixture(scope="module")
def others(_lab: Lab) -> Iterator[Page]:
    """A notebook of other results, in dark."""
    _lab.write("others.ipynb", OTHERS)
    page = _lab.open("others.ipynb", theme="dark")
    page.set_viewport_size({"width": 1280, "height": 2400})
    run_all(page)
    expect(page.locator(".dlk-tb:not(.dlk-tb-unseen)")).to_have_count(3)
    first_paint(page)
    yield page
    close(page)


def of_cell(page: Page, cell: int) -> Locator:
    return page.locator(".jp-CodeCell").nth(cell).locator(".dlk-tb")


def test_of_many_rows_the_first_are_looked_through_which_each_figure_says(
    lab: Lab, others: Page, screenshot: Screenshot
):
    page, view = others, of_cell(others, PART)
    expect(view.get_by_role("status")).to_have_text("700 rows · looks through the first 700 rows only")
    expect(view.get_by_role("columnheader").nth(0)).to_contain_text("≥700 distinctno nulls")
    expect(view.get_by_role("columnheader").nth(1)).to_contain_text("≥466 distinct≈33% null")
    view.get_by_role("button", name="Chart").click()
    panel = view.get_by_role("region", name="Chart", exact=True)
    expect(panel.get_by_role("status")).to_have_text(
        "466 points · 234 rows without a finite x not drawn · of the first 700 rows only"
    )
    circles = panel.locator("circle")
    expect(circles).to_have_count(466)
    assert "NaN" not in panel.locator("svg").inner_html()
    screenshot(page, "grid-part")
    view.get_by_role("button", name="Chart").click()
    with page.expect_download() as started:
        view.get_by_role("button", name="CSV").click()
    assert started.value.suggested_filename == "Result-first-700-rows.csv"


def test_each_value_of_a_wide_row_is_reached(lab: Lab, others: Page, screenshot: Screenshot):
    page, view = others, of_cell(others, WIDE)
    view.get_by_role("gridcell").first.click()
    detail = view.get_by_role("region", name="Cell")
    expect(detail.get_by_role("status")).to_contain_text("Row 1 · c0 INTEGER")
    detail.get_by_role("button", name="c140").click()
    expect(detail.get_by_role("status")).to_contain_text("Row 1 · c140 INTEGER")
    expect(view.locator(".dlk-g-at")).to_have_text("140")
    grid = view.get_by_role("grid")
    grid.focus()
    page.keyboard.press("ArrowRight")
    expect(detail.get_by_role("region", name="Value")).to_have_text("141")
    expect(view.locator(".dlk-g-at")).to_be_in_viewport()
    settle(page)
    screenshot(page, "grid-wide")
    assert serious(page, ".dlk-live") == []


def test_bars_of_empty_texts_have_names(lab: Lab, others: Page, screenshot: Screenshot):
    page, view = others, of_cell(others, NAMES)
    view.get_by_role("button", name="Chart").click()
    panel = view.get_by_role("region", name="Chart", exact=True)
    panel.get_by_label("Chart", exact=True).select_option("bar")
    names = panel.locator(".dlk-tb-drawing text > title")
    expect(names).to_have_text(["''", "NULL", "'NULL'", "''a''", "b"])
    drawn = names.evaluate_all("nodes => nodes.map(node => node.parentElement.firstChild.data)")
    assert drawn == ["''", "NULL", "'NULL'", "''a''", "b"]
    screenshot(page, "grid-names")
