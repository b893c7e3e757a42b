"""The widgets in a real marimo, in a real Chromium."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from urllib.error import URLError

import pytest
from playwright.sync_api import Browser, Page, expect

import ducklake_lab as dl
from tests.browser.lab import ROOT, Screenshot, Theme, brightness, serious, themes

pytestmark = pytest.mark.sampled(5, "browser")

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import ducklake_lab as dl
    from ducklake_lab.widgets import browsers

    session = dl.Session(engine="duckdb")
    lake = session.attach("{uri}", read_only=True)
    return browsers, mo, session


@app.cell
def _(browsers, session):
    snapshots = browsers.snapshots(session)
    snapshots
    return


@app.cell
def _(browsers, session):
    browsers.schema(session)
    return


@app.cell
def _(browsers, mo, session):
    rows = mo.ui.anywidget(browsers.rows(session, "flights"))
    rows
    return (rows,)


@app.cell
def _(mo, rows):
    mo.md(f"Filtered by {{rows.value['filters']}}: {{rows.value['passing']}}")
    return


@app.cell
def _(browsers, session):
    browsers.files(session, "flights")
    return


@app.cell
def _(session):
    session.table("flights").diff(2, 3)
    return


@app.cell
def _(session):
    session.sql("SELECT carrier, count(*) AS n FROM flights GROUP BY ALL ORDER BY carrier")
    return
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the notebook in a marimo whose theme is that of the browser."""
    folder = tmp_path_factory.mktemp("marimo")
    uri = f"ducklake:{folder}/lake.ducklake"
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE flights (id INTEGER, carrier VARCHAR)")
        session.sql("INSERT INTO flights SELECT i, ['UA', 'AA', 'DL'][i % 3 + 1] FROM range(1000) r(i)")
        session.sql("DELETE FROM flights WHERE id < 100")
    (folder / "pyproject.toml").write_text('[tool.marimo.display]\ntheme = "system"\n')
    (folder / "notebook.py").write_text(NOTEBOOK.format(uri=uri))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", "notebook.py", "--headless", "--no-token", f"--port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    # the order of values that are sent together: with this one, what is drawn last comes last
    environment["PYTHONHASHSEED"] = "1"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/"
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=2).close()
            break
        except (URLError, OSError):
            time.sleep(0.2)
    yield address
    process.terminate()
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def page(address: str, browser: Browser) -> Iterator[Page]:
    page = open_page(address, browser, "light")
    yield page
    page.context.close()


def open_page(address: str, browser: Browser, theme: Theme) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 2400}, color_scheme=theme).new_page()
    page.goto(address)
    return page


def test_it_opens_in_dark(address: str, browser: Browser) -> None:
    page = open_page(address, browser, "dark")
    expect(page.locator(".dlk-sb [role=status]").first).to_have_text("4 snapshots")
    expect(page.locator(".dlk-tb").get_by_role("status")).to_have_text("900 rows")
    expect(page.locator(".dlk-fb .dlk-g-rows .dlk-g-row")).to_have_count(1)
    for theme in themes(page):
        text = brightness(page.locator(".dlk-sb").first, "color")
        background = brightness(page.locator("body"), "backgroundColor")
        assert abs(text - background) > 150
        assert (text > background) == (theme == "dark")
    assert serious(page, "marimo-anywidget") == []
    page.context.close()


def test_snapshots_are_clicked_to_a_diff(page: Page) -> None:
    expect(page.locator(".dlk-sb [role=status]").first).to_have_text("4 snapshots")
    rows = page.locator(".dlk-sb .dlk-g-rows .dlk-g-row")
    expect(rows.nth(1)).to_contain_text("+1,000")
    rows.nth(1).click()
    rows.nth(0).click(modifiers=["Shift"])
    page.locator(".dlk-sb-detail").get_by_role("button", name="Show diff").click()
    expect(page.locator(".dlk-sb-result")).to_contain_text("100 deleted")


def test_rows_are_filtered_and_other_cells_follow(page: Page) -> None:
    view = page.locator(".dlk-tb")
    expect(view.get_by_role("status")).to_have_text("900 rows")
    view.get_by_label("Filter carrier").fill("= UA")
    expect(view.get_by_role("status")).to_have_text("300 of 900 rows")
    expect(view.locator(".dlk-g-rows .dlk-g-row").first).to_contain_text("UA")
    expect(page.get_by_text("Filtered by {'carrier': '= UA'}")).to_be_visible()


def test_schema_files_diff_and_result(page: Page, screenshot: Screenshot) -> None:
    page.get_by_role("treeitem", name="flights").click()
    expect(page.get_by_role("treeitem", name="carrier")).to_be_visible()
    expect(page.locator(".dlk-fb .dlk-g-rows .dlk-g-row")).to_have_count(1)
    expect(page.locator(".dlk-fb .dlk-g-rows .dlk-g-row")).to_contain_text("100 (10%)")
    expect(page.locator(".dlk", has_text="snapshot 2 → 3").last).to_contain_text("100 deleted")
    expect(page.locator(".dlk", has_text="3 rows").get_by_role("row")).to_have_text(
        ["carriervarcharnbigint", *(f"{carrier}300" for carrier in ("AA", "DL", "UA"))],
        ignore_case=True,
    )
    screenshot(page, "marimo")
