"""Takes the documentation's pictures: the executed quickstart notebook in JupyterLab, light and dark.

Needs Chromium; run it with `make screenshots`, which builds the demo first.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pictures import IMAGES, READY, ROOT, jupyterlab, notebook, open_notebook
from playwright.sync_api import Page, sync_playwright

from tests import chromium

SIZE = {"width": 1280, "height": 900}
#: The cells beside the sidebar.
SIDEBAR = (
    "%load_ext ducklake_lab",
    "%ducklake connect ducklake:flights.ducklake",
    """%%ducklake --engine duckdb
SELECT name AS airline, count(*) AS flights, round(avg(dep_delay), 1) AS minutes_late
FROM flights AT (VERSION => 12) JOIN airlines USING (carrier)
WHERE month = 1 -- one file of twelve
GROUP BY ALL ORDER BY minutes_late DESC LIMIT 8""",
)


def scroll_to(page: Page, text: str) -> None:
    """Brings the cell that contains a text to the top of the notebook."""
    cell = page.locator(".jp-Notebook .jp-Cell", has_text=text).first
    # cells that were never in view are not drawn yet: go down until this one is
    for _ in range(60):
        if cell.count():
            break
        page.mouse.wheel(0, 500)
        page.wait_for_timeout(150)
    cell.evaluate("node => node.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(1_500)


def open_sidebar(page: Page, address: str, folder: Path) -> None:
    """Runs a notebook on the demo lake and unfolds its lake in the sidebar: a schema, a table, the snapshots."""
    path = folder / "lake.ipynb"
    try:
        path.write_text(notebook(SIDEBAR))
        page.goto(f"{address}/lab/tree/{path.name}?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_function("window.jupyterapp?.commands.hasCommand('ducklake:show')", timeout=60_000)
        page.evaluate(
            f"""async () => {{
                {READY}
                await window.jupyterapp.commands.execute('notebook:run-all-cells');
                window.jupyterapp.commands.execute('ducklake:show');
            }}"""
        )
        panel = page.locator("#jp-ducklake-sidebar")
        for name in ("schema main", "table flights"):
            row = panel.get_by_role("treeitem", name=re.compile(f"^{name}"))
            row.wait_for(timeout=120_000)
            if row.get_attribute("aria-expanded") != "true":
                row.locator(".jp-DuckLake-caret").click()
        panel.get_by_role("treeitem", name=re.compile("^Snapshots")).click()
        page.wait_for_timeout(3_000)
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes the documentation's pictures.")
    parser.add_argument("--folder", type=Path, default=ROOT / "demo", help="holds the executed quickstart.ipynb")
    parser.add_argument("--output", type=Path, default=IMAGES)
    options = parser.parse_args()
    browser_path = chromium.required()
    options.output.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        theme = "-dark" if dark else ""
        with jupyterlab(options.folder.resolve(), dark=dark) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)  # type: ignore[arg-type]
            page.mouse.move(700, 450)
            open_notebook(page, address, "quickstart.ipynb", ".jp-OutputArea-output")
            page.wait_for_timeout(3_000)  # until its outputs are drawn
            for name, text in {
                "quickstart": "%ducklake snapshots",
                "result": "SELECT name AS airline",
                "diff": "%ducklake diff flights 12 13",
                "schema": "%ducklake schema",
            }.items():
                scroll_to(page, text)
                target = options.output / f"{name}{theme}.png"
                page.screenshot(path=target)
                print(target)
            open_sidebar(page, address, options.folder.resolve())
            page.screenshot(path=options.output / f"sidebar{theme}.png")
            print(options.output / f"sidebar{theme}.png")
            browser.close()


if __name__ == "__main__":
    main()
