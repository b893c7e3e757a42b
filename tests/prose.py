"""Lints the prose of pages, docstrings and comments: `python -m tests.prose`, as `make lint` does.

It takes the rules of proselint, and refuses phrases that are not plain English.
A docstring begins with a verb or a noun.
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
from pygments.lexers import TypeScriptLexer
from pygments.token import Comment

ROOT = Path(__file__).parents[1]
UNLEARNED = re.compile(
    r"\b(?:told|tells|shall|but for|in whose place|in the place of|of which the|what is said|(?:is|are|was|were|be) of)\b",
    re.IGNORECASE,
)
#: Beginnings of docstrings that are neither a verb nor a noun.
OPENINGS = re.compile(r"\s*(?:What|Who|The same|As|Likewise|That|Those)\b")
#: Rules of proselint that do not know code: straight quotes, a heading that its first word repeats, "11 AM".
_LEFT_OUT = ("typography", "lexical_illusions", "dates_times", "spelling")
#: Words that it takes for others: SQL says "point in time".
_LEFT_OUT_WORDS = ("point in time",)
#: A page of results, whose table quotes errors.
_KEPT = ROOT / "docs" / "corpus.md"
_CODE = re.compile(r"```.*?```|`[^`\n]*`|(?<=\])\([^)\n]*\)", re.DOTALL)


def pages() -> list[Path]:
    """Pages in Markdown: those at the top, and the documentation with its decisions."""
    return [*sorted(ROOT.glob("*.md")), *sorted(page for page in (ROOT / "docs").rglob("*.md") if page != _KEPT)]


def modules() -> list[Path]:
    """Modules in Python: of the package, the tests, the benchmarks, and the scripts of the documentation."""
    return sorted(
        path for folder in ("ducklake_lab", "tests", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")
    )


def scripts() -> list[Path]:
    """Modules in TypeScript: of the page, the widgets, and the JupyterLab extension."""
    return sorted((ROOT / "extensions").glob("*/src/**/*.ts"))


def prose(path: Path) -> str:
    """Return a page without its code and links, or a module's docstrings and comments; lines keep their numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    lines = [""] * (text.count("\n") + 1)
    for number, line in _script_comments(text) if path.suffix == ".ts" else (*_docstrings(text), *_comments(text)):
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


def _script_comments(text: str) -> Iterator[tuple[int, str]]:
    for offset, kind, comment in TypeScriptLexer().get_tokens_unprocessed(text):
        if kind in Comment:
            for number, line in enumerate(comment.splitlines(), text.count("\n", 0, offset) + 1):
                yield number, line.strip().lstrip("/* ").removesuffix("*/")


def openings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings that begin with neither a verb nor a noun, with the numbers of their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False) or ""
            if found := OPENINGS.match(docstring):
                yield node.body[0].lineno, f"a docstring begins with a verb or a noun, not with '{found[0].strip()}'"


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
    """Print the problems of all files, and return the exit code."""
    paths = [*pages(), *modules(), *scripts()]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {problem}"
        for path in paths
        for number, problem in (*problems(prose(path)), *(openings(path) if path.suffix == ".py" else ()))
    ]
    print(
        "\n".join(found) or f"{len(pages())} pages, {len(modules())} modules and {len(scripts())} scripts read plainly"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
