"""Every view in a real JupyterLab, light and dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.first_paint import first_paint
from tests.browser.lab import Lab, Screenshot, brightness, close, run_all, run_cell, serious, themes, wait_for_kernel

pytestmark = pytest.mark.sampled(5, "browser")

CELLS = (
    "from IPython.display import HTML\nfrom ducklake_lab.widgets import diff, files, schema\n"
    "from tests.browser import samples",
    "HTML(diff.render(samples.deleted()))",
    "HTML(diff.render(samples.updated()))",
    "samples.files()",
    "schema.build('flights', samples.tables(), 17)",
    "samples.history()",
)


def colours(page: Page) -> list[list[str]]:
    """The colours of everything in the views."""
    found: list[list[str]] = page.locator(".jp-OutputArea-output .dlk, .jp-OutputArea-output .dlk *").evaluate_all(
        """nodes => nodes.map(node => {
            const { color, backgroundColor, borderColor, fill, stroke } = getComputedStyle(node);
            return [node.tagName, color, backgroundColor, borderColor, fill, stroke];
        })"""
    )
    return found


def test_text_contrasts_with_the_page(lab: Lab, screenshot: Screenshot):
    lab.write("views.ipynb", CELLS)
    page = lab.open("views.ipynb", theme="dark")
    # high enough for all of it: axe leaves out all colours of a page where the middle of a text is scrolled out of view
    page.set_viewport_size({"width": 1320, "height": 4400})
    run_all(page)
    page.wait_for_function("document.querySelectorAll('.jp-OutputArea-output .dlk').length === 5")
    first_paint(page)
    screenshot(page, "views")
    shown = {}
    for theme in themes(page):
        text = brightness(page.locator(".jp-OutputArea-output .dlk").first, "color")
        background = brightness(page.locator(".jp-Notebook"), "backgroundColor")
        assert abs(text - background) > 150
        assert (text > background) == (theme == "dark")
        shown[theme] = colours(page)
    assert serious(page, ".jp-OutputArea-output .dlk") == []
    assert colours(page) == shown["dark"] != shown["light"]
    # JupyterLab's own way to the other theme leads to the same colours as that of the tests
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})")
    page.wait_for_function("document.body.dataset.jpThemeName === 'JupyterLab Light'")
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)
    assert colours(page) == shown["light"]
    # and axe finds what cannot be read in one of them: in one view, as the five take long
    page.locator(".jp-OutputArea-output .dlk").last.evaluate("node => { node.id = 'looked-at'; }")
    page.add_style_tag(content="body[data-jp-theme-light=false] .dlk * { color: #333 !important; }")
    found = [(theme, rule) for theme, rule, *_ in serious(page, "#looked-at")]
    assert found == [("dark", "color-contrast")]
    close(page, window=True)


def test_errors_are_one_line_and_stop_the_run(lab: Lab, screenshot: Screenshot):
    lab.write(
        "errors.ipynb",
        [
            "%load_ext ducklake_lab\n%ducklake connect ducklake:errors.ducklake --data-path errors/",
            "%%ducklake\nSELECT *\nFROM nothing_here",
            "never = 'reached'",
            "%%ducklake --dialect spark\nSELECT sum(sqrt(id)) FROM range(0, 1000000000000, 1, 4)",
            "%%ducklake --dialect spark\nSELECT count(*) + 40 AS still FROM range(2)",
        ],
    )
    page = lab.open("errors.ipynb")
    run_all(page)
    outputs = page.locator(".jp-CodeCell .jp-OutputArea-output")
    assert "errors.ducklake · created · snapshot 0 · 1 schema · 0 tables · 0 rows" in outputs.nth(0).inner_text()
    shown = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output").inner_text()
    assert "nothing_here" in shown
    assert "Traceback" not in shown
    assert len(shown.strip().splitlines()) <= 3
    assert page.locator(".jp-CodeCell .jp-InputPrompt").nth(2).inner_text().strip() in ("[ ]:", "")
    screenshot(page, "errors")

    # a statement that runs is cancelled by the kernel's interrupt: one line, and the session goes on
    run_cell(page, 3)
    running = page.locator(".jp-CodeCell").nth(3).locator(".jp-OutputArea-output")
    expect(running.get_by_role("status")).to_contain_text("stage", timeout=90_000)
    screenshot(page, "progress")
    page.evaluate("window.jupyterapp.commands.execute('notebook:interrupt-kernel')")
    expect(running).to_have_text(re.compile(r"^\s*Interrupted: the running statement was cancelled\.\s*$"))
    expect(page.locator(".jp-CodeCell .jp-InputPrompt").nth(3)).not_to_contain_text("*")
    wait_for_kernel(page)
    run_cell(page, 4)
    expect(page.locator(".jp-CodeCell").nth(4).locator(".jp-OutputArea-output")).to_contain_text("42", timeout=60_000)
    screenshot(page, "interrupted")
    close(page)
