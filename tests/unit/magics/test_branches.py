"""The subcommands that review, merge, pick from and rebase branches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab
from ducklake_lab.errors import MergeConflictError, UsageError

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
    run("%%ducklake\nCREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(10) r(i)")
    run("%ducklake branch fix")
    run("%ducklake switch fix")
    run("%%ducklake\nUPDATE t SET v = 'branch' WHERE i IN (1, 2)")
    run("%ducklake switch")
    run("%%ducklake\nUPDATE t SET v = 'lake' WHERE i = 1")
    return run


def test_a_branch_is_reviewed_and_merged(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    review = run("%ducklake review fix --save review.html")
    assert repr(review).startswith("<Review of shop#fix: 1 snapshot, 1 conflict>")
    assert (tmp_path / "review.html").read_text().startswith("<!doctype html>")
    with pytest.raises(MergeConflictError) as error:
        run("%ducklake merge fix")
    # IPython shows an error so
    (line,) = error.value._render_traceback_()  # type: ignore[attr-defined]
    assert 'on_conflict="ours"' in line and "changed on both sides" in capsys.readouterr().out
    review = run("%ducklake review fix --comment 'why branch?' --table t --row 1 --column v")
    assert review.remarks[0].about == "main.t row 1 v"
    assert run("%ducklake review fix --ask-for-changes later").verdict == "changes asked for"
    with pytest.raises(UsageError, match="belong to --comment"):
        run("%ducklake review fix --approve --row 1")
    preview = run("%ducklake merge fix --preview --on-conflict ours")
    assert [repr(one) for one in preview] == ["changed main.t: 0 deleted, 0 inserted, 1 updated"]
    merged = run('%ducklake merge fix --on-conflict ours -m "two fixes"')
    assert "merged" in repr(merged)
    assert "nothing that is not merged" in repr(run("%ducklake merge fix"))
    assert "begins there now" in repr(run("%ducklake rebase fix"))
    rows = run("%%ducklake\nSELECT v FROM t WHERE i IN (1, 2) ORDER BY i")
    assert [row[0] for row in rows.fetchall()] == ["lake", "branch"]


def test_conflicts_of_each_are_shown_once(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for command, title in (
        ("merge fix", "merge of branch fix"),
        ("rebase fix", "rebase of branch fix"),
        ("cherry-pick fix 2", "pick of snapshot 2 of branch fix"),
        ("cherry-pick fix --rows t=1,2", "pick of rows of branch fix"),
    ):
        for preview in ("", " --preview"):
            with pytest.raises(MergeConflictError) as error:
                run(f"%ducklake {command}{preview}")
            error.value._render_traceback_()  # type: ignore[attr-defined]
            assert capsys.readouterr().out.count(f"Conflicts of the {title}: 1 conflict") == 1


def test_changes_are_picked(run: Run) -> None:
    assert [repr(one) for one in run("%ducklake cherry-pick fix 2 --preview --on-conflict theirs")] == [
        "changed main.t: 0 deleted, 0 inserted, 2 updated"
    ]
    assert "picked" in repr(run("%ducklake cherry-pick fix --rows main.t=2 -m 'only one'"))
    rows = "%%ducklake\nSELECT v FROM t WHERE i IN (1, 2) ORDER BY i"
    assert run(rows).fetchall() == [("lake",), ("branch",)]
    assert "no snapshot was made" in repr(run("%ducklake cherry-pick fix --rows t=2"))
    preview = run("%ducklake rebase fix --preview --on-conflict theirs")
    assert [repr(one) for one in preview] == ["changed main.t: 0 deleted, 0 inserted, 1 updated"]
    for wrong in ("t", "=1", "t=", "t=1,x", "t=-1"):
        with pytest.raises(UsageError, match="row ids with commas"):
            run(f"%ducklake cherry-pick fix --rows {wrong}")


def test_merge_is_also_a_statement(run: Run) -> None:
    run("%ducklake MERGE INTO t USING (SELECT 5 AS i) u USING (i) WHEN MATCHED THEN DELETE")
    assert run("%%ducklake\nSELECT count(*) FROM t").fetchall() == [(9,)]
    with pytest.raises(UsageError, match="on-conflict"):
        run("%ducklake merge fix --on-conflict mine")
