"""Takes the documentation's pictures: the executed quickstart notebook in JupyterLab, light and dark.

Needs Chromium; run it with `make screenshots`, which builds the demo first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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


def chromium() -> str:
    """Where it is installed."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit("No Chromium found; install it with the system's package manager.")
    return found


@contextmanager
def jupyterlab(folder: Path, *, dark: bool) -> Iterator[str]:
    """JupyterLab on a folder, with settings of its own; gives its address."""
    with tempfile.TemporaryDirectory() as state:
        settings = Path(state) / "settings" / "@jupyterlab"
        for name, values in {
            "apputils-extension/themes": {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"},
            "apputils-extension/notification": {"checkForUpdates": False, "fetchNews": "false"},
        }.items():
            file = settings / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0",
            "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
            f"--LabApp.user_settings_dir={Path(state) / 'settings'}", f"--LabApp.workspaces_dir={state}/workspaces",
        ]  # fmt: skip
        environment = {**os.environ, "JUPYTER_RUNTIME_DIR": f"{state}/runtime"}
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stderr is not None
            address = next(
                (found[0] for line in server.stderr if (found := re.search(r"http://(localhost|127\S+):\d+", line))),
                None,
            )
            if address is None:
                raise SystemExit("JupyterLab did not start.")
            yield address
        finally:
            server.terminate()
            server.wait(20)


def open_notebook(page: Page, address: str, name: str) -> None:
    """Opens a notebook and waits until its outputs are drawn; the side bar is closed."""
    page.goto(f"{address}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output", timeout=60_000)
    page.keyboard.press("Control+b")
    page.wait_for_timeout(3_000)


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


def notebook(sources: Sequence[str]) -> str:
    """A notebook of code cells as JSON."""
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "id": f"c{at}", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for at, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


def open_sidebar(page: Page, address: str, folder: Path) -> None:
    """Runs a notebook on the demo lake and unfolds its lake in the sidebar: a schema, a table, the snapshots."""
    path = folder / "lake.ipynb"
    try:
        path.write_text(notebook(SIDEBAR))
        page.goto(f"{address}/lab/tree/{path.name}?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_function("window.jupyterapp?.commands.hasCommand('ducklake:show')", timeout=60_000)
        page.evaluate(
            """async () => {
                const panel = window.jupyterapp.shell.currentWidget;
                await panel.context.ready;
                await panel.sessionContext.ready;
                await panel.sessionContext.session.kernel.info;
                await window.jupyterapp.commands.execute('notebook:run-all-cells');
                window.jupyterapp.commands.execute('ducklake:show');
            }"""
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
    browser_path = chromium()
    options.output.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        theme = "-dark" if dark else ""
        with jupyterlab(options.folder.resolve(), dark=dark) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)  # type: ignore[arg-type]
            page.mouse.move(700, 450)
            open_notebook(page, address, "quickstart.ipynb")
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
