"""Lints the prose of pages, docstrings and comments: `python -m tests.prose`, as `make lint` does.

It takes the rules of proselint, and refuses phrases that this project has unlearned.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[1]
UNLEARNED = re.compile(
    r"\b(?:told|tells|shall|but for|in whose place|in the place of|of which the|what is said|(?:is|are|was|were|be) of)\b",
    re.IGNORECASE,
)
#: Rules of proselint that do not know code: straight quotes, a heading that its first word repeats, "11 AM".
_LEFT_OUT = ("typography", "lexical_illusions", "dates_times", "spelling")
#: Words that it takes for others: SQL says "point in time".
_LEFT_OUT_WORDS = ("point in time",)
#: Pages that quote: decisions keep their first text, and the table of the corpus has results.
_KEPT = ("adr", "corpus.md")
_CODE = re.compile(r"```.*?```|`[^`\n]*`|(?<=\])\([^)\n]*\)", re.DOTALL)


def pages() -> list[Path]:
    """Pages for users: the README and the documentation."""
    docs = ROOT / "docs"
    found = [page for page in docs.rglob("*.md") if not set(_KEPT) & set(page.relative_to(docs).parts)]
    return [ROOT / "README.md", *sorted(found)]


def modules() -> list[Path]:
    """The package's modules."""
    return sorted((ROOT / "ducklake_lab").rglob("*.py"))


def prose(path: Path) -> str:
    """A page without its code and links, or a module's docstrings and comments; each line is where it is in the file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    lines = [""] * (text.count("\n") + 1)
    for number, line in (*_docstrings(text), *_comments(text)):
        lines[number - 1] = _CODE.sub("", line.strip())
    return "\n".join(lines)


def _docstrings(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                yield from enumerate(docstring.splitlines(), node.body[0].lineno)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Yield the problems of a text, with the numbers of their lines."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := UNLEARNED.search(line):
            yield number, f"'{found[0]}' is no plain English"
    if not CheckRegistry().checks:
        CheckRegistry().register_many(__register__)
    checks = {name: on and not name.startswith(_LEFT_OUT) for name, on in DEFAULT["checks"].items()}
    for result in LintFile("text", text or " ").lint(Config(max_errors=1000, checks=checks)):
        message = result.check_result.message
        if not any(words in message for words in _LEFT_OUT_WORDS):
            yield result.pos[0], message


def main() -> int:
    """Prints what is wrong; the exit code."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {problem}"
        for path in (*pages(), *modules())
        for number, problem in problems(prose(path))
    ]
    print("\n".join(found) or f"{len(pages())} pages and {len(modules())} modules read plainly")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
