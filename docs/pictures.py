"""Parts of the scripts that take the documentation's pictures: a JupyterLab, notebooks, and checks by SQL."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

import ducklake_lab as dl

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
_KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
#: Waits in the page until the notebook and its kernel are there; `panel` is the notebook's.
READY = """const panel = window.jupyterapp.shell.currentWidget;
await panel.context.ready;
await panel.sessionContext.ready;
await panel.sessionContext.session.kernel.info;"""


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


def cell(source: str, name: str, kind: str = "code") -> dict[str, object]:
    """A cell of a notebook as JSON.

    Args:
        name: the cell's id.
        kind: code or markdown.
    """
    found: dict[str, object] = {"cell_type": kind, "id": name, "source": source, "metadata": {}}
    return found | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def notebook(cells: Sequence[str | dict[str, object]]) -> str:
    """A notebook as JSON, made of cells or of sources of code."""
    made = [cell(one, f"c{at}") if isinstance(one, str) else one for at, one in enumerate(cells)]
    return json.dumps({"cells": made, "metadata": _KERNEL, "nbformat": 4, "nbformat_minor": 5})


def open_notebook(page: Page, address: str, name: str, awaited: str = ".jp-Cell") -> None:
    """Opens a notebook and closes the side bar.

    Args:
        awaited: what of the notebook is waited for.
    """
    page.goto(f"{address}/lab/tree/{name}?reset")
    page.wait_for_selector(f".jp-Notebook {awaited}", timeout=60_000)
    page.keyboard.press("Control+b")


def check(session: dl.Session, name: str, queries: Sequence[str], text: str) -> None:
    """Raises where a value that SQL gives is not in a text; numbers may have commas there.

    Args:
        name: what shows the text, for the error.
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    for query in queries:
        values = [value for row in session.sql(query).fetchall() for value in row]
        for value in values or [None]:
            if value is None or not re.search(rf"(?<![\d.]){re.escape(str(value))}(?!\.?\d)", plain):
                raise SystemExit(f"{name} does not show {value}, which this gives: {query}\n{text}")
