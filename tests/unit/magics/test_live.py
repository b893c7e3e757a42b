"""The subcommand on live tables, and their statements in cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab
from ducklake_lab.errors import UsageError

#: Runs a cell; gives its value, and raises what it raised.
Run = Callable[[str], Any]


@pytest.fixture
def run(shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(cell: str) -> Any:
        outcome = shell.run_cell(cell)
        outcome.raise_error()
        return outcome.result

    monkeypatch.chdir(tmp_path)
    ducklake_lab.load_ipython_extension(shell)
    run("%ducklake connect ducklake:shop.ducklake")
    run("%%ducklake\nCREATE TABLE t AS SELECT i AS k FROM range(4) r(i)")
    run("%%ducklake\nCREATE LIVE TABLE x AS SELECT k, count(*) AS n FROM t GROUP BY k")
    run("%%ducklake\nINSERT INTO t VALUES (2), (7)")
    return run


def test_listed_explained_and_refreshed(run: Run) -> None:
    listed = run("%ducklake live")
    assert [(row[0], row[3]) for row in listed.fetchall()] == [("main.x", 1)]
    assert "main.x" in listed._repr_html_()
    explained = run("%ducklake live x").fetchall()
    assert [row[:2] for row in explained] == [("main.x", "incremental")]
    assert run("%ducklake live").fetchall() == listed.fetchall()
    assert run("%ducklake live x --refresh").fetchall()[0][4] == 3
    assert run("%ducklake live --refresh").fetchall()[0][1] == "nothing"
    assert run("%%ducklake\nREFRESH ALL").fetchall()[0][1] == "nothing"


def test_names_are_checked(run: Run) -> None:
    with pytest.raises(UsageError, match="is no live table"):
        run("%ducklake live t")
    with pytest.raises(UsageError, match="is no table name"):
        run("%ducklake live a..b")
