"""Saved outputs of a change that ends, and messages of views whose kernel ends."""

from __future__ import annotations

import os
import re
import signal

import nbformat
import pytest
from playwright.sync_api import Page, expect

from tests.browser.first_paint import settle
from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = (
    "%load_ext ducklake_lab\n%config DuckLakeMagics.engine = 'duckdb'\n%ducklake connect ducklake:{name}.ducklake",
    "%%ducklake\nCREATE OR REPLACE TABLE t AS SELECT i AS n, 'note ' || i AS note FROM range(300) r(i)",
    "%%ducklake\nUPDATE t SET note = 'new' WHERE n % 10 = 0",
    "%%ducklake\nSELECT * FROM t ORDER BY n",
    "%ducklake snapshots",
    "%ducklake schema",
    "%ducklake files t",
    "%ducklake diff t",
    "from ducklake_lab.widgets import browsers\nfrom ipywidgets import VBox\n"
    "session = get_ipython().magics_manager.registry['DuckLakeMagics'].session\nVBox([browsers.schema(session)])",
    "%%ducklake --preview\nINSERT INTO t VALUES (1000, 'more')",
)
RESULT, PREVIEW = 3, 9
#: Five views that take the place of a static one, and one in a box; beside them the preview.
VIEWS = 6
SENTENCE = "The kernel was restarted; run the cell again."


def opened(lab: Lab, name: str) -> Page:
    """A notebook that has run, in a window of its own."""
    lab.write(f"{name}.ipynb", [cell.replace("{name}", name) for cell in CELLS])
    page = lab.open(f"{name}.ipynb", fresh=True)
    page.set_viewport_size({"width": 1320, "height": 4200})
    run_all(page)
    expect(page.locator(".dlk-pv")).to_be_visible()
    return page


def kept(lab: Lab, page: Page, name: str) -> str:
    """The head of the preview in the saved notebook."""
    save(page)
    html = nbformat.read(lab.files / f"{name}.ipynb", 4).cells[PREVIEW].outputs[0].data["text/html"]
    return re.sub(r"<[^>]+>", "", re.findall(r'<p class="dlk-pv-told">(.*?)</p>', html)[0])


def test_the_saved_output_says_how_a_change_ended(lab: Lab):
    page = opened(lab, "ended")
    assert kept(lab, page, "ended").startswith("Preview Not committed: nothing is in the lake.")
    bar = page.locator(".dlk-pv")
    bar.get_by_role("button", name="Commit").click()
    expect(bar).to_contain_text("Committedas snapshot 3")
    assert kept(lab, page, "ended") == "Committed as snapshot 3"
    # ROLLBACK in another cell ends it, too
    run_cell(page, PREVIEW)
    expect(bar.get_by_role("button", name="Roll back")).to_be_visible()
    page.evaluate(
        """async () => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            await kernel.requestExecute({ code: "%%ducklake\\nROLLBACK" }).done;
        }"""
    )
    expect(bar).to_contain_text("Rolled back")
    assert kept(lab, page, "ended") == "Rolled back: the lake is as it was"
    # and a page that was loaded again writes it into the notebook that it shows
    run_cell(page, PREVIEW)
    expect(bar.get_by_role("button", name="Commit")).to_be_visible()
    save(page)
    page.reload()
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    bar.get_by_role("button", name="Roll back").click()
    expect(bar).to_contain_text("the lake is as it was")
    page.wait_for_function(
        "JSON.stringify(window.jupyterapp.shell.currentWidget.content.model.toJSON()).includes('the lake is as it was')"
    )
    assert kept(lab, page, "ended") == "Rolled back: the lake is as it was"
    close(page, window=True)


def is_gone(page: Page) -> None:
    """Each view shows its static form under the sentence, and nothing in it can be pressed."""
    expect(page.locator(".dlk-gone")).to_have_text([SENTENCE] * VIEWS)
    expect(page.locator(".dlk-pv-bar")).to_contain_text(f"Not committed. {SENTENCE}")
    for name in ("Commit", "Roll back"):
        expect(page.locator(".dlk-pv").get_by_role("button", name=name)).to_be_disabled()
    assert page.get_by_text("Cannot send").count() == page.get_by_text("…", exact=True).count() == 0
    rows = page.locator(".jp-CodeCell").nth(RESULT).locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.nth(10)).to_contain_text("new")
    pressed = page.locator(".jp-OutputArea-output button:enabled")
    assert pressed.evaluate_all("nodes => nodes.filter(node => !node.closest('[inert]')).length") == 0


def test_views_whose_kernel_was_restarted_say_what_to_do(lab: Lab, screenshot: Screenshot):
    page = opened(lab, "restarted")
    settle(page)
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    is_gone(page)
    settle(page)
    screenshot(page, "kernel-restarted")
    assert serious(page, ".dlk-gone", ".dlk-pv-bar") == []
    run_all(page)
    expect(page.locator(".dlk-pv").get_by_role("button", name="Commit")).to_be_enabled()
    expect(page.locator(".dlk-gone")).to_have_count(0)
    # a kernel that dies is restarted by the server
    run_cell(page, RESULT)
    settle(page)
    pid = page.evaluate(
        """async () => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            const asked = kernel.requestExecute({ code: "import os; print(os.getpid())" });
            let said = "";
            asked.onIOPub = ({ content }) => { said += content.text ?? ""; };
            await asked.done;
            return said;
        }"""
    )
    os.kill(int(pid), signal.SIGKILL)
    page.get_by_role("button", name="Ok").click()
    is_gone(page)
    close(page, window=True)
