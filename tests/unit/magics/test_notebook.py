"""Commits of cells name the cell and its notebook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from ducklake_lab.magics import load
from ducklake_lab.magics.notebook import place_of
from ducklake_lab.model.commit_notes import CommitNote


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell()
    load(shell)
    yield shell
    session = shell.magics_manager.registry["DuckLakeMagics"].session
    if session is not None:
        session.close()


def test_cells_are_noted(shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ann/work/flights of 2013.ipynb")
    cells = [
        f"%ducklake connect ducklake:{tmp_path}/lake.ducklake",
        "%%ducklake\nCREATE TABLE t (i INTEGER)",
        "%config DuckLakeMagics.record_statements = False",
        "%ducklake INSERT INTO t VALUES (1)",
        "%config DuckLakeMagics.record_statements = True\n%ducklake INSERT INTO t VALUES (2)",
    ]
    numbers = [shell.run_cell(cell, store_history=True).execution_count for cell in cells]
    assert numbers == [1, 2, 3, 4, 5]
    session = shell.magics_manager.registry["DuckLakeMagics"].session
    first, second, third = [entry.note for entry in session.snapshots()][1:]
    assert isinstance(first, CommitNote) and isinstance(third, CommitNote) and second is None
    assert (first.statement, first.kind, first.notebook, first.cell) == (
        "CREATE TABLE t (i INTEGER)",
        "CREATE TABLE",
        "flights of 2013.ipynb",
        2,
    )
    assert (third.statement, third.cell) == ("INSERT INTO t VALUES (2)", 5)


def test_what_is_not_known_is_left_out(shell: InteractiveShell) -> None:
    number = shell.displayhook.prompt_count
    assert place_of(shell, {}) == {"notebook": None, "cell": number}
    shell.user_ns["__vsc_ipynb_file__"] = "C:\\Users\\ann\\x.ipynb"
    assert place_of(shell, {}) == {"notebook": "x.ipynb", "cell": number}
    shell.user_ns["__vsc_ipynb_file__"] = 5
    assert place_of(shell, {}) == {"notebook": None, "cell": number}
