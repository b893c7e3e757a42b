"""Marks below outputs whose tables have moved on, by a commit of another process, and without a kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import ducklake_lab as dl
from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, close, run_all, run_cell, save, serious
from tests.browser.sidebar import sources

pytestmark = pytest.mark.sampled(5, "browser")

LOAD = "%load_ext ducklake_lab"


def cells(lake: str) -> list[str]:
    return [
        LOAD,
        f"%ducklake connect ducklake:{lake}.ducklake",
        "%%ducklake\nCREATE TABLE IF NOT EXISTS birds AS SELECT 'teal' AS name, 330 AS weight;\n"
        "CREATE TABLE IF NOT EXISTS places AS SELECT 'pond' AS place",
        "%%ducklake\nSELECT name, weight FROM birds ORDER BY weight",
        "%%ducklake\nFROM places",
        "%%ducklake\nFROM birds AT (VERSION => 1)",
        "%ducklake preview birds",
        "magics = get_ipython().magics_manager.registry['DuckLakeMagics']\nmagics.session.sql('SELECT count(*) FROM birds')",
        "%%ducklake\nSET VARIABLE x = 1; SELECT sum(weight) AS all_of_them FROM birds",
    ]


def mark(page: Page, index: int) -> Locator:
    """The line below the outputs of a code cell."""
    return page.locator(".jp-CodeCell").nth(index).locator(".jp-DuckLake-mark")


def commit(lab: Lab, lake: str, *statements: str) -> None:
    """Commits from this process, which is not the kernel's."""
    with dl.connect(f"ducklake:{lab.files}/{lake}.ducklake", engine="duckdb") as session:
        for statement in statements:
            session.sql(statement)


def test_outputs_are_marked_and_run_again(wheel_lab: Lab, screenshot: Screenshot) -> None:
    wheel_lab.write("outputs.ipynb", cells("outputs"))
    page = wheel_lab.open("outputs.ipynb", whole=True)
    page.set_viewport_size({"width": 1280, "height": 1400})
    run_all(page)
    expect(page.locator(".jp-DuckLake-statusButton")).to_contain_text("snapshot 2")
    page.wait_for_timeout(1500)
    expect(page.locator(".jp-DuckLake-mark")).to_have_count(0)

    # the status bar and the marks follow another process
    commit(wheel_lab, "outputs", "INSERT INTO birds VALUES ('swan', 9800)")
    expect(mark(page, 3)).to_contain_text("birds is 1 snapshot ahead", timeout=5_000)
    expect(page.locator(".jp-DuckLake-statusButton")).to_contain_text("snapshot 3")
    commit(
        wheel_lab, "outputs", "UPDATE birds SET weight = 9900 WHERE name = 'swan'", "CALL outputs.flush_inlined_data()"
    )
    for index in (3, 6, 7, 8):
        expect(mark(page, index).get_by_role("status")).to_have_text("birds is 2 snapshots ahead")
    for index in (4, 5):
        expect(mark(page, index)).to_have_count(0)
    expect(mark(page, 3).get_by_role("button")).to_have_text(["Show the Diff", "Run Again", "Run All 4 Stale"])
    expect(mark(page, 6).get_by_role("button").last).to_have_text("Run 3 From Here")
    # it writes too, so nobody runs it but the user
    expect(mark(page, 8).get_by_role("button", name="Run Again")).to_have_count(0)
    first_paint(page, height=1400)
    assert serious(page, ".jp-DuckLake-mark") == []
    screenshot(page, "outputs")

    mark(page, 3).get_by_role("button", name="Show the Diff").click()
    expect(page.locator(".jp-CodeCell").nth(4)).to_contain_text("%ducklake diff outputs.main.birds 2 5")
    expect(page.locator(".jp-CodeCell").nth(4).locator(".jp-OutputArea-output").last).to_contain_text("swan")
    expect(mark(page, 4)).to_have_count(0)

    mark(page, 3).get_by_role("button", name="Run Again").click()
    expect(mark(page, 3)).to_have_count(0)
    expect(page.locator(".jp-CodeCell").nth(3).locator(".jp-OutputArea-output")).to_contain_text("9900")
    expect(mark(page, 7)).to_be_visible()

    # Python runs after a question, and what writes not at all
    mark(page, 7).get_by_role("button", name="Run All 3 Stale").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 cell holds Python, which runs as a whole.")
    expect(page.get_by_role("dialog")).to_contain_text("1 cell writes too and is left out.")
    screenshot(page, "outputs-dialog")
    page.get_by_role("button", name="Run 1 Without Python").click()
    expect(mark(page, 7)).to_have_count(0)
    expect(mark(page, 8)).to_be_visible()
    expect(mark(page, 9)).to_be_visible()
    run_cell(page, 9)
    expect(mark(page, 9)).to_have_count(0)

    # gone, renamed, replaced
    commit(wheel_lab, "outputs", "ALTER TABLE birds RENAME TO fowl", "CREATE OR REPLACE TABLE places AS SELECT 1 AS i")
    expect(mark(page, 3).get_by_role("status")).to_have_text("birds is fowl now")
    expect(mark(page, 5).get_by_role("status")).to_have_text("places was replaced")
    expect(mark(page, 5).get_by_role("button", name="Show the Diff")).to_have_count(0)
    save(page)
    close(page, window=True)


def test_without_a_kernel_outputs_name_their_snapshot(wheel_lab: Lab, screenshot: Screenshot) -> None:
    path = wheel_lab.write("reopened.ipynb", cells("reopened"))
    page = wheel_lab.open("reopened.ipynb", whole=True, fresh=True)
    run_all(page)
    save(page)
    before = records(path)
    assert [bool(found) for found in before] == [False, False, False, True, True, True, True, True, True]
    close(page, window=True)
    commit(wheel_lab, "reopened", "INSERT INTO birds VALUES ('swan', 9800)")

    page = wheel_lab.open("reopened.ipynb", whole=True, fresh=True)
    page.set_viewport_size({"width": 1280, "height": 1400})
    expect(mark(page, 3)).to_have_text("as of snapshot 2")
    expect(mark(page, 5)).to_have_text("as of snapshot 1")
    expect(page.locator(".jp-DuckLake-mark").get_by_role("button")).to_have_count(0)
    first_paint(page, height=1400)
    assert serious(page, ".jp-DuckLake-mark") == []
    screenshot(page, "outputs-reopened")

    # the new kernel compares as soon as it has the lake
    for index in (0, 1):
        run_cell(page, index)
    expect(mark(page, 3).get_by_role("status")).to_have_text("birds is 1 snapshot ahead")
    expect(mark(page, 4)).to_have_count(0)
    expect(mark(page, 5)).to_have_count(0)
    save(page)
    assert records(path) == before
    # and forgets with it
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(mark(page, 3)).to_have_text("as of snapshot 2")
    close(page, window=True)


def test_the_toolbar_says_that_an_old_snapshot_is_read(wheel_lab: Lab, screenshot: Screenshot) -> None:
    commit(wheel_lab, "old", "CREATE TABLE t AS FROM range(3)", "DELETE FROM t WHERE range = 1")
    wheel_lab.write(
        "old.ipynb", [LOAD, "%ducklake connect ducklake:old.ducklake --at 1", "%ducklake SELECT count(*) FROM t", ""]
    )
    page = wheel_lab.open("old.ipynb", whole=True)
    pinned = page.locator(".jp-NotebookPanel-toolbar .jp-DuckLake-pinned")
    run_all(page)
    expect(pinned.get_by_role("button")).to_have_text("old as of snapshot 1")
    assert serious(page, ".jp-DuckLake-pinned") == []
    # what reads a snapshot that was named does not age
    commit(wheel_lab, "old", "INSERT INTO t VALUES (7)")
    page.wait_for_timeout(3000)
    expect(page.locator(".jp-DuckLake-mark")).to_have_count(0)
    screenshot(page, "outputs-pinned")
    page.locator(".jp-CodeCell").nth(3).locator(".cm-content").click()
    page.keyboard.insert_text("%ducklake disconnect old")
    page.keyboard.press("Control+Enter")
    expect(pinned).to_be_hidden()
    close(page, window=True)


def test_a_pin_is_kept_in_the_notebook(wheel_lab: Lab, screenshot: Screenshot) -> None:
    with dl.connect(f"ducklake:{wheel_lab.files}/kept.ducklake", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS FROM range(3); DELETE FROM t WHERE range = 1")
        session.tag("q3-close", 1)
    count = "%ducklake SELECT count(*) AS n FROM t"
    path = wheel_lab.write(
        "kept.ipynb", [LOAD, "%ducklake connect ducklake:kept.ducklake", "%ducklake pin q3-close", count]
    )
    page = wheel_lab.open("kept.ipynb", whole=True)
    pinned = page.locator(".jp-NotebookPanel-toolbar .jp-DuckLake-pinned")
    run_all(page)
    expect(pinned.get_by_role("button")).to_have_text("kept as of q3-close (snapshot 1)")
    page.wait_for_function(
        "window.jupyterapp.shell.currentWidget.context.model.getMetadata('ducklake')?.pins?.length === 1"
    )
    save(page)
    (pin,) = json.loads(path.read_text())["metadata"]["ducklake"]["pins"]
    assert (pin["alias"], pin["at"], sorted(pin)) == ("kept", "q3-close", ["alias", "at", "lake"])
    # another kernel reads it, though no cell pins
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(pinned).to_have_text("kept pinned at q3-close")
    screenshot(page, "pin-kept")
    for index in (0, 1, 3):
        run_cell(page, index)
    expect(page.locator(".jp-CodeCell").nth(3).locator(".jp-OutputArea-output")).to_contain_text("snapshot 1")
    expect(pinned.get_by_role("button")).to_have_text("kept as of q3-close (snapshot 1)")
    page.locator(".jp-CodeCell").nth(2).locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("%ducklake pin --off")
    page.keyboard.press("Control+Enter")
    expect(pinned).to_be_hidden()
    page.wait_for_function("window.jupyterapp.shell.currentWidget.context.model.getMetadata('ducklake') === undefined")
    close(page, window=True)


def test_records_of_anybody_do_no_harm(wheel_lab: Lab) -> None:
    path = wheel_lab.write("hostile.ipynb", [LOAD, "%ducklake connect ducklake:hostile.ipynb.ducklake", "", "", "", ""])
    notebook = json.loads(path.read_text())
    entry = {"schema": ["main"], "name": "<img src=x onerror=alert(1)>\u202e\nimport os", "id": 1, "uuid": "x"}
    state = {"lake": "x", "alias": "<b>y</b>", "snapshot": 7, "time": "", "tables": [entry]}
    for at, record in enumerate(
        ({"form": 1, "reads": [state]}, {"form": 1, "reads": [{**state, "snapshot": "7"}]}, {"form": 9}, "text"), 2
    ):
        output = {"output_type": "display_data", "data": {"text/plain": "shown"}, "metadata": {"ducklake": record}}
        notebook["cells"][at]["outputs"] = [output]
        notebook["cells"][at]["source"] = "print('ran')"
    path.write_text(json.dumps(notebook))
    page = wheel_lab.open("hostile.ipynb", whole=True)
    expect(mark(page, 2)).to_have_text("as of snapshot 7")
    for index in (0, 1):
        run_cell(page, index)
    expect(page.locator(".jp-DuckLake-statusButton")).to_contain_text("snapshot 0")
    expect(mark(page, 2)).to_have_text("as of snapshot 7")
    expect(mark(page, 2).get_by_role("status")).to_have_attribute("title", re.compile("not attached"))
    expect(page.locator(".jp-DuckLake-mark")).to_have_count(1)
    expect(page.locator(".jp-DuckLake-mark img")).to_have_count(0)
    assert sources(page)[2] == "print('ran')"
    close(page, window=True)


def test_changes_that_leave_the_answer_alone_are_no_news(wheel_lab: Lab, screenshot: Screenshot) -> None:
    path = wheel_lab.write(
        "parts.ipynb",
        [
            LOAD,
            "%ducklake connect ducklake:parts.ducklake",
            "%%ducklake\nCREATE TABLE IF NOT EXISTS birds AS SELECT 'teal' AS name, 330 AS weight",
            "%%ducklake\nSELECT name FROM birds WHERE weight < 500",
            "%%ducklake\nSELECT count(*) AS n FROM birds",
            "%%ducklake\nFROM birds",
        ],
    )
    page = wheel_lab.open("parts.ipynb", whole=True)
    page.set_viewport_size({"width": 1280, "height": 1000})
    run_all(page)
    commit(wheel_lab, "parts", "ALTER TABLE birds ADD COLUMN wings INTEGER DEFAULT 2")
    expect(mark(page, 5).get_by_role("status")).to_have_text("birds is 1 snapshot ahead", timeout=5_000)
    for index in (3, 4):
        expect(mark(page, index)).to_have_count(0)
    commit(wheel_lab, "parts", "INSERT INTO birds VALUES ('swan', 9800, 2)")
    expect(mark(page, 4).get_by_role("status")).to_have_text("birds is 1 snapshot ahead", timeout=5_000)
    expect(mark(page, 5).get_by_role("status")).to_have_text("birds is 2 snapshots ahead")
    expect(mark(page, 3)).to_have_count(0)
    first_paint(page, height=1000)
    screenshot(page, "outputs-parts")
    commit(wheel_lab, "parts", "INSERT INTO birds VALUES ('wren', 9, 2)")
    expect(mark(page, 3).get_by_role("status")).to_have_text("birds is 1 snapshot ahead", timeout=5_000)
    save(page)
    # the record has ids, and no value that the cell does not show
    *_, light, counted, all_of_it = records(path)
    tables = [one[0]["reads"][0]["tables"][0] for one in (light, counted, all_of_it)]  # type: ignore[index]
    assert [(table.get("columns"), "where" in table) for table in tables] == [
        ([1, 2], True),
        ([], False),
        ("*", False),
    ]
    close(page, window=True)


def test_cells_below_a_changed_variable_are_marked_and_run(wheel_lab: Lab, screenshot: Screenshot) -> None:
    path = wheel_lab.write(
        "variables.ipynb",
        [
            LOAD,
            "%ducklake connect ducklake:variables.ducklake",
            "light = 400",
            "%%ducklake\nCREATE TABLE IF NOT EXISTS birds AS FROM (VALUES ('teal', 330), ('swan', 9800)) AS b(name, weight)",
            "%%ducklake\nSELECT name FROM birds WHERE weight < :light",
            "%%ducklake -o pandas heavy <<\nSELECT * FROM birds WHERE weight > :light",
            "%%ducklake\nSELECT count(*) AS n FROM heavy",
            "%%ducklake\nINSERT INTO birds SELECT 'wren', :light WHERE false",
            "print('python')\n%ducklake SELECT :light AS again",
            "light = light",
        ],
    )
    page = wheel_lab.open("variables.ipynb", whole=True)
    page.set_viewport_size({"width": 1280, "height": 1400})
    run_all(page)
    expect(page.locator(".jp-DuckLake-statusButton")).to_contain_text("snapshot 1")

    def assign(value: int, cell: int = 2) -> None:
        notebook = "window.jupyterapp.shell.currentWidget.content"
        page.evaluate(f"{notebook}.widgets[{cell}].model.sharedModel.setSource('light = {value}')")
        run_cell(page, cell)

    assign(400)
    page.wait_for_timeout(1500)
    expect(page.locator(".jp-DuckLake-mark")).to_have_count(0)
    assign(10_000)
    for index in (4, 5, 7, 8):
        expect(mark(page, index).get_by_role("status")).to_have_text("light has changed")
    expect(mark(page, 6)).to_have_count(0)
    buttons = ["Run Again", "Run 4 Below Changed Variables"]
    expect(mark(page, 4).get_by_role("button")).to_have_text(buttons)
    expect(mark(page, 7).get_by_role("button")).to_have_text(buttons[1:])
    first_paint(page, height=1400)
    assert serious(page, ".jp-DuckLake-mark") == []
    screenshot(page, "outputs-variables")

    mark(page, 5).get_by_role("button", name=buttons[1]).click()
    expect(page.get_by_role("dialog")).to_contain_text("Run 3 cells below a changed variable?")
    expect(page.get_by_role("dialog")).to_contain_text("1 cell holds Python, which runs as a whole.")
    expect(page.get_by_role("dialog")).to_contain_text("1 cell writes too and is left out.")
    screenshot(page, "outputs-variables-dialog")
    page.get_by_role("button", name="Run 2 Without Python").click()
    for index in (4, 5, 6):
        expect(mark(page, index)).to_have_count(0)
    # heavy was made anew, and so was what counts its rows
    expect(page.locator(".jp-CodeCell").nth(6).locator(".jp-OutputArea-output")).to_contain_text("0")
    expect(page.locator(".jp-CodeCell").nth(4).locator(".jp-OutputArea-output")).to_contain_text("swan")
    for index in (7, 8):
        expect(mark(page, index).get_by_role("status")).to_have_text("light has changed")

    # by the command, and Python too where the user says so
    assign(400)
    for index in (7, 8):
        expect(mark(page, index)).to_have_count(0)
    assign(20_000)
    expect(mark(page, 8)).to_be_visible()
    page.evaluate("void window.jupyterapp.commands.execute('ducklake:run-changed')")
    page.get_by_role("button", name="Run 3", exact=True).click()
    for index in (4, 5, 6, 8):
        expect(mark(page, index)).to_have_count(0)
    expect(page.locator(".jp-CodeCell").nth(8).locator(".jp-OutputArea-output").last).to_contain_text("20000")
    expect(mark(page, 7)).to_be_visible()

    # a cell below changes nothing above it, and a page that is loaded again knows what the kernel knows
    save(page)
    page.reload()
    expect(mark(page, 7).get_by_role("status")).to_have_text("light has changed", timeout=30_000)
    assign(5, 9)
    page.wait_for_timeout(1500)
    expect(mark(page, 4)).to_have_count(0)
    assign(6)
    expect(mark(page, 4)).to_be_visible()
    # values are in no notebook, and another kernel knows nothing of them
    save(page)
    metadata = json.dumps(records(path))
    assert "light" not in metadata and "20000" not in metadata
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(mark(page, 4)).to_have_text("as of snapshot 1")
    expect(mark(page, 5)).to_have_count(0)
    # the command says so, before the magics are loaded again and after
    notice = page.locator(".Toastify__toast")
    unknown = "this kernel has not run {} cells of SQL and does not know the values that they read; run them once, or all cells."
    page.evaluate("void window.jupyterapp.commands.execute('ducklake:run-changed')")
    expect(notice).to_contain_text(unknown.format(5))
    first_paint(page, height=1400)
    screenshot(page, "outputs-variables-unknown")
    notice.get_by_role("button", name="Hide").first.click()
    expect(notice).to_have_count(0)
    for cell in (0, 1, 2, 4):
        run_cell(page, cell)
    assign(7)
    expect(mark(page, 4).get_by_role("status")).to_have_text("light has changed")
    page.evaluate("void window.jupyterapp.commands.execute('ducklake:run-changed')")
    expect(notice).to_contain_text(unknown.format(4))
    # what is known is run all the same
    expect(mark(page, 4)).to_have_count(0)
    expect(page.locator(".jp-CodeCell").nth(4).locator(".jp-OutputArea-output")).not_to_contain_text("swan")
    close(page, window=True)


def records(path: Path) -> list[list[object]]:
    """The records that a saved notebook has, for each cell."""
    notebook = json.loads(path.read_text())
    return [
        [output["metadata"]["ducklake"] for output in cell["outputs"] if "ducklake" in output.get("metadata", {})]
        for cell in notebook["cells"]
    ]
