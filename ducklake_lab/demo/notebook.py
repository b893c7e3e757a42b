"""Executes a notebook on a demo lake."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ducklake_lab.errors import DuckLakeError, UsageError

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
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError
        from nbformat.sign import NotebookNotary
    except ImportError:
        raise UsageError('Executing notebooks needs nbclient; run: pip install "ducklake-lab[demo]".') from None
    document = nbformat.read(notebook, as_version=4)
    for cell in document.cells:
        cell.source = cell.source.replace(f"%ducklake connect {LAKE}", f"%ducklake connect {_quoted(uri)}")
        cell.source = cell.source.replace(LAKE, uri)
    code_cells = [cell for cell in document.cells if cell.cell_type == "code"]
    started = time.monotonic()
    report(f"Executing {notebook}, {len(code_cells)} cells")
    client = NotebookClient(
        document,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": target.parent}},
        extra_arguments=["--log-level=ERROR"],
    )

    def done(cell: nbformat.NotebookNode, cell_index: int, **_: object) -> None:
        if cell.cell_type == "code" and cell.source.strip():
            first = cell.source.strip().splitlines()[0]
            report(f"  {code_cells.index(cell) + 1:2d}/{len(code_cells)}  {time.monotonic() - started:5.1f} s  {first}")

    client.on_cell_executed = done
    try:
        client.execute()
    except CellExecutionError as error:
        failed = target.with_suffix(".failed.ipynb")
        nbformat.write(document, failed)
        raise DuckLakeError(f"A cell of {notebook} failed: {error.ename}: {error.evalue}; see {failed}.") from None
    nbformat.write(document, target)
    # JupyterLab strips styles and drawings from outputs of a notebook that this user has not signed
    NotebookNotary().sign(nbformat.read(target, as_version=4))


def _quoted(uri: str) -> str:
    return f'"{uri}"' if " " in uri else uri
