"""The rows of a diff in a notebook: filtered, sorted and copied as SQL; its numbers beside those of plain SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

import ducklake_lab as dl
from ducklake_lab.diff.diff import Diff
from tests.browser.lab import Lab, close, run_all, serious

pytestmark = pytest.mark.sampled(5, "browser")

#: Pixels that the cells of each column, its name among them, have left at the right of their contents.
ROOM = """grid => {
  const rows = [...grid.querySelectorAll(".dlk-g-row")].map((row) => [...row.children]);
  const left = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return cell.getBoundingClientRect().width - range.getBoundingClientRect().width;
  };
  return rows[0].map((_, at) => Math.min(...rows.filter((row) => row[at].textContent !== "…").map((row) => left(row[at]))));
}"""


def assert_columns_fit(view: Locator) -> None:
    """No cell of a grid is cut, and no column is much wider than what stands in it."""
    expect(view.locator(".dlk-g-rows .dlk-g-row ins").first).to_be_visible()
    room = view.locator(".dlk-g").evaluate(ROOM)
    assert all(-0.5 <= pixels < 24 for pixels in room), room


@dataclass
class Shown:
    """A notebook with diffs of two lakes.

    Attributes:
        changed: how many rows of the second lake have another delay, and the least of the new ones.
        diff: that of the second lake.
    """

    page: Page
    changed: int
    least: float
    diff: Diff


@pytest.fixture(scope="module")
def shown(_lab: Lab) -> Iterator[Shown]:
    for name in ("diff-wide", "diff"):
        (_lab.files / name).mkdir()
    with dl.connect(f"ducklake:sqlite:{_lab.files}/diff-wide/lake.sqlite", alias="lake", engine="duckdb") as session:
        numbers = ", ".join(f"(i + {at})::SMALLINT AS number_{at}" for at in range(17))
        session.sql(f"CREATE TABLE t AS SELECT {numbers}, 'N' || i AS tail, i AS late FROM range(300) r(i)")
        wide = session.current_snapshot().snapshot_id
        session.sql("UPDATE t SET late = 2400, tail = upper(tail) || '!' WHERE number_3 % 2 = 0")
    with dl.connect(f"ducklake:sqlite:{_lab.files}/diff/lake.sqlite", alias="lake", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t AS SELECT i::INTEGER AS k, (i * 7919 % 300) / 10.0 AS delay, 'n' || i AS name FROM range(2000) r(i)"
        )
        start = session.current_snapshot().snapshot_id
        session.sql(
            "UPDATE t SET delay = delay + 1 WHERE k < 700; UPDATE t SET name = '<b>' WHERE k BETWEEN 500 AND 800"
        )
        session.sql("DELETE FROM t WHERE k >= 1990")
        ((changed, least),) = session.sql(
            f"SELECT count(*), min(b.delay) FROM (FROM t AT (VERSION => {start})) a JOIN t b USING (k) WHERE a.delay <> b.delay"
        ).fetchall()
        diff = session.table("t").diff(start)
    cells = [
        "%load_ext ducklake_lab\n%config DuckLakeMagics.engine = 'duckdb'\n"
        "%ducklake connect ducklake:sqlite:diff-wide/lake.sqlite --alias wide",
        f"%ducklake diff t {wide}",
        "%ducklake connect ducklake:sqlite:diff/lake.sqlite --alias lake",
        f"%ducklake diff t {start}",
        f"%ducklake diff {start}",
    ]
    _lab.write("diff.ipynb", cells)
    page = _lab.open("diff.ipynb")
    page.set_viewport_size({"width": 1320, "height": 4000})
    run_all(page)
    yield Shown(page, changed, least, diff)
    close(page)


def test_what_changed_in_a_wide_table_is_in_view(lab: Lab, shown: Shown):
    view = shown.page.locator(".jp-CodeCell").nth(1).locator(".dlk-df")
    expect(view.get_by_role("status")).to_have_text("150 rows · 12 more columns not shown", timeout=120_000)
    assert_columns_fit(view)
    # the columns that changed need no scrolling
    assert view.locator(".dlk-g").evaluate("grid => grid.scrollWidth <= grid.clientWidth")
    expect(view.locator(".dlk-g-rows .dlk-g-row").first.locator("ins")).to_have_text(["N1!", "2400"])
    names = view.get_by_role("columnheader")
    assert names.all_inner_texts()[:4] == ["", "row id", "tail", "late"]
    view.get_by_role("button", name="Show all 19 columns").click()
    expect(names).to_have_count(21)
    expect(view.get_by_role("status")).to_have_text("150 rows")
    expect(view.locator(".dlk-g-rows .dlk-g-row").first.locator("ins")).to_have_text(["N1!", "2400"])
    view.get_by_role("button", name="Show changed columns").click()
    expect(names).to_have_count(9)


def test_rows_of_a_diff(lab: Lab, shown: Shown):
    page = shown.page
    output = page.locator(".jp-CodeCell").nth(3)
    view = output.locator(".dlk-df")
    expect(view.get_by_role("status")).to_have_text("811 rows", timeout=120_000)
    expect(view.get_by_role("button", name="801 updated")).to_have_attribute("aria-pressed", "false")
    expect(output.locator(".dlk-changes > h4").first).to_be_hidden()  # the static rows make way
    assert_columns_fit(view)
    view.get_by_role("combobox").select_option("delay")
    expect(view.get_by_role("status")).to_have_text(f"{shown.changed} rows")
    view.get_by_role("button", name="delay").click()
    first = view.locator(".dlk-g-rows .dlk-g-row").first
    expect(first.locator("ins").first).to_have_text(str(shown.least))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    view.get_by_role("button", name="Copy as SQL").click()
    expect(view.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == shown.diff.sql(changed="delay", sort="delay")
    view.get_by_role("button", name="deleted").click()
    expect(view.get_by_role("status")).to_have_text("10 rows")
    expect(first).to_have_class("dlk-g-row dlk-df-deleted")
    lake = page.get_by_role("region", name="Tables that differ")
    expect(lake).to_contain_text("main.t")
    expect(lake.locator("tbody tr").first).to_contain_text("801")
    assert serious(page, ".dlk-df", ".dlk") == []
