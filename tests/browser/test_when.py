"""The changes of an answer: a chart whose points lead to diffs."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import expect

import ducklake_lab as dl
from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious

pytestmark = pytest.mark.sampled(3)

SETUP = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = 'duckdb'
%ducklake connect ducklake:sqlite:when/lake.sqlite --alias lake"""


def test_a_point_shows_the_diff_of_its_change(lab: Lab, screenshot: Screenshot):
    (lab.files / "when").mkdir()
    with dl.connect(f"ducklake:sqlite:{lab.files}/when/lake.sqlite", alias="lake", engine="duckdb") as session:
        session.author = "Ada"
        session.sql("CREATE TABLE t AS SELECT i, 'north' AS region FROM range(10) r(i)", message="load")
        for number in range(12):
            session.sql(
                f"INSERT INTO t SELECT i, 'south' FROM range({5 + number * number % 7}) r(i)", message=f"batch {number}"
            )
        session.sql("DELETE FROM t WHERE i > 3", message="<img src=x onerror='window.hacked=1'>")
    cells = [
        SETUP,
        "%ducklake when 'SELECT count(*) FROM t'",
        '%ducklake when "SELECT region, count(*) AS n FROM t GROUP BY ALL" --start 11',
    ]
    lab.write("when.ipynb", cells)
    page = lab.open("when.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2400})
    run_all(page)
    output = page.locator(".jp-CodeCell").nth(1)
    chart = output.locator("svg.dlk-wn-choosable")
    expect(chart.locator(".dlk-wn-point")).to_have_count(14)
    settle(page)
    first_paint(page)
    screenshot(page, "when")
    found = output.locator(".dlk-wn")
    expect(found).to_be_hidden()
    chart.locator(".dlk-wn-point").nth(13).click()
    expect(found.get_by_role("status")).to_have_text(
        "Changed in snapshot 14 · Ada · <img src=x onerror='window.hacked=1'>"
    )
    expect(found).to_contain_text("snapshot 13 → 14")
    expect(chart.locator(".dlk-wn-point[aria-current]")).to_have_count(1)
    screenshot(page, "when-diff")
    output.locator("table tbody tr").nth(1).locator("td").nth(1).click()
    expect(found.get_by_role("status")).to_have_text("Changed in snapshot 2 · Ada · batch 0")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(found.get_by_role("status")).to_have_text("The answer at snapshot 1, where this history begins.")
    assert serious(page, ".jp-OutputArea-output .dlk", ".dlk-wn") == []
    assert page.evaluate("window.hacked") is None
    save(page)
    saved = nbformat.read(lab.files / "when.ipynb", 4)
    html = saved.cells[1].outputs[0].data["text/html"]
    assert "<svg" in html and "dlk-pv-choosable" not in html and "<img" not in html
    close(page)
