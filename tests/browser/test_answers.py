"""The diff of two answers: charts of the change by group, and a click on a group shows the rows behind it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Page, expect

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


#: Change of a number: several groups that came and went, more than a chart lists, and a name that is markup.
GROUPS = """CREATE TABLE flights AS SELECT i, 'C' || lpad((i * 7 % 31)::VARCHAR, 2, '0') AS carrier,
        (i % 20 * 1.25)::DECIMAL(12, 2) AS fare FROM range(5000) r(i);
    DELETE FROM flights WHERE carrier IN ('C03', 'C20');
    UPDATE flights SET fare = fare + i % 60 - 29 WHERE i % 9 = 0 AND carrier < 'C27';
    INSERT INTO flights SELECT i, '<img src=x onerror=''window.hacked=1''>', -100 FROM range(15) r(i);
    INSERT INTO flights SELECT i, NULL, 100 FROM range(5) r(i)"""
QUERY = "SELECT carrier, count(*) AS n, sum(fare) AS fare FROM flights GROUP BY ALL"


@pytest.fixture(scope="module")
def charts(_lab: Lab) -> Iterator[tuple[Page, list[tuple[str, str, str]]]]:
    """A notebook with the diff of two answers, and its fares: carriers, steps and values before and after, by plain SQL."""
    (_lab.files / "charts").mkdir()
    with dl.connect(f"ducklake:sqlite:{_lab.files}/charts/lake.sqlite", alias="lake", engine="duckdb") as session:
        session.sql(GROUPS)
        last = session.current_snapshot().snapshot_id
        expected = session.sql(
            f"""SELECT CASE WHEN o.carrier IS NULL AND n.n = 5 THEN 'NULL' ELSE coalesce(o.carrier, n.carrier) END,
                printf('%+.2f', coalesce(n.fare, 0) - coalesce(o.fare, 0)).replace('-', '\u2212'),
                CASE WHEN o.n IS NULL THEN 'came with ' || n.fare WHEN n.n IS NULL THEN 'went with ' || o.fare
                ELSE o.fare || ' \u2192 ' || n.fare END
            FROM ({QUERY.replace("FROM flights", "FROM flights AT (VERSION => 1)")}) AS o
            FULL JOIN ({QUERY}) AS n ON o.carrier IS NOT DISTINCT FROM n.carrier WHERE o.fare IS DISTINCT FROM n.fare
            ORDER BY abs(coalesce(n.fare, 0) - coalesce(o.fare, 0)) DESC, coalesce(o.carrier, n.carrier) NULLS LAST LIMIT 20"""
        ).fetchall()
    _lab.write("charts.ipynb", [SETUP.replace("answers/", "charts/"), f"%%ducklake --compare 1 {last}\n{QUERY}"])
    page = _lab.open("charts.ipynb")
    page.set_viewport_size({"width": 1320, "height": 2000})
    run_all(page)
    yield page, expected
    close(page)


def test_charts_are_those_of_plain_sql_at_first_paint(
    lab: Lab, charts: tuple[Page, list[tuple[str, str, str]]], screenshot: Screenshot
) -> None:
    page, expected = charts
    output = page.locator(".jp-CodeCell").nth(1)
    expect(output.get_by_role("grid", name="Changed rows")).to_contain_text("C00")
    settle(page)
    first_paint(page)
    screenshot(page, "answers-chart")
    choice = output.get_by_role("combobox", name="Number that changed")
    expect(choice.locator("option")).to_have_text(["fare in 29 groups", "n in 4 groups"])
    other, chart = (output.get_by_role("region", name=f"Change of {name}") for name in ("n", "fare"))
    expect(other).to_be_hidden()
    choice.select_option("n in 4 groups")
    expect(other).to_be_visible()
    expect(chart).to_be_hidden()
    choice.select_option("fare in 29 groups")
    expect(output.get_by_text("9 more groups changed").locator("visible=true")).to_have_count(1)
    rows = [[cell.inner_text() for cell in row.locator("td").all()] for row in chart.locator("tbody tr").all()]
    assert [(row[0][2:], row[1], row[3]) for row in rows] == expected
    # bars are drawn to the lengths of the steps, by which the rows are ordered
    lengths = chart.locator("rect").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    assert len(lengths) == 20 and all(one >= other - 0.5 for one, other in pairwise(lengths))
    assert serious(page, ".dlk-gs") == []
    assert page.evaluate("window.hacked") is None


def test_charts_fit_a_narrow_page(lab: Lab, charts: tuple[Page, list[tuple[str, str, str]]]) -> None:
    page, _ = charts
    page.locator(".jp-CodeCell").nth(1).locator(".dlk-gs").evaluate("chart => { chart.style.width = '600px'; }")
    box = page.locator(".dlk-gs .dlk-scroll").locator("visible=true")
    assert box.evaluate("box => [box.scrollWidth <= box.clientWidth, box.clientWidth > 590]") == [True, True]
    page.locator(".dlk-gs").evaluate("chart => { chart.style.width = ''; }")


def test_a_bar_shows_the_rows_behind_its_group(
    lab: Lab, charts: tuple[Page, list[tuple[str, str, str]]], screenshot: Screenshot
) -> None:
    page, _ = charts
    output = page.locator(".jp-CodeCell").nth(1)
    output.get_by_role("combobox", name="Number that changed").select_option("n in 4 groups")
    chart = output.get_by_role("region", name="Change of n")
    behind = output.get_by_role("region", name="Rows behind the row")
    chart.get_by_text("+15", exact=True).click()
    expect(behind).to_contain_text("15 inserted")
    expect(behind).to_be_in_viewport()
    assert behind.locator(".dlk-gs").count() == 0
    screenshot(page, "answers-chart-behind")
    page.keyboard.press("ArrowDown")
    expect(chart.locator("td:focus")).to_have_text("+5")
    page.keyboard.press("Enter")
    expect(behind).to_contain_text("5 inserted")
    assert serious(page, ".dlk-gs", ".dlk-df-sources") == []
    behind.get_by_role("button", name="Close").click()
    expect(behind).to_be_hidden()
    expect(chart.locator("td:focus")).to_have_text("+5")
    assert page.evaluate("window.hacked") is None


def test_charts_stand_in_the_saved_notebook_and_its_page(
    lab: Lab, charts: tuple[Page, list[tuple[str, str, str]]]
) -> None:
    page, expected = charts
    save(page)
    saved = nbformat.read(lab.files / "charts.ipynb", 4)
    html = saved.cells[1].outputs[0].data["text/html"]
    assert html.count("<summary>") >= 2 and "<img" not in html and "dlk-pv-choosable" not in html
    # nbconvert's other templates ask the network for scripts
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(saved)
    (lab.files / "charts.html").write_text(f"<!doctype html><meta charset=utf-8>{body}")
    alone = page.context.new_page()
    alone.set_viewport_size({"width": 600, "height": 1600})
    alone.goto((lab.files / "charts.html").as_uri())
    chart = alone.get_by_role("region", name="Change of fare")
    expect(chart.locator("tbody tr")).to_have_count(len(expected))
    expect(chart).to_contain_text(expected[0][2])
    alone.get_by_text("n in 4 groups").click()
    expect(alone.get_by_role("region", name="Change of n")).to_contain_text("came with 15")
    assert alone.evaluate("window.hacked") is None
    alone.close()
