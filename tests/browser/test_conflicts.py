"""Conflicts of a revert, a merge, a pick and a rebase, settled in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Page, expect

import ducklake_lab as dl
from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious

pytestmark = pytest.mark.sampled(3)

SETUP = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = 'duckdb'
%ducklake connect ducklake:sqlite:conflicts/lake.sqlite --alias lake"""


@pytest.fixture(scope="module")
def notebook(_lab: Lab) -> Iterator[Page]:
    (_lab.files / "conflicts").mkdir()
    with dl.connect(f"ducklake:sqlite:{_lab.files}/conflicts/lake.sqlite", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE stock (item VARCHAR, quantity INTEGER, place VARCHAR)")
        session.sql("INSERT INTO stock SELECT 'item ' || i, i * 10, 'shelf ' || i FROM range(6) r(i)")
        session.sql("UPDATE stock SET quantity = 0, place = 'lost'")
        session.sql("UPDATE stock SET quantity = 31 WHERE item = 'item 1'")
        session.sql("UPDATE stock SET place = '<b onclick=alert(1)>' WHERE item IN ('item 1', 'item 2')")
        session.sql("DELETE FROM stock WHERE item = 'item 5'")
    _lab.write("conflicts.ipynb", [SETUP, "%ducklake revert 3"])
    page = _lab.open("conflicts.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2000})
    run_all(page)
    expect(page.locator(".dlk-cf .dlk-g-rows .dlk-g-row")).to_have_count(4)
    settle(page)
    yield page
    close(page)


def test_conflicts_are_settled_and_applied(lab: Lab, notebook: Page, screenshot: Screenshot):
    view = notebook.locator(".dlk-cf")
    status = view.get_by_role("status").first
    expect(status).to_have_text("4 conflicts · 4 not settled · nothing is written")
    expect(view.get_by_role("columnheader")).to_have_text(
        ["holds", "table", "row", "column", "before", "then", "now", "why"]
    )
    first_paint(notebook)
    screenshot(notebook, "conflicts")
    assert serious(notebook, ".dlk-cf") == []
    apply = view.get_by_role("button", name="Apply")
    expect(apply).to_be_disabled()
    rows = view.locator(".dlk-g-rows .dlk-g-row")
    cell = rows.filter(has_text="31")
    cell.get_by_role("button", name="keep").click()
    expect(cell.get_by_role("button", name="keep")).to_have_attribute("aria-pressed", "true")
    expect(status).to_have_text("4 conflicts · 3 not settled · nothing is written")
    # all cells of a column
    rows.filter(has_text="shelf 2").get_by_role("gridcell").nth(5).click()
    view.get_by_label("Conflicts to settle").select_option("column")
    settle_bar = view.get_by_role("group", name="Settle")
    settle_bar.get_by_role("button", name="revert").click()
    expect(status).to_have_text("4 conflicts · 1 not settled · nothing is written")
    rows.filter(has_text="deleted since").get_by_role("button", name="keep").click()
    expect(status).to_have_text("4 conflicts · all settled · nothing is written")
    settle_bar.get_by_role("button", name="Preview").click()
    expect(view).to_contain_text("not committed yet")
    screenshot(notebook, "conflicts-settled")
    assert newest(lab) == 6
    apply.click()
    expect(status).to_have_text("Reverted as snapshot 7: 2 conflicts kept, 2 reverted.")
    expect(view).to_contain_text("snapshot 6 → 7")
    expect(apply).to_be_disabled()
    screenshot(notebook, "conflicts-applied")
    with dl.connect(f"ducklake:sqlite:{lab.files}/conflicts/lake.sqlite", alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT quantity, place FROM stock ORDER BY item").fetchall() == [
            (0, "shelf 0"), (31, "shelf 1"), (20, "shelf 2"), (30, "shelf 3"), (40, "shelf 4")
        ]  # fmt: skip
    # the saved notebook says what became of it
    save(notebook)
    html = nbformat.read(lab.files / "conflicts.ipynb", 4).cells[1].outputs[0].data["text/html"]
    assert "Reverted as snapshot 7" in html and "&lt;b onclick" in html and "<b onclick" not in html
    assert "dlk-live" not in html.replace(".dlk-live", "")


def newest(lab: Lab) -> int:
    with dl.connect(f"ducklake:sqlite:{lab.files}/conflicts/lake.sqlite", alias="lake", engine="duckdb") as session:
        return session.current_snapshot().snapshot_id


def test_conflicts_of_a_merge(lab: Lab, screenshot: Screenshot) -> None:
    (lab.files / "merged").mkdir()
    uri = f"ducklake:sqlite:{lab.files}/merged/lake.sqlite"
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE stock AS SELECT 'item ' || i AS item, i * 10 AS quantity FROM range(6) r(i)")
        session.branch("count")
        session.sql("UPDATE stock SET quantity = 11 WHERE item = 'item 1'; DELETE FROM stock WHERE item = 'item 2'")
        session.switch("count")
        session.sql("UPDATE stock SET quantity = quantity + 2 WHERE item IN ('item 1', 'item 2', 'item 3')")
    setup = SETUP.replace("conflicts/", "merged/")
    lab.write("merged.ipynb", [setup, "%ducklake merge count"])
    page = lab.open("merged.ipynb")
    run_all(page)
    view = page.locator(".dlk-cf")
    rows = view.locator(".dlk-g-rows .dlk-g-row")
    expect(rows).to_have_count(2)
    expect(view.get_by_role("columnheader")).to_have_text(
        ["holds", "table", "row", "column", "base", "lake", "branch", "why"]
    )
    settle(page)
    first_paint(page)
    screenshot(page, "conflicts-merge")
    rows.filter(has_text="changed on both sides").get_by_role("button", name="theirs").click()
    rows.filter(has_text="deleted in the lake").get_by_role("button", name="ours").click()
    status = view.get_by_role("status").first
    expect(status).to_have_text("2 conflicts · all settled · nothing is written")
    view.get_by_role("button", name="Apply").click()
    expect(status).to_have_text("Merged as snapshot 4: 1 conflict as in the lake, 1 as on the branch.")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT quantity FROM stock ORDER BY item").fetchall() == [(0,), (12,), (32,), (40,), (50,)]
    close(page)


def test_conflicts_of_a_pick_and_a_rebase(lab: Lab, screenshot: Screenshot) -> None:
    (lab.files / "picked").mkdir()
    uri = f"ducklake:sqlite:{lab.files}/picked/lake.sqlite"
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE stock AS SELECT 'item ' || i AS item, i * 10 AS quantity FROM range(6) r(i)")
        session.branch("count")
        session.sql("UPDATE stock SET quantity = 11 WHERE item = 'item 1'; DELETE FROM stock WHERE item = 'item 2'")
        session.switch("count")
        session.sql("UPDATE stock SET quantity = quantity + 2 WHERE item IN ('item 1', 'item 2')")
        session.sql("UPDATE stock SET quantity = NULL WHERE item = 'item 3'")
    lab.write(
        "picked.ipynb",
        [SETUP.replace("conflicts/", "picked/"), "%ducklake cherry-pick count 2", "%ducklake rebase count"],
    )
    page = lab.open("picked.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2000})
    run_all(page)  # the first cell with conflicts ends it
    views = page.locator(".dlk-cf")
    for number, (what, count) in enumerate([("pick of snapshot 2", 2), ("rebase", 1)]):
        if number:
            run_cell(page, 1 + number)
        view = views.nth(number)
        rows = view.locator(".dlk-g-rows .dlk-g-row")
        expect(rows).to_have_count(count)
        expect(view.locator(".dlk-bar strong")).to_have_text(f"Conflicts of the {what} of branch count")
        settle(page)
        first_paint(page)
        screenshot(page, f"conflicts-{what.partition(' ')[0]}")
        rows.filter(has_text="changed on both sides").get_by_role("button", name="ours").click()
        if number == 0:
            rows.filter(has_text="deleted in the lake").get_by_role("button", name="theirs").click()
        view.get_by_role("button", name="Apply").click()
    status = views.get_by_role("status")
    expect(status.nth(0)).to_have_text("Picked as snapshot 4: 1 conflict as in the lake, 1 as on the branch.")
    expect(status.nth(1)).to_have_text("Rebased onto snapshot 4: 1 conflict as in the lake, 0 as on the branch.")
    expect(views.nth(1)).to_contain_text("lake#count")
    screenshot(page, "conflicts-settled-rebase")
    assert serious(page, ".dlk-cf") == []
    with dl.connect(f"{uri}#count", alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT quantity FROM stock ORDER BY item").fetchall() == [
            (0,), (11,), (22,), (None,), (40,), (50,)
        ]  # fmt: skip
    close(page)
