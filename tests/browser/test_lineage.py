"""Lineage in the schema browser, and violations over time below a check, in a real JupyterLab."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Page, expect

from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = (
    "%load_ext ducklake_lab\n%config DuckLakeMagics.engine = 'duckdb'\n%ducklake connect ducklake:lineage.ducklake --alias lake",
    "%%ducklake\nCREATE TABLE orders (id INTEGER, customer INTEGER, day DATE, amount DECIMAL(10, 2), note VARCHAR);\n"
    "CREATE TABLE customers (id INTEGER, name VARCHAR, \"<img src=x onerror=window.hacked=1>\" VARCHAR)",
    "%%ducklake\nCREATE VIEW big AS SELECT day, customer, amount * 2 AS twice FROM orders WHERE id > 0",
    "%%ducklake\nCREATE TABLE daily AS SELECT day, name, sum(twice) AS total, count(*) AS n\n"
    "FROM big JOIN customers ON customer = customers.id GROUP BY ALL",
    "%%ducklake\nCREATE LIVE TABLE monthly AS SELECT date_trunc('month', day) AS month, sum(total) AS total FROM daily GROUP BY ALL",
    "%%ducklake\nINSERT INTO orders (day, amount) SELECT day, total FROM daily;\n"
    "CREATE VIEW \"<img src=x onerror=window.hacked=1>\" AS SELECT \"<img src=x onerror=window.hacked=1>\" AS name, count(*) AS n FROM customers GROUP BY ALL",
    "%%ducklake\nALTER TABLE orders EXPECT positive CHECK (amount > 0) ON VIOLATION warn;\n"
    "ALTER TABLE orders EXPECT one_each UNIQUE (id);\nALTER TABLE orders EXPECT known NOT NULL (day) ON VIOLATION warn",
    "import warnings\nwarnings.simplefilter('ignore')\n"
    "session = get_ipython().magics_manager.registry['DuckLakeMagics'].session\n"
    "for i in range(24):\n"
    "    session.sql(f\"INSERT INTO orders SELECT 100 * {i} + i, 1, CASE WHEN i > 3 THEN DATE '2026-01-01' END, i - {i % 7}, 'x' FROM range({i % 5 + 3}) r(i)\")\n"
    "    checked = session.check('orders')",
    "%ducklake check orders",
    "%ducklake schema",
)  # fmt: skip
CHECK, SCHEMA = len(CELLS) - 2, len(CELLS) - 1


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    _lab.write("lineage.ipynb", CELLS)
    page = _lab.open("lineage.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2600})
    run_all(page)
    expect(page.get_by_role("tree")).to_be_visible()
    first_paint(page)
    yield page
    close(page)


def test_violations_over_time_are_below_the_rows(lab: Lab, notebook: Page, screenshot: Screenshot):
    shown = notebook.locator(".jp-CodeCell").nth(CHECK)
    shown.scroll_into_view_if_needed()
    screenshot(notebook, "check-history")
    expect(shown.locator(".dlk-ck tbody tr")).to_have_count(3)
    expect(shown.locator(".dlk-ck svg").first.locator("rect")).to_have_count(24)
    now = shown.locator(".dlk-ck tbody tr").first.locator("td").last.inner_text()
    assert now == shown.locator("table").first.locator("tbody tr").first.locator("td").nth(5).inner_text()
    assert serious(notebook, ".dlk") == []


def test_lineage_is_drawn_and_a_column_shows_its_edges(lab: Lab, notebook: Page, screenshot: Screenshot):
    tree = notebook.get_by_role("tree")
    orders = tree.get_by_role("treeitem", name="orders")
    orders.hover()
    orders.get_by_text("lineage", exact=True).click()
    panel = notebook.get_by_role("region", name="Lineage", exact=True)
    expect(panel.get_by_role("heading")).to_have_text("Lineage of main.orders")
    panel.scroll_into_view_if_needed()
    screenshot(notebook, "lineage")
    edges = panel.locator("path[data-from]")
    total = edges.count()
    assert total > 6
    panel.get_by_role("button", name="main.orders.amount").first.click()
    expect(panel.get_by_role("status")).to_contain_text("main.orders.amount: ")
    assert 0 < panel.locator("path.dlk-ln-on").count() < total
    screenshot(notebook, "lineage-column")
    # the keyboard alone: L on a row, arrows in the picture, Enter, Escape
    tree.focus()
    notebook.keyboard.press("Home")
    for _ in range(20):
        if tree.locator(".dlk-sc-cursor").inner_text().split("\n")[0].endswith("big"):
            break
        notebook.keyboard.press("ArrowDown")
    notebook.keyboard.press("l")
    expect(panel.get_by_role("heading")).to_have_text("Lineage of main.big")
    expect(panel.locator("g[data-column]:focus")).to_have_count(1)
    before = panel.locator("g[data-column]:focus").get_attribute("data-name")
    notebook.keyboard.press("ArrowDown")
    assert panel.locator("g[data-column]:focus").get_attribute("data-name") != before
    notebook.keyboard.press("Enter")
    expect(panel.locator("g[aria-pressed=true]")).to_have_count(1)
    notebook.keyboard.press("Escape")
    expect(panel.locator("g[aria-pressed=true]")).to_have_count(0)
    assert notebook.evaluate("window.hacked") is None
    assert serious(notebook, ".dlk-live") == []


def test_the_picture_is_saved(lab: Lab, notebook: Page):
    save(notebook)
    cells = nbformat.read(lab.files / "lineage.ipynb", 4).cells
    (kept,) = cells[SCHEMA].outputs
    assert set(kept.data) == {"text/plain", "text/html"}
    assert "Lineage of main.big" in kept.data["text/html"] and "data-from" in kept.data["text/html"]
    assert "<img" not in kept.data["text/html"]
    (checked,) = cells[CHECK].outputs
    assert "Violations over time" in checked.data["text/html"]
