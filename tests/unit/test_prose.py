"""Docstrings, comments and pages use plain English: none of the turns of phrase that this project has unlearned."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Pages that quote: decisions keep their first text, and the table of the corpus has results.
KEPT = ("adr", "corpus.md")
UNLEARNED = re.compile(
    r"\b(?:told|tells|shall|but for|in whose place|in the place of|of which the|what is said|(?:is|are|was|were|be) of)\b",
    re.IGNORECASE,
)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page, or of a module's docstrings and comments, with their numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and token.string.startswith('"""')
        if is_docstring or token.type == tokenize.COMMENT:
            yield from enumerate(token.string.splitlines(), token.start[0])


def test_prose_is_plain() -> None:
    pages = [p for p in (ROOT / "docs").rglob("*.md") if not set(KEPT) & set(p.relative_to(ROOT / "docs").parts)]
    modules = list((ROOT / "ducklake_lab").rglob("*.py"))
    assert len(pages) > 10 and len(modules) > 100
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*pages, ROOT / "README.md", *modules)
        for number, line in prose(path)
        if UNLEARNED.search(line)
    ]
    assert found == []
