"""Outputs of a notebook that ran twice: what counts as a difference, and the page about it."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from ducklake_lab.notebooks.comparing import compare_outputs
from ducklake_lab.notebooks.report import document

v4 = nbformat.v4


def notebook(*cells: list[Any] | None) -> Any:
    """A notebook with these outputs of its cells; None for a cell that did not run."""
    made = [v4.new_markdown_cell("# Title")]
    for number, outputs in enumerate(cells, start=1):
        cell = v4.new_code_cell(f"cell {number}", execution_count=None if outputs is None else number)
        cell.outputs = outputs or []
        made.append(cell)
    return v4.new_notebook(cells=made)


def html(text: str, plain: str = "a view") -> Any:
    return v4.new_output("display_data", {"text/html": text, "text/plain": plain})


def printed(text: str, name: str = "stdout") -> Any:
    return v4.new_output("stream", name=name, text=text)


TABLE = '<div id="ducklake-{}"><div class="dlk"><td>{}</td><div class="dlk-foot">1 row · {} s · pinned at {}</div></div></div>'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([html(TABLE.format("0123456789ab", 5, 0.4, "q3"))], [html(TABLE.format("ba9876543210", 5, 1.2, "q4 (snapshot 7)"))]),
        ([html('<p class="dlk">lake · pinned at q3 · 5 rows</p>')], [html('<p class="dlk">lake · pinned at 12 · 5 rows</p>')]),
        ([html('<p class="dlk"><i>snapshot 1 · 2 tables</i></p>')], [html('<p class="dlk"><i>snapshot 2 · 2 tables</i></p>')]),
        ([html("<b>x</b>", "<at 0x7f01>")], [html("<b>x</b>", "<at 0x7f02>")]),
        ([printed("<object at 0x7f0123456789>")], [printed("<object at 0x7f9876543210>")]),
        ([printed("ab")], [printed("a"), printed("b")]),
        ([printed("1"), printed("slow", "stderr")], [printed("1")]),
        ([], []),
        (None, None),
    ],
)  # fmt: skip
def test_what_differs_by_run_is_no_difference(before: list[Any] | None, after: list[Any] | None) -> None:
    assert not compare_outputs(notebook(before), notebook(after))[0].differs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([html(TABLE.format("0123456789ab", 5, 0.4, "q3"))], [html(TABLE.format("0123456789ab", 6, 0.4, "q3"))]),
        ([printed("1")], [printed("2")]),
        ([printed("1 · 0.4 s")], [printed("1 · 0.5 s")]),
        ([printed("1")], []),
        ([printed("1")], None),
        ([v4.new_output("display_data", {"image/png": "AAAA"})], [v4.new_output("display_data", {"image/png": "AAAB"})]),
        (
            [v4.new_output("execute_result", {"application/vnd.x+json": {"a": 1}})],
            [v4.new_output("execute_result", {"application/vnd.x+json": {"a": 2}})],
        ),
        ([printed("1")], [v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]),
    ],
)  # fmt: skip
def test_what_differs(before: list[Any] | None, after: list[Any] | None) -> None:
    same = [printed("same")]
    found = compare_outputs(notebook(same, before), notebook(same, after))
    assert [cell.differs for cell in found] == [False, True]
    assert [cell.number for cell in found] == [1, 2]


def test_a_page_runs_nothing_of_the_outputs() -> None:
    hostile = '<script>alert("1")</script><img src=x onerror="alert(2)">'
    cells = compare_outputs(
        notebook([html(hostile), printed("</pre><script>3</script>")], [printed("equal <b>")], [printed("x")]),
        notebook([html(f"{hostile}!")], [printed("equal <b>")], None),
    )
    page = document("<i>report</i>.ipynb", "<q3>", "12", cells)
    assert "<script" not in page and "<img" not in page and "<i>report" not in page and "<q3>" not in page
    assert '<iframe sandbox="" ' in page and "default-src &#x27;none&#x27;" in page
    assert "did not run" in page and "1 cell with equal outputs" in page and "2 cells with other outputs" in page
