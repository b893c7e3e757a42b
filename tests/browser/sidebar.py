"""JupyterLab's sidebar, and the cells beside it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

#: A lake of two tables, made in cells.
LAKE = (
    "%load_ext ducklake_lab",
    "%ducklake connect ducklake:birds.ducklake",
    """%%ducklake
CREATE TABLE birds (name VARCHAR, weight_g INTEGER, "seen on" DATE);
INSERT INTO birds VALUES ('mallard', 1100, DATE '2025-03-01'), ('teal', 330, NULL);
CREATE SCHEMA archive;
CREATE TABLE archive.places (place VARCHAR NOT NULL, height DOUBLE);""",
)


def sidebar(page: Page) -> Locator:
    """The sidebar, opened."""
    panel = page.locator("#jp-ducklake-sidebar")
    page.wait_for_function("window.jupyterapp.commands.hasCommand('ducklake:show')")
    if not panel.is_visible():
        page.evaluate("() => { window.jupyterapp.commands.execute('ducklake:show'); }")
    expect(panel).to_be_visible()
    return panel


def row(panel: Locator, label: str) -> Locator:
    """The row whose label for screen readers begins like that."""
    return panel.get_by_role("treeitem", name=re.compile(f"^{re.escape(label)}"))


def cell(page: Page, index: int) -> Locator:
    return page.locator(".jp-CodeCell").nth(index).locator(".cm-content")


def at_end(page: Page, index: int) -> None:
    cell(page, index).click()
    page.keyboard.press("Control+End")


def sources(page: Page) -> list[str]:
    """The texts of the cells of the notebook in front."""
    found: list[str] = page.evaluate(
        "window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.getSource())"
    )
    return found


def bring_to_front(page: Page, name: str) -> None:
    page.evaluate("name => { window.jupyterapp.commands.execute('docmanager:open', {path: name}); }", name)
    page.wait_for_function("name => window.jupyterapp.shell.currentWidget?.context?.path === name", arg=name)
