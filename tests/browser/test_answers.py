"""The diff of two answers: a click on a group shows the rows behind it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import ducklake_lab as dl
from tests.browser.first_paint import first_paint, settle
from tests.browser.lab import Lab, Screenshot, close, run_all, save, serious

pytestmark = pytest.mark.sampled(5, "browser")

SETUP = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = 'duckdb'
%ducklake connect ducklake:sqlite:answers/lake.sqlite --alias lake"""


def test_a_click_shows_the_rows_behind_a_group(lab: Lab, screenshot: Screenshot) -> None:
    (lab.files / "answers").mkdir()
    with dl.connect(f"ducklake:sqlite:{lab.files}/answers/lake.sqlite", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'region ' || i % 3 AS region, i * 10 AS amount FROM range(30) r(i)")
        session.sql("UPDATE t SET amount = 5 WHERE i = 7; DELETE FROM t WHERE i = 10")
        session.sql("INSERT INTO t VALUES (99, '<img src=x onerror=''window.hacked=1''>', 1)")
    query = "SELECT region, count(*) AS n, sum(amount) AS total FROM t GROUP BY ALL"
    lab.write("answers.ipynb", [SETUP, f"%%ducklake --compare 1 4\n{query}"])
    page = lab.open("answers.ipynb")
    page.set_viewport_size({"width": 1320, "height": 1800})
    run_all(page)
    output = page.locator(".jp-CodeCell").nth(1)
    grid = output.get_by_role("grid", name="Changed rows")
    expect(grid).to_contain_text("region 1")
    settle(page)
    first_paint(page)
    behind = output.get_by_role("region", name="Rows behind the row")
    expect(behind).to_be_hidden()
    grid.get_by_text("region 1").click()
    expect(behind.get_by_role("status")).to_have_text("Rows behind it that differ at snapshots 1 and 4:")
    expect(behind).to_contain_text("1 deleted")
    expect(behind).to_contain_text("1 updated")
    screenshot(page, "answers-behind")
    # by the keyboard, and closed again
    grid.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(behind).to_contain_text("1 inserted")
    assert serious(page, ".dlk-df") == []
    behind.get_by_role("button", name="Close").click()
    expect(behind).to_be_hidden()
    assert page.evaluate("window.hacked") is None
    save(page)
    close(page)
