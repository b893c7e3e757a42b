"""The JupyterLab extension of the built wheel, in an environment without Node: sidebar, SQL in cells, status bar."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, close, run_all
from tests.browser.sidebar import LAKE, at_end, bring_to_front, cell, row, sidebar

pytestmark = pytest.mark.sampled(5, "browser")


def colour_of(page: Page, index: int, text: str) -> str:
    """The colour that a word of a cell is drawn in."""
    return page.evaluate(
        """([index, text]) => {
            const content = document.querySelectorAll('.jp-CodeCell')[index].querySelector('.cm-content');
            const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                if (walker.currentNode.data.includes(text)) {
                    return getComputedStyle(walker.currentNode.parentElement).color;
                }
            }
            return 'not there';
        }""",
        [index, text],
    )


def test_a_lake_made_in_a_cell_is_shown(wheel_lab: Lab, screenshot: Screenshot):
    wheel_lab.write("shown.ipynb", [cell.replace("birds.ducklake", "shown.ducklake --alias birds") for cell in LAKE])
    page = wheel_lab.open("shown.ipynb", whole=True, fresh=True)
    panel = sidebar(page)
    expect(panel.get_by_role("status")).to_contain_text("%load_ext ducklake_lab", timeout=30_000)
    screenshot(page, "sidebar-empty")
    run_all(page)
    expect(row(panel, "lake birds snapshot 4")).to_be_visible()
    expect(row(panel, "schema archive")).to_be_visible()
    first_paint(
        page, {"#jp-ducklake-sidebar": ["snapshot 4"], ".jp-DuckLake-statusButton": ["birds · snapshot 4"]}, height=1000
    )
    row(panel, "schema main").locator(".jp-DuckLake-caret").click()
    expect(row(panel, "table birds 2")).to_be_visible()
    row(panel, "table birds 2").locator(".jp-DuckLake-caret").click()
    expect(row(panel, "column weight_g integer")).to_be_visible()
    row(panel, "Snapshots at 4").click()
    expect(row(panel, "snapshot 2 inserted into main.birds")).to_be_visible()
    expect(page.locator(".jp-DuckLake-statusButton")).to_have_text("birds · snapshot 4")
    first_paint(page, height=1000)
    screenshot(page, "sidebar")

    # a commit is seen without asking
    at_end(page, 2)
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text("%ducklake INSERT INTO birds VALUES ('swan', 9800, NULL)")
    page.keyboard.press("Control+Enter")
    expect(row(panel, "table birds 3")).to_be_visible()
    expect(row(panel, "lake birds snapshot 5")).to_be_visible()
    expect(page.locator(".jp-DuckLake-statusButton")).to_have_text("birds · snapshot 5")
    close(page)


#: A lake of schemas in schemas, made in cells.
NESTED = (
    "import ducklake_lab as dl\n%load_ext ducklake_lab\n"
    "dl.connect('ducklake:nested.ducklake', ducklake_version='1.1').close()\n%ducklake connect ducklake:nested.ducklake",
    """%%ducklake
CREATE SCHEMA sales; CREATE SCHEMA sales.europe; CREATE SCHEMA sales.europe."far north"; CREATE SCHEMA "sales.europe";
CREATE TABLE sales.europe.orders (id INTEGER, amount DECIMAL(10, 2));
CREATE VIEW sales.europe.large (id) AS SELECT id AS number, amount FROM orders WHERE amount > 100;
COMMENT ON VIEW sales.europe.large IS 'Orders worth a call'; COMMENT ON COLUMN sales.europe.large.id IS 'as on the bill';
CREATE TABLE sales.europe."far north".sledges (name VARCHAR);
INSERT INTO sales.europe."far north".sledges SELECT 'sledge ' || i FROM range(50) AS r(i)""",
    "%ducklake schema",
    "",
)


def test_schemas_are_drawn_inside_of_theirs(wheel_lab: Lab, screenshot: Screenshot):
    wheel_lab.write("nested.ipynb", NESTED)
    page = wheel_lab.open("nested.ipynb", whole=True)
    run_all(page)
    panel = sidebar(page)
    for name in ("schema sales", "schema europe", "schema far north", "table sledges"):
        row(panel, name).first.locator(".jp-DuckLake-caret").click()
    assert [row(panel, name).first.get_attribute("aria-level") for name in ("schema sales", "schema europe")] == [
        "2",
        "3",
    ]
    assert row(panel, "table sledges").get_attribute("aria-level") == "5"
    expect(row(panel, "view large")).to_have_attribute("title", re.compile("Orders worth a call\\nid: as on the bill"))
    first_paint(page, height=1000)
    row(panel, "Files").locator(".jp-DuckLake-caret").click()
    expect(row(panel, "file ducklake-")).to_be_visible()
    tree = page.locator(".dlk-sc-tree")
    levels = {"sales": "1", "europe": "2", "far north": "3", "sales.europe": "1"}
    for name, level in levels.items():
        expect(tree.get_by_role("treeitem", name=re.compile(f"^{re.escape(name)} \\d entr"))).to_have_attribute(
            "aria-level", level
        )
    tree.get_by_role("treeitem", name=re.compile("large")).click()
    expect(tree).to_contain_text("as on the bill")
    screenshot(page, "nested")
    at_end(page, 3)
    row(panel, "table sledges").click()
    expect(cell(page, 3)).to_have_text('sales.europe."far north".sledges')
    tree.get_by_role("treeitem", name=re.compile("^europe")).click()
    expect(tree.get_by_role("treeitem", name=re.compile("sledges"))).to_have_count(0)
    panel.get_by_role("searchbox").fill("sledge")
    expect(row(panel, "schema europe")).to_be_visible()
    expect(row(panel, "table orders")).to_have_count(0)
    close(page, window=True)


@pytest.fixture(scope="module")
def notebook(_wheel_lab: Lab) -> Iterator[Page]:
    """A notebook with a lake; tests add to its last cell."""
    _wheel_lab.write(
        "birds.ipynb",
        [*LAKE, "%%ducklake\nSELECT upper(name), 1 AS one -- all\nFROM birds b", "%ducklake SELECT 'x' FROM birds", ""],
    )
    page = _wheel_lab.open("birds.ipynb", whole=True)
    run_all(page)
    panel = sidebar(page)
    row(panel, "schema main").locator(".jp-DuckLake-caret").click()
    row(panel, "table birds").locator(".jp-DuckLake-caret").click()
    yield page
    close(page)


def test_click_inserts_at_the_cursor(wheel_lab: Lab, notebook: Page):
    panel = sidebar(notebook)
    at_end(notebook, 5)
    notebook.keyboard.insert_text("%%ducklake\nSELECT ")
    row(panel, "column seen on").click()
    notebook.keyboard.insert_text(" FROM")
    row(panel, "table birds").click()
    row(panel, "Snapshots").click()
    row(panel, "snapshot 2 ").click()
    expect(cell(notebook, 5)).to_have_text('%%ducklakeSELECT "seen on" FROM birds AT (VERSION => 2)')


def test_keyboard_reaches_what_the_mouse_does(wheel_lab: Lab, notebook: Page):
    panel = sidebar(notebook)
    at_end(notebook, 5)
    notebook.keyboard.press("Control+a")
    notebook.keyboard.press("Delete")
    row(panel, "lake birds").focus()
    notebook.keyboard.press("ArrowDown")
    expect(row(panel, "schema archive")).to_be_focused()
    notebook.keyboard.press("ArrowRight")
    notebook.keyboard.press("ArrowRight")
    expect(row(panel, "table places")).to_be_focused()
    notebook.keyboard.press("Enter")
    expect(cell(notebook, 5)).to_have_text("archive.places")
    expect(cell(notebook, 5)).to_be_focused()
    row(panel, "schema archive").focus()
    notebook.keyboard.press("ArrowLeft")
    expect(row(panel, "table places")).to_have_count(0)


def test_dragging_inserts_where_it_is_dropped(wheel_lab: Lab, notebook: Page):
    panel = sidebar(notebook)
    at_end(notebook, 5)
    notebook.keyboard.press("Control+a")
    notebook.keyboard.press("Delete")
    row(panel, "column weight_g").drag_to(cell(notebook, 5))
    expect(cell(notebook, 5)).to_have_text("weight_g")


def test_cells_and_lines_are_coloured_as_sql(wheel_lab: Lab, notebook: Page):
    keyword = colour_of(notebook, 3, "SELECT")
    assert keyword == colour_of(notebook, 3, "FROM")
    assert keyword != colour_of(notebook, 3, "name")
    assert colour_of(notebook, 3, "all") not in (keyword, colour_of(notebook, 3, "name"))
    assert keyword == colour_of(notebook, 4, "SELECT")
    assert colour_of(notebook, 4, "'x'") not in (keyword, colour_of(notebook, 4, "birds"))
    assert colour_of(notebook, 3, "name") == colour_of(notebook, 4, "birds")


def test_comments_are_those_of_sql(wheel_lab: Lab, notebook: Page):
    at_end(notebook, 3)
    notebook.keyboard.press("Control+/")
    expect(cell(notebook, 3)).to_contain_text("-- FROM birds b")
    notebook.keyboard.press("Control+/")
    expect(cell(notebook, 3)).not_to_contain_text("-- FROM birds b")


def completions(page: Page) -> Locator:
    return page.locator(".jp-Completer:visible .jp-Completer-match")


def test_columns_are_offered_after_an_alias_and_a_dot(wheel_lab: Lab, notebook: Page, screenshot: Screenshot):
    at_end(notebook, 5)
    notebook.keyboard.press("Control+a")
    notebook.keyboard.press("Delete")
    notebook.keyboard.insert_text("%%ducklake\nSELECT b")
    notebook.keyboard.insert_text(" FROM birds b")
    for _ in " FROM birds b":
        notebook.keyboard.press("ArrowLeft")
    notebook.keyboard.type(".")
    expect(completions(notebook).filter(has_text="weight_g")).to_be_visible(timeout=15_000)
    expect(completions(notebook).filter(has_text="name")).to_be_visible()
    screenshot(notebook, "completion")
    notebook.keyboard.type("wei")
    notebook.keyboard.press("Enter")
    expect(cell(notebook, 5)).to_have_text("%%ducklakeSELECT b.weight_g FROM birds b")


def test_completion_works_again_after_a_restart(wheel_lab: Lab):
    wheel_lab.write("restart.ipynb", [LAKE[0], "%ducklake connect ducklake:restart.ducklake", LAKE[2], ""])
    page = wheel_lab.open("restart.ipynb", whole=True)
    run_all(page)
    panel = sidebar(page)
    expect(row(panel, "lake restart snapshot 4")).to_be_visible()
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(panel.get_by_role("status")).to_contain_text("%load_ext ducklake_lab", timeout=30_000)
    for index in (0, 1):
        cell(page, index).click()
        page.keyboard.press("Control+Enter")
    expect(row(panel, "lake restart snapshot 4")).to_be_visible()
    at_end(page, 3)
    page.keyboard.insert_text("%ducklake SELECT count(*) FROM archive")
    page.keyboard.type(".")
    expect(completions(page).filter(has_text="places")).to_be_visible(timeout=15_000)
    close(page)


def test_names_filter_the_tree(wheel_lab: Lab, notebook: Page):
    panel = sidebar(notebook)
    panel.get_by_role("searchbox").fill("heig")
    expect(row(panel, "column height double")).to_be_visible()
    expect(row(panel, "table birds")).to_have_count(0)
    panel.get_by_role("searchbox").fill("no such thing")
    expect(panel.get_by_role("status")).to_have_text("No name or comment is like that.")
    panel.get_by_role("searchbox").fill("")
    expect(row(panel, "table birds")).to_be_visible()


def test_each_notebook_has_its_own_lakes_and_a_restart_forgets_them(
    wheel_lab: Lab, notebook: Page, screenshot: Screenshot
):
    panel = sidebar(notebook)
    wheel_lab.write("other.ipynb", [LAKE[0], "%ducklake connect ducklake:other.ducklake"])
    bring_to_front(notebook, "other.ipynb")
    run_all(notebook)
    expect(row(panel, "lake other")).to_be_visible()
    expect(row(panel, "lake birds")).to_have_count(0)
    notebook.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(panel.get_by_role("status")).to_contain_text("%load_ext ducklake_lab", timeout=30_000)
    run_all(notebook)
    expect(row(panel, "lake other")).to_be_visible()
    bring_to_front(notebook, "birds.ipynb")
    expect(row(panel, "lake birds")).to_be_visible()
    expect(row(panel, "table birds")).to_be_visible()


def test_a_page_loaded_again_finds_the_lakes(wheel_lab: Lab):
    wheel_lab.write("again.ipynb", [LAKE[0], "%ducklake connect ducklake:again.ducklake"])
    page = wheel_lab.open("again.ipynb", whole=True)
    run_all(page)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!document.title.startsWith('*')")
    page.reload()
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    expect(row(sidebar(page), "lake again snapshot 0")).to_be_visible(timeout=30_000)
    close(page)


def test_the_status_bar_tells_of_time_travel_and_transactions(wheel_lab: Lab, notebook: Page, screenshot: Screenshot):
    bring_to_front(notebook, "birds.ipynb")
    status = notebook.locator(".jp-DuckLake-statusButton")
    for text, told in (
        ("%ducklake connect ducklake:birds.ducklake --alias old --at 1", "old · snapshot 1 · time travelling"),
        ("%ducklake use birds", "birds · snapshot 4"),
        ("%ducklake BEGIN", "birds · snapshot 4 · in transaction"),
        ("%ducklake ROLLBACK", "birds · snapshot 4"),
    ):
        at_end(notebook, 5)
        notebook.keyboard.press("Control+a")
        notebook.keyboard.insert_text(text)
        notebook.keyboard.press("Control+Enter")
        expect(status).to_have_text(told)
        if "travelling" in told:
            screenshot(notebook, "time-travel")
    expect(row(sidebar(notebook), "lake old snapshot 1 · time travel")).to_be_visible()


def test_a_tables_menu_inserts_a_query(wheel_lab: Lab, notebook: Page, screenshot: Screenshot):
    row(sidebar(notebook), "table birds").first.click(button="right")
    screenshot(notebook, "menu")
    notebook.get_by_role("menuitem", name="Query in a New Cell").click()
    expect(cell(notebook, 6)).to_have_text("%%ducklakeSELECT *FROM birds.main.birdsLIMIT 50")


def test_the_launcher_opens_a_quickstart_that_runs(wheel_lab: Lab, screenshot: Screenshot):
    wheel_lab.write("start.ipynb", ["1"])
    page = wheel_lab.open("start.ipynb", whole=True)
    sidebar(page)
    page.evaluate("() => { window.jupyterapp.commands.execute('launcher:create'); }")
    card = page.locator(".jp-LauncherCard", has_text="DuckLake Quickstart")
    expect(card).to_be_visible()
    screenshot(page, "launcher")
    card.click()
    page.wait_for_function("window.jupyterapp.shell.currentWidget?.context?.path === 'ducklake-quickstart.ipynb'")
    expect(page.get_by_role("heading", name="DuckLake in five minutes")).to_be_visible()
    run_all(page)
    expect(page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    expect(row(sidebar(page), "lake quickstart")).to_be_visible()
    screenshot(page, "quickstart")
    close(page)
