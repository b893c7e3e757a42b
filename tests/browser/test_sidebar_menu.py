"""The sidebar's context menu, and names dragged out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import Lab, Screenshot, close, run_all, serious
from tests.browser.sidebar import at_end, cell, row, sidebar, sources

pytestmark = pytest.mark.sampled(5, "browser")

#: Names that SQL, a magic line and a shell would each read otherwise.
CELLS = (
    "import ducklake_lab as dl\n%load_ext ducklake_lab\n"
    "dl.connect('ducklake:menu.ducklake', ducklake_version='1.1').close()\n%ducklake connect ducklake:menu.ducklake",
    """%%ducklake
CREATE TABLE plain (a INTEGER); INSERT INTO plain VALUES (1);
CREATE SCHEMA "s.1"; CREATE SCHEMA "s.1"."in $HOME";
CREATE TABLE "s.1"."in $HOME"."it's ""x"".🦆" ("a b" INTEGER);
INSERT INTO "s.1"."in $HOME"."it's ""x"".🦆" VALUES (1);
INSERT INTO "s.1"."in $HOME"."it's ""x"".🦆" VALUES (2);
CREATE TABLE "line
import os; os.mkdir('broken in')" (a INTEGER);
DROP TABLE plain;
CREATE TABLE other (a INTEGER)""",
    "",
)
SQL_NAME = 'menu."s.1"."in $HOME"."it\'s ""x"".🦆"'
NAME = "'" + SQL_NAME.replace("'", "'\"'\"'") + "'"


@pytest.fixture(scope="module")
def page(_wheel_lab: Lab) -> Iterator[Page]:
    _wheel_lab.write("menu.ipynb", CELLS)
    page = _wheel_lab.open("menu.ipynb", whole=True)
    run_all(page)
    panel = sidebar(page)
    for name in ("schema main", "schema s.1", "schema in $HOME", "Snapshots"):
        row(panel, name).locator(".jp-DuckLake-caret").click()
    expect(row(panel, "table it's")).to_be_visible()
    expect(row(panel, "snapshot 10 created table main.other")).to_be_visible()
    yield page
    close(page)


def choose(page: Page, at: Locator, item: str) -> None:
    at.click(button="right")
    page.get_by_role("menuitem", name=re.compile(f"^{item}")).click()


def last(page: Page) -> Locator:
    return page.locator(".jp-CodeCell").last


TABLE_ITEMS = {
    "Preview Rows": f"%ducklake preview {NAME}",
    "Profile Columns": f"%ducklake stats {NAME}",
    "Check Health": f"%ducklake maintain {NAME}",
    "Show Files": f"%ducklake files {NAME}",
    "Show History": f"%ducklake history {NAME}",
    "Diff with the Previous": f"%ducklake diff {NAME} 6 7",
}


@pytest.mark.parametrize("item", TABLE_ITEMS)
def test_what_reads_a_table_runs_in_a_cell_below(page: Page, item: str):
    before = [text for text in sources(page) if text]
    choose(page, row(sidebar(page), "table it's"), item)
    expect(page.locator(".jp-CodeCell")).to_have_count(len(before) + 1)
    expect(last(page).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    assert sources(page) == [*before, TABLE_ITEMS[item]]
    expect(last(page).locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    expect(last(page).locator(".jp-OutputArea-output").first).to_be_visible()


WRITES = {
    "Export to Parquet": f"%%ducklake\nCOPY {SQL_NAME} TO 'it_s_x.parquet' (FORMAT parquet)",
    "Export to CSV": f"%%ducklake\nCOPY {SQL_NAME} TO 'it_s_x.csv' (FORMAT csv, HEADER)",
    "Restore": """%%ducklake --preview\nCALL menu.restore('it''s "x".🦆', 6, schema => '"s.1"."in $HOME"')""",
    "Drop": f"%%ducklake --preview\nDROP TABLE {SQL_NAME}",
}


@pytest.mark.parametrize("item", WRITES)
def test_what_writes_waits_for_the_user(wheel_lab: Lab, page: Page, item: str):
    before = page.locator(".jp-CodeCell").count()
    choose(page, row(sidebar(page), "table it's"), item)
    expect(page.locator(".jp-CodeCell")).to_have_count(before + 1)
    expect(last(page).locator(".cm-content")).to_be_focused()
    assert sources(page)[-1] == WRITES[item]
    expect(last(page).locator(".jp-InputPrompt")).to_have_text("[ ]:")
    page.keyboard.press("Control+Enter")
    expect(last(page).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    if "preview" in WRITES[item]:
        expect(last(page).get_by_role("button", name="Roll back")).to_be_visible()
        last(page).get_by_role("button", name="Roll back").click()
        expect(last(page)).to_contain_text("olled back")
    else:
        assert (wheel_lab.files / re.findall("'(it_s_x.*?)'", WRITES[item])[0]).is_file()


SNAPSHOT_ITEMS = {
    (7, "Show What It Changed"): [f"%ducklake diff {NAME} 6 7"],
    (6, "Show What It Changed"): [f"%ducklake diff {NAME} 5 6"],
    (5, "Show What It Changed"): [f"%ducklake preview {NAME} --at 5"],
    (2, "Show What It Changed"): ["%ducklake preview menu.main.plain --at 2"],
    (8, "Diff with the Newest"): [
        "%ducklake preview menu.main.plain --at 8",
        "%ducklake preview menu.main.other --at 10",
    ],
    (3, "Show the Lake as It Was"): ["%ducklake schema --at 3"],
}


@pytest.mark.parametrize(("snapshot", "item"), SNAPSHOT_ITEMS)
def test_what_reads_a_snapshot_runs_in_cells_below(page: Page, snapshot: int, item: str):
    before = [text for text in sources(page) if text]
    choose(page, row(sidebar(page), f"snapshot {snapshot} "), item)
    expect(page.locator(".jp-CodeCell")).to_have_count(len(before) + len(SNAPSHOT_ITEMS[snapshot, item]))
    expect(last(page).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    assert sources(page) == [*before, *SNAPSHOT_ITEMS[snapshot, item]]
    expect(last(page).locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)


def test_a_tag_waits_for_its_name(page: Page):
    choose(page, row(sidebar(page), "snapshot 3 "), "Tag")
    expect(last(page).locator(".cm-content")).to_be_focused()
    assert sources(page)[-1] == "%ducklake tag NAME 3"
    page.keyboard.insert_text("start")
    assert sources(page)[-1] == "%ducklake tag start 3"


def test_a_snapshot_that_touched_no_table_says_so(page: Page):
    before = sources(page)
    choose(page, row(sidebar(page), "snapshot 4 "), "Show What It Changed")
    expect(page.locator(".Toastify__toast", has_text="Snapshot 4 touched no table.")).to_be_visible()
    assert sources(page) == before


def test_a_name_with_a_line_break_reaches_no_line(wheel_lab: Lab, page: Page):
    panel = sidebar(page)
    row(panel, "table line").click(button="right")
    for item in ("Preview Rows", "Show Files", "Show History"):
        expect(page.get_by_role("menuitem", name=re.compile(item))).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Escape")
    before = sources(page)
    choose(page, row(panel, "snapshot 8 "), "Show What It Changed")
    expect(page.locator(".Toastify__toast", has_text="line break")).to_be_visible()
    assert sources(page) == before
    assert not (wheel_lab.files / "broken in").exists()


def test_the_menu_works_by_keyboard(wheel_lab: Lab, screenshot: Screenshot):
    wheel_lab.write("keys.ipynb", [CELLS[0].replace("menu.", "keys."), "%ducklake CREATE TABLE t (a INTEGER)", ""])
    page = wheel_lab.open("keys.ipynb", whole=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    run_all(page)
    panel = sidebar(page)
    row(panel, "table t").focus()
    page.keyboard.press("Shift+F10")
    expect(page.get_by_role("menuitem", name=re.compile("^Drop…"))).to_be_visible()
    assert serious(page, ".lm-Menu", "#jp-ducklake-sidebar") == []
    screenshot(page, "menu-table")
    page.keyboard.press("Escape")
    expect(page.locator(".lm-Menu")).to_have_count(0)
    expect(row(panel, "table t")).to_be_focused()
    page.keyboard.press("ContextMenu")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(last(page).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    assert sources(page)[-1] == "%ducklake preview keys.main.t"
    row(panel, "Snapshots").click()
    row(panel, "snapshot 1 ").click(button="right")
    screenshot(page, "menu-snapshot")
    page.keyboard.press("Escape")
    close(page)


def test_lakes_of_sessions_in_variables_are_adopted_first(wheel_lab: Lab):
    wheel_lab.write(
        "held.ipynb",
        ["import ducklake_lab as dl\n%load_ext ducklake_lab\nmine = dl.connect('ducklake:held.ducklake')", ""],
    )
    page = wheel_lab.open("held.ipynb", whole=True)
    run_all(page)
    panel = sidebar(page)
    row(panel, "Snapshots").click()
    row(panel, "snapshot 0 ").click(button="right")
    expect(page.get_by_role("menuitem", name="Tag…")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Escape")
    choose(page, row(panel, "lake held"), "Use in %ducklake Cells")
    expect(last(page).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    assert sources(page)[-1] == "%ducklake connect mine"
    expect(row(panel, "lake held")).to_have_attribute("data-key", 'lake ["","held"]')
    row(panel, "Snapshots").click()
    choose(page, row(panel, "snapshot 0 "), "Show the Lake")
    expect(last(page).locator(".dlk-sc-tree")).to_be_visible()
    close(page)


@pytest.mark.parametrize(
    ("label", "inserted"), [("column a b", '"a b"'), ("table it's", SQL_NAME.removeprefix("menu."))]
)
def test_a_name_dropped_between_words_stands_there(page: Page, label: str, inserted: str):
    panel = sidebar(page)
    if not row(panel, "column a b").count():
        row(panel, "table it's").locator(".jp-DuckLake-caret").click()
    page.evaluate("window.jupyterapp.commands.execute('notebook:insert-cell-below')")
    at = page.locator(".jp-CodeCell").count() - 1
    at_end(page, at)
    page.keyboard.insert_text("SELECT  FROM there")
    # between the two blanks, in a cell that is not the active one
    place = cell(page, at).evaluate(
        """node => {
            const range = document.createRange();
            const text = document.createTreeWalker(node, NodeFilter.SHOW_TEXT).nextNode();
            range.setStart(text, 7);
            range.setEnd(text, 7);
            const box = range.getBoundingClientRect(), outer = node.getBoundingClientRect();
            return { x: box.left - outer.left, y: box.top - outer.top + box.height / 2 };
        }"""
    )
    cell(page, at - 1).click()
    row(panel, label).drag_to(cell(page, at), target_position=place)
    expect(cell(page, at)).to_have_text(f"SELECT {inserted} FROM there")
