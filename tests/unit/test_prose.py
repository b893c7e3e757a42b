"""The linter of prose finds what it should, where it is, and leaves code alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import modules, openings, pages, problems, prose, scripts


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


def test_comments_of_scripts_are_prose(tmp_path: Path) -> None:
    script = tmp_path / "script.ts"
    script.write_text("const a = 'told // told';\n/**\n * It is told.\n */\nconst b = `/* told */`; // told\n")
    assert [number for number, _ in problems(prose(script))] == [3, 5]


@pytest.mark.parametrize(
    "opening", ["What is read.", "Who reads.", "The same of files.", "As `read`.", "Those of a file."]
)
def test_docstrings_begin_with_a_verb_or_a_noun(opening: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f'"""Whatever."""\n\n\nclass A:\n    def f():\n        """{opening}"""\n')
    assert [number for number, _ in openings(module)] == [6]


def test_everything_is_read() -> None:
    assert len(pages()) > 10 and len(modules()) > 100 and len(scripts()) > 50
    names = {path.name for path in pages()}
    assert {"CONTRIBUTING.md", "0001-layers-and-hooks.md"} < names
    assert len(modules()) > 700
