"""The linter of prose finds what it should, where it is, and leaves code alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import modules, pages, problems, prose


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("The rows are of a file.", "'are of' is no plain English"),
        ("What it is told.", "'told' is no plain English"),
        ("It waits for ever.", "'for ever' is archaic."),
        ("This goes without saying.", "'goes without saying' is a cliché"),
    ],
)
def test_what_is_no_plain_english(text: str, problem: str) -> None:
    assert list(problems(f"The first line.\n{text}\n")) == [(2, problem)]


def test_plain_english() -> None:
    assert list(problems("A statement reads the files that its predicate leaves.\n")) == []


def test_code_of_a_page_is_no_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Run `told` and see [files](told.md).\n\n```python\nx = 'told'\n```\n\nIt is told.\n")
    assert [number for number, _ in problems(prose(page))] == [7]


def test_docstrings_and_comments_are_prose_and_texts_are_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""It is\ntold."""\n\nTEXT = """told"""  # told\n\n\ndef f():\n    "told"\n')
    assert [number for number, _ in problems(prose(module))] == [2, 4, 8]


def test_everything_is_read() -> None:
    assert len(pages()) > 10 and len(modules()) > 100
