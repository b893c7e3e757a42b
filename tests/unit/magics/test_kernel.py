"""The magics in a real kernel: what the saved notebook holds."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

pytestmark = pytest.mark.sampled(3)

SETUP = """
import time
import pyarrow as pa
from types import SimpleNamespace
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError
from ducklake_lab.magics import DuckLakeMagics
from ducklake_lab.session.rows.result import Result
from ducklake_lab.spark.progress import Progress

class Rows(Result):
    def spark(self): return "frame"

class Session:
    current_lake = SimpleNamespace(
        alias="lake", title="lake", branch=None, pinned=None, created=False, location=SimpleNamespace(path=None)
    )
    def tables(self, at=None): return []
    def expect(self, size): pass
    def current_snapshot(self): return SimpleNamespace(snapshot_id=1)
    def sql(self, text, params=None, **choices):
        if "wrong" in text:
            raise BindError("no column (line 1, column 8)", line=1, column=8)
        self.on_progress(Progress(0, 1, 1, 4, 0.1))
        time.sleep(0.9)
        if "interrupt" in text:
            raise KeyboardInterrupt
        return Rows(InMemory(pa.table({"n": [1]})))

ip = get_ipython()
ip.register_magics(DuckLakeMagics(ip, connect=lambda uri, **options: Session()))
"""
CONNECT = "%ducklake connect ducklake:x.ducklake"


def run(*cells: str, path: Path) -> list[nbformat.NotebookNode]:
    """The code cells after running them all; a failing one ends the run."""
    sources = (SETUP, CONNECT, *cells)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(path)}})
    with contextlib.suppress(CellExecutionError):
        client.execute()
    found: list[nbformat.NotebookNode] = notebook.cells[2:]
    return found


@pytest.fixture(autouse=True)
def _source(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


@pytest.mark.slow
def test_progress_is_shown_while_it_runs_and_gone_when_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []
    output = NotebookClient.process_message

    def watch(client: NotebookClient, message: dict, *args: object) -> object:  # type: ignore[type-arg]
        data = message["content"].get("data", {})
        if message["msg_type"] in ("display_data", "update_display_data"):
            seen.append(data["text/plain"])
        return output(client, message, *args)

    monkeypatch.setattr(NotebookClient, "process_message", watch)
    cell, named, failed = run(
        "%%ducklake\nSELECT 1;", "%%ducklake name <<\nSELECT 1", "%%ducklake\nSELECT interrupt", path=tmp_path
    )
    assert any(text.startswith("stage 1/1 · 1 of 4 tasks · 0.") for text in seen)
    (shown,) = cell.outputs
    assert shown.output_type == "execute_result"
    assert "1 row" in shown.data["text/html"]
    assert named.outputs == []
    (error,) = failed.outputs
    assert error.ename == "KeyboardInterrupt"
    assert len(error.traceback) == 1
    assert "Interrupted:" in error.traceback[0]


@pytest.mark.slow
def test_an_error_ends_the_run_in_a_few_lines(tmp_path: Path):
    failed, after = run("%%ducklake\nSELECT wrong", "1 + 1", path=tmp_path)
    (error,) = failed.outputs
    assert (error.ename, error.evalue) == ("BindError", "no column (line 1, column 8)")
    assert len(error.traceback) == 2
    assert after.execution_count is None


LAKE = """%load_ext ducklake_lab
%config DuckLakeMagics.engine = "duckdb"
%ducklake connect ducklake:x.ducklake"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[BlockingKernelClient]:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def published(kernel: BlockingKernelClient, code: str, grids: int) -> list[dict[str, Any]]:
    """Return the messages that a cell makes the kernel publish, until it is idle and has opened so many grids."""
    request = kernel.execute(code)
    found: list[dict[str, Any]] = []

    def idle() -> bool:
        return any(
            one["msg_type"] == "status" and one["content"]["execution_state"] == "idle" for one in found
        )  # of the cell: only its messages are kept

    while not idle() or len(mounts(found)) < grids:
        message = kernel.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == request or message["msg_type"] == "comm_open":
            found.append(message)
    return found


def mounts(found: list[dict[str, Any]]) -> list[str]:
    """Return the elements in which grids were opened."""
    states = [one["content"]["data"].get("state", {}) for one in found if one["msg_type"] == "comm_open"]
    return [state["mount"] for state in states if "mount" in state]


def tables(found: list[dict[str, Any]]) -> list[str]:
    """Return the elements of the tables that were shown."""
    shown = [one["content"]["data"] for one in found if one["msg_type"] in ("execute_result", "display_data")]
    return [
        re.match('<div id="([^"]*)">', data["text/html"])[1] for data in shown if "<table" in data.get("text/html", "")
    ]  # type: ignore[index]


@pytest.mark.slow
def test_a_grid_is_made_when_its_table_is_out_and_the_cell_is_done(kernel: BlockingKernelClient):
    published(kernel, LAKE, 0)
    first = published(
        kernel,
        "display(get_ipython().run_cell_magic('ducklake', '', 'SELECT 1 AS i'))\n"
        "import sys; print([name for name in ('anywidget', 'ducklake_lab.widgets.mounted') if name in sys.modules])",
        1,
    )
    assert [one["content"]["text"].strip() for one in first if one["msg_type"] == "stream"] == ["[]"]
    kinds = [one["content"]["execution_state"] if one["msg_type"] == "status" else one["msg_type"] for one in first]
    assert kinds.index("display_data") < kinds.index("idle") < kinds.index("comm_open")
    assert tables(first) == mounts(first)
    several = published(
        kernel, "for n in range(3): display(get_ipython().run_line_magic('ducklake', f'SELECT {n} AS n'))", 3
    )
    assert tables(several) == mounts(several) and len(set(mounts(several))) == 3
    named = published(kernel, "%%ducklake -o arrow rows = <<\nSELECT 1 AS i", 1)
    assert tables(named) == mounts(named)
    in_python = published(
        kernel, "get_ipython().magics_manager.registry['DuckLakeMagics'].session.sql('SELECT 1 AS i')", 1
    )
    assert tables(in_python) == mounts(in_python)


@pytest.mark.slow
def test_an_executed_notebook_holds_no_state_of_grids(tmp_path: Path):
    cells = [
        nbformat.v4.new_code_cell(source) for source in (LAKE, "%%ducklake\nSELECT 1 AS i", "%%ducklake\nSELECT 2 AS i")
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert "widgets" not in notebook.metadata
    assert all("<table" in cell.outputs[0].data["text/html"] for cell in notebook.cells[1:])


@pytest.mark.slow
def test_outputs_keep_their_record(tmp_path: Path) -> None:
    cells = (
        LAKE,
        "%%ducklake\nCREATE TABLE t AS SELECT i FROM range(3) AS r(i)",
        "%%ducklake\nFROM t",
        "%ducklake preview t",
        "%config DuckLakeMagics.record_reads = False",
        "%%ducklake\nFROM t",
        "%config DuckLakeMagics.record_reads = True",
        "%%ducklake --no-grid\nFROM t",
        "%%ducklake --preview\nDELETE FROM t WHERE i = 0",
        "%ducklake COMMIT",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    nbformat.validate(notebook)
    records = [[output.metadata.get("ducklake") for output in cell.outputs] for cell in notebook.cells]
    assert [bool(found) and found[-1] is not None for found in records] == [
        False, False, True, True, False, False, False, True, True, False
    ]  # fmt: skip
    assert records[2] == records[7] and records[2][0]["reads"][0]["snapshot"] == 1
    (preview,) = notebook.cells[8].outputs
    assert "Committed" in preview.data["text/html"]
    assert [state.get("uncommitted", False) for state in preview.metadata["ducklake"]["reads"]] == [False, True]
    html, _ = HTMLExporter().from_notebook_node(notebook)
    assert "snapshot 1" in html
