"""Results in a terminal."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.engine.rows import InMemory
from ducklake_lab.session.rows.result import Result, RunInfo, count_result
from ducklake_lab.widgets.text import of_shell, render


def test_a_terminal_shows_the_first_rows() -> None:
    rows = pa.table({"n": pa.array([1, 23], pa.int64()), "価": ["🦆", None], "t": ["a\nb", "x" * 100]})
    result = Result(InMemory(rows), info=RunInfo([("lake", 17)], seconds=0.41))
    assert of_shell(result).splitlines() == [
        "     n  価       t",
        "bigint  varchar  varchar",
        f"──────  ───────  {'─' * 40}",
        "     1  🦆       a⏎b",
        f"    23  NULL     {'x' * 39}…",
        "2 rows · 0.4 s · snapshot 17",
    ]
    assert render(result, 20).splitlines()[-1] == "2 of 3 columns · 2 rows · 0.4 s · snapshot 17"


def test_a_terminal_shows_how_many_rows_changed() -> None:
    assert "3 rows changed" in render(count_result(3, RunInfo()))
