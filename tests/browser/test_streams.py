"""Streaming queries under the cells that start them, on a real Spark."""

from __future__ import annotations

import re

import nbformat
import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious

pytestmark = [pytest.mark.sampled(5, "browser"), pytest.mark.timeout(400)]

CELLS = (
    "%load_ext ducklake_lab\n%ducklake connect ducklake:streams.ducklake",
    "%%ducklake\nCREATE TABLE t AS SELECT i FROM range(1200) r(i); CREATE TABLE u (i BIGINT)",
    "session = get_ipython().magics_manager.registry['DuckLakeMagics'].session\nspark = session.spark\n"
    "rows = spark.readStream.format('ducklake').option('table', 't').load('ducklake:streams.ducklake')",
    "query = (rows.writeStream.format('ducklake').options(table='u', path='ducklake:streams.ducklake',\n"
    "    checkpointLocation='checkpoint').queryName('copy').start())",
    "numbers = spark.readStream.format('rate').load().selectExpr('assert_true(value < 0) AS a')\n"
    "numbers.writeStream.format('memory').queryName('bad').start()",
)
STARTED, FAILED = 3, 4


def output(lab: Lab, page: Page, cell: int) -> str:
    save(page)
    outputs = nbformat.read(lab.files / "streams.ipynb", 4).cells[cell].outputs
    assert len(outputs) == 1
    return re.sub(r"<style>.*?</style>|<[^>]+>", "", outputs[0].data["text/html"])


def test_a_cell_shows_what_its_stream_does(lab: Lab, screenshot: Screenshot) -> None:
    lab.write("streams.ipynb", CELLS)
    page = lab.open("streams.ipynb", fresh=True)
    run_all(page, timeout=200)
    cells = page.locator(".jp-CodeCell")
    running = cells.nth(STARTED).locator(".dlk-st")
    screenshot(page, "streams-first")
    expect(running).to_contain_text("Stream copy running")
    # the commit of the first batch is a snapshot of the lake that is read, so an empty batch follows
    expect(running).to_contain_text(re.compile(r"batch [01] · 1,200 rows"), timeout=90_000)
    assert re.match(r"Stream copy running as of 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d ", output(lab, page, STARTED))
    failed = cells.nth(FAILED).locator(".dlk-st")
    expect(failed).to_contain_text("Stream bad failed", timeout=90_000)
    expect(failed).to_contain_text("'(value < 0)' is not true!")
    assert "Stream bad failed seen 20" in output(lab, page, FAILED)
    screenshot(page, "streams")
    assert serious(page, ".dlk-st") == []
    page.evaluate(
        """async () => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            await kernel.requestExecute({ code: "query.stop()" }).done;
        }"""
    )
    expect(running).to_contain_text("Stream copy stopped")
    assert "Stream copy stopped seen 20" in output(lab, page, STARTED)
    # a query that runs when the kernel ends is not said to run
    run_cell(page, STARTED)
    expect(running).to_contain_text("running", timeout=60_000)
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    shown = cells.nth(STARTED).locator(".jp-OutputArea-output")
    expect(shown).to_contain_text("The kernel was restarted; run the cell again.", timeout=60_000)
    expect(shown.get_by_text("running as of 20")).to_be_visible()
    expect(running).to_have_count(0)
    screenshot(page, "streams-gone")
    close(page, window=True)
