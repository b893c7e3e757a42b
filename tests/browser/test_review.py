"""Reviews of branches and the work of agents in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Page, expect

import ducklake_lab as dl
from ducklake_lab.agents.door import Door
from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious

pytestmark = pytest.mark.sampled(3)

SETUP = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = 'duckdb'
%config DuckLakeMagics.author = 'ann'
%ducklake connect ducklake:sqlite:review/lake.sqlite --alias lake"""


def uri(lab: Lab) -> str:
    return f"ducklake:sqlite:{lab.files}/review/lake.sqlite"


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    (_lab.files / "review").mkdir()
    with dl.connect(uri(_lab), alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE stock AS SELECT 'item ' || i AS item, i * 10 AS quantity FROM range(60) r(i)")
        session.sql("CREATE TABLE prices AS SELECT 1 AS a")
        session.branch("count")
        session.sql("UPDATE stock SET quantity = 11 WHERE item = 'item 1'; UPDATE prices SET a = 2")
    with Door(uri(_lab), "count", client="robot", alias="lake") as door:
        door.change("UPDATE stock SET quantity = quantity + 2 WHERE quantity < 50", "add two <b>each</b>")
    _lab.write("review.ipynb", [SETUP, "%ducklake review count", "%ducklake agents"])
    page = _lab.open("review.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2400})
    run_all(page)
    expect(page.locator(".dlk-rv .dlk-g-rows .dlk-g-row")).to_have_count(1)
    expect(page.locator(".dlk-ag .dlk-ag-commits tbody tr")).to_have_count(1)
    settle(page)
    yield page
    close(page)


def test_a_branch_is_reviewed_and_remarked(lab: Lab, notebook: Page, screenshot: Screenshot) -> None:
    first_paint(notebook)
    screenshot(notebook, "review")
    view = notebook.locator(".dlk-rv")
    assert serious(notebook, ".dlk-rv") == [] and serious(notebook, ".dlk-ag") == []
    expect(view.locator(".dlk-rv-list tbody tr").first).to_contain_text("changed →5 · 5 cells")
    expect(view.locator(".dlk-g-rows .dlk-g-row")).to_contain_text("changed on both sides")
    view.get_by_role("button", name="5 on the branch").click()
    rows = view.locator(".dlk-cg .dlk-g-rows .dlk-g-row")
    expect(rows).to_have_count(5)
    rows.filter(has_text="item 3").get_by_role("gridcell").nth(2).click()
    expect(view.locator(".dlk-rv-place")).to_have_text("on main.stock row 3 quantity")
    view.get_by_label("Remark", exact=True).fill("why two?\n<b>x</b>")
    view.get_by_role("button", name="Ask for changes").click()
    remarks = view.get_by_label("Remarks", exact=True).get_by_role("listitem")
    expect(remarks).to_contain_text("why two?")
    expect(view.locator(".dlk-rv-verdict")).to_have_text("changes asked for")
    settle(notebook)  # the output is written anew, and the view goes on in it
    expect(rows.filter(has_text="item 3")).to_contain_text("1 ✎")
    expect(view.get_by_role("button", name="5 on the branch")).to_have_attribute("aria-pressed", "true")
    view.get_by_role("button", name="Approve the branch").click()
    expect(remarks).to_have_count(2)
    expect(view.locator(".dlk-rv-verdict")).to_have_text("approved")
    screenshot(notebook, "review-remarked")
    with dl.connect(uri(lab), alias="lake", engine="duckdb") as session:
        found = session.review("count")
        assert [(one.kind, one.author, one.about) for one in found.remarks] == [
            ("request", "ann", "main.stock row 3 quantity"), ("approval", "ann", ""),
        ]  # fmt: skip
    save(notebook)
    html = nbformat.read(lab.files / "review.ipynb", 4).cells[1].outputs[0].data["text/html"]
    assert "why two?" in html and "&lt;b&gt;x" in html and "<b>x" not in html


def test_the_work_of_agents_stays_current(lab: Lab, notebook: Page, screenshot: Screenshot) -> None:
    view = notebook.locator(".dlk-ag")
    expect(view).to_contain_text("add two <b>each</b>")
    expect(view.locator(".dlk-ag-commits tbody tr")).to_contain_text("+5 −5")
    with Door(uri(lab), "count", client="robot", alias="lake") as door:
        door.change("DELETE FROM stock WHERE item = 'item 40'")
    expect(view.locator(".dlk-ag-commits tbody tr")).to_have_count(2, timeout=15_000)
    expect(view).to_contain_text("DELETE FROM stock")
    view.get_by_role("button", name="Review").click()
    expect(view.locator(".dlk-ag-review")).to_contain_text("What the branch changed")
    screenshot(notebook, "agents")
