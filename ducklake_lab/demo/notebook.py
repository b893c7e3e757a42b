"""Executes a notebook on a demo lake."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.notebooks import running

#: How notebooks of the repository name the demo lake.
LAKE = "ducklake:../demo/flights.ducklake"


def execute(notebook: Path, target: Path, uri: str, report: Callable[[str], None] = print) -> None:
    """Runs a copy of the notebook in the target's folder and writes it with its outputs.

    Args:
        uri: the lake's, as it holds in that folder; takes the place of the demo lake's in the cells.

    Raises:
        UsageError: nbclient is not installed.
        DuckLakeError: a cell failed; the cells before it are written to a file that ends in `.failed.ipynb`.
    """
    document = running.read(notebook)
    for cell in document.cells:
        cell.source = cell.source.replace(f"%ducklake connect {LAKE}", f"%ducklake connect {_quoted(uri)}")
        cell.source = cell.source.replace(LAKE, uri)
    code_cells = [cell for cell in document.cells if cell.cell_type == "code"]
    started = time.monotonic()
    report(f"Executing {notebook}, {len(code_cells)} cells")

    def done(cell: Any) -> None:
        if cell.cell_type == "code" and cell.source.strip():
            first = cell.source.strip().splitlines()[0]
            report(f"  {code_cells.index(cell) + 1:2d}/{len(code_cells)}  {time.monotonic() - started:5.1f} s  {first}")

    error = running.execute(document, target.parent, on_cell=done)
    if error is not None:
        failed = target.with_suffix(".failed.ipynb")
        running.write(document, failed)
        raise DuckLakeError(f"A cell of {notebook} failed: {error}; see {failed}.")
    running.write(document, target)


def _quoted(uri: str) -> str:
    return f'"{uri}"' if " " in uri else uri
