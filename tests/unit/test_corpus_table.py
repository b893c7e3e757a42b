"""The page of what the reference's own tests give."""

from __future__ import annotations

from tests.corpus.table import page, reasons


def test_outcomes_are_counted_by_folder_and_failures_told_with_their_reason() -> None:
    files = [
        {"file": "test/sql/a/one.test", "outcome": "pass", "line": None, "message": None},
        {"file": "test/sql/a/two.test", "outcome": "fail", "line": 7, "message": "row 1 differs"},
        {"file": "test/sql/b/three.test", "outcome": "fail", "line": 9, "message": "Unsupported: X is not supported."},
        {"file": "test/sql/b/four.test", "outcome": "timeout", "line": None, "message": "240 s"},
        {"file": "test/sql/top.test", "outcome": "skip", "line": None, "message": "require quack"},
    ]
    text = page(files, {"a/two.test": "a known thing"})
    assert "| a | 1 | 1 | 0 | 0 |" in text and "| b | 0 | 1 | 1 | 0 |" in text and "| (top) | 0 | 0 | 0 | 1 |" in text
    assert "| **all** | **1** | **2** | **1** | **1** |" in text
    assert "| `a/two.test` | 7 | failed: a known thing |" in text
    assert "| `b/four.test` |  | failed: not looked into yet |" in text
    assert text.count("one.test") == 0


def test_every_reason_names_a_file() -> None:
    assert all(path.endswith(".test") and reason for path, reason in reasons().items())
