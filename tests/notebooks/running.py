"""Runs notebooks on a copy of the demo lake."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode


def execute(document: NotebookNode, folder: Path) -> NotebookNode:
    """Executes a notebook in place, in a folder; errors are those of the kernel."""
    client = NotebookClient(document, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}})
    return client.execute()


def execute_file(notebook: Path, demo_lake: Path, folder: Path) -> NotebookNode:
    """Executes a copy of a notebook in `folder/notebooks`, with the demo lake's copy in `folder/demo`."""
    shutil.copytree(demo_lake, folder / "demo")
    (folder / "notebooks").mkdir()
    return execute(nbformat.read(notebook, as_version=4), folder / "notebooks")


def text_of(cell: NotebookNode) -> str:
    """All that a cell printed and showed, HTML included."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append("\n".join(output.traceback))
        else:
            parts.extend(str(value) for kind, value in output.data.items() if kind.startswith("text/"))
    return "\n".join(parts)
