"""Sections of the sidebar besides the tree of lakes: recent lakes, the running statement, comments."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious
from tests.browser.sidebar import row, sidebar, sources

pytestmark = pytest.mark.sampled(5, "browser")

LOAD = "%load_ext ducklake_lab"


def kept(lab: Lab) -> str:
    """Return JupyterLab's record of the recent lakes."""
    with urllib.request.urlopen(f"{lab.address}/lab/api/workspaces/default") as answer:
        found: dict[str, object] = json.load(answer)["data"]
    return json.dumps(found.get("jupyterlab-ducklake:recent", []))


def open_again(lab: Lab, page: Page, name: str) -> Locator:
    """Opens another notebook in a page with the state of the last one; its sidebar."""
    for _ in range(30):
        page.goto(f"{lab.address}/lab/tree/{name}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        if "/workspaces/" not in page.url:
            break
        # JupyterLab took the page that was left for another window, and began a workspace of its own
        page.wait_for_timeout(1000)
    page.wait_for_function("name => window.jupyterapp?.shell.currentWidget?.context?.path === name", arg=name)
    return sidebar(page)


def test_recent_lakes_are_a_click_away(wheel_lab: Lab, screenshot: Screenshot):
    first, second = "pond", "it's a sea"
    quoted = second.replace("'", "'\"'\"'")
    wheel_lab.write(
        "a.ipynb",
        [
            LOAD,
            f"%ducklake connect ducklake:{first}.ducklake",
            f"%ducklake connect 'ducklake:{quoted}.ducklake' --alias sea",
        ],
    )
    wheel_lab.write("c.ipynb", ["", ""])
    page = wheel_lab.open("a.ipynb", whole=True, fresh=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    panel = sidebar(page)
    run_all(page)
    expect(row(panel, "lake sea")).to_be_visible()
    expect(row(panel, "Recent lakes")).to_have_count(0)
    save(page)
    page.wait_for_function(
        "() => fetch('/lab/api/workspaces/default').then(answer => answer.text()).then(text => text.includes(' sea'))"
    )

    # another kernel, which has not loaded the extension yet
    panel = open_again(wheel_lab, page, "c.ipynb")
    expect(row(panel, "Recent lakes 2")).to_be_visible()
    expect(row(panel, "recent sea")).to_contain_text(f"files/{second}.ducklake")
    first_paint(page, height=1000)
    assert serious(page, "#jp-ducklake-sidebar") == []
    screenshot(page, "recent")
    row(panel, "recent sea").click()
    expect(row(panel, "lake sea snapshot 0")).to_be_visible()
    uri = f"ducklake:{wheel_lab.files}/{quoted}.ducklake"
    assert sources(page)[0] == f"{LOAD}\n%ducklake connect '{uri}' --alias sea --existing"
    # it folds where there is a lake, and lists no lake twice
    expect(row(panel, "Recent lakes 1")).to_have_attribute("aria-expanded", "false")
    row(panel, "Recent lakes").click()
    expect(row(panel, "recent pond")).to_be_visible()
    expect(row(panel, "recent sea")).to_have_count(0)
    assert kept(wheel_lab).count(f"{second}.ducklake") == 1
    row(panel, "recent pond").click(button="right")
    page.get_by_role("menuitem", name="Forget").click()
    expect(row(panel, "Recent lakes")).to_have_count(0)
    save(page)
    close(page)


#: Nine billion pairs, which DuckDB looks at one by one.
LONG = "SELECT count(*) FROM birds, range(3000000) a(i), range(3000) b(j) WHERE hash(i * j) % 7 = 3"


def test_the_running_statement_is_shown_and_stopped(wheel_lab: Lab, screenshot: Screenshot):
    wheel_lab.write(
        "run.ipynb",
        [LOAD, "%ducklake connect ducklake:run.ducklake", "%ducklake CREATE TABLE birds AS FROM range(2)", ""],
    )
    page = wheel_lab.open("run.ipynb", whole=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    panel = sidebar(page)
    run_all(page)
    expect(row(panel, "table birds")).to_be_visible()
    page.locator(".jp-CodeCell").last.locator(".cm-content").click()
    page.keyboard.insert_text(f"%%ducklake\n-- all of them\n{LONG}")
    page.keyboard.press("Control+Enter")
    stop = panel.get_by_role("button", name="Stop the statement")
    expect(stop).to_be_visible()
    expect(panel.locator(".jp-DuckLake-statement")).to_have_text(LONG)
    expect(panel.get_by_role("progressbar", name="Statement")).to_have_attribute(
        "aria-valuetext", re.compile("running")
    )
    expect(page.locator(".jp-DuckLake-status .jp-DuckLake-progress")).to_contain_text("running")
    assert serious(page, "#jp-ducklake-sidebar", ".jp-DuckLake-status") == []
    screenshot(page, "running")
    stop.click()
    expect(page.locator(".jp-CodeCell").last).to_contain_text("the running statement was cancelled")
    expect(stop).to_have_count(0)
    expect(page.locator(".jp-DuckLake-status .jp-DuckLake-progress")).to_have_count(0)
    # the kernel is as it was
    expect(row(panel, "table birds")).to_be_visible()
    page.locator(".jp-CodeCell").last.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("%ducklake SELECT count(*) + 40 AS n FROM birds")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".jp-CodeCell").last).to_contain_text("42")
    close(page)


COMMENTS = """%%ducklake
CREATE TABLE birds (name VARCHAR, g INTEGER); CREATE TABLE other (a INTEGER);
CREATE VIEW heavy AS FROM birds WHERE g > 1000;
COMMENT ON TABLE birds IS 'Seen <b>at</b> the lake since 1999, by volunteers of three villages';
COMMENT ON COLUMN birds.g IS 'Weight in grams';
COMMENT ON VIEW heavy IS 'Those that sink'"""


def test_comments_are_shown_and_found(wheel_lab: Lab, screenshot: Screenshot):
    wheel_lab.write(
        "comments.ipynb", [LOAD, "%ducklake connect ducklake:comments.ducklake", COMMENTS, "%ducklake schema"]
    )
    page = wheel_lab.open("comments.ipynb", theme="dark", whole=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    panel = sidebar(page)
    run_all(page)
    row(panel, "table birds").locator(".jp-DuckLake-caret").click()
    expect(row(panel, "table birds").locator(".jp-DuckLake-comment")).to_have_text(
        re.compile("^Seen <b>at</b> the lake")
    )
    expect(row(panel, "column g integer Weight in grams")).to_be_visible()
    expect(row(panel, "view heavy view Those that sink")).to_be_visible()
    first_paint(page, height=1000)
    assert serious(page, "#jp-ducklake-sidebar") == []
    screenshot(page, "comments")

    search = panel.get_by_role("searchbox")
    search.fill("in GRAMS")
    expect(row(panel, "column g")).to_be_visible()
    expect(row(panel, "column name")).to_have_count(0)
    expect(row(panel, "table other")).to_have_count(0)
    search.fill("sink")
    expect(row(panel, "view heavy")).to_be_visible()
    expect(row(panel, "table birds")).to_have_count(0)
    search.fill("villages")
    expect(row(panel, "table birds")).to_be_visible()

    tree = page.locator(".dlk-sc-tree")
    expect(tree.get_by_role("treeitem", name=re.compile("birds"))).to_contain_text("Seen <b>at</b>")
    page.get_by_label("Search names and comments").fill("grams")
    expect(tree.get_by_role("treeitem", name=re.compile("other"))).to_have_count(0)
    expect(tree.get_by_role("treeitem", name=re.compile("birds"))).to_be_visible()
    close(page, window=True)
