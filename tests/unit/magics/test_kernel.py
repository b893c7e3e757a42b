"""The magics in a real kernel: what the saved notebook holds."""

import contextlib
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SETUP = """
import time
import pyarrow as pa
from types import SimpleNamespace
from ducklake_lab.errors import BindError
from ducklake_lab.magics import DuckLakeMagics
from ducklake_lab.session.rows.result import Result
from ducklake_lab.spark.progress import Progress

class Rows(Result):
    def spark(self): return "frame"

class Session:
    current_lake = SimpleNamespace(alias="lake", created=False, location=SimpleNamespace(path=None))
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
        return Rows(arrow=pa.table({"n": [1]}))

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


def test_an_error_ends_the_run_in_a_few_lines(tmp_path: Path):
    failed, after = run("%%ducklake\nSELECT wrong", "1 + 1", path=tmp_path)
    (error,) = failed.outputs
    assert (error.ename, error.evalue) == ("BindError", "no column (line 1, column 8)")
    assert len(error.traceback) == 2
    assert after.execution_count is None
