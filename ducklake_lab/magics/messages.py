"""Shows errors of a cell as one line, at most with the marked line of SQL below it; no stack trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ducklake_lab.errors import DuckLakeError, SqlError
from ducklake_lab.redaction import hide

# Bold red is the darker red of notebooks, readable on the pale red behind errors.
_RED = "\x1b[1;31m"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"

_WIDTH = 120
#: The marked text: a quoted name or string, a word, or one character.
_TOKEN = re.compile(r"""\"(?:[^"]|\"\")*\"|'(?:[^']|'')*'|[\w$]+|\S""")


def quiet(error: BaseException, sql: str = "") -> None:
    """Makes the notebook show an exception as its message and, if known, its position in the SQL.

    The exception is unchanged: the cell has failed, and a run of all cells stops there.
    """
    lines = render(error, sql)
    own: Callable[[], object] = getattr(error, "_render_traceback_", lambda: None)

    def rendered() -> list[str]:
        # conflicts show a view besides
        own()
        return lines

    # IPython uses an exception's own rendering instead of a stack trace.
    error._render_traceback_ = rendered  # type: ignore[attr-defined]


def loud(error: BaseException) -> None:
    """Makes the notebook show an exception with its stack trace, below the view that it may have."""
    error.__dict__.pop("_render_traceback_", lambda: None)()


def render(error: BaseException, sql: str = "") -> list[str]:
    """Returns the displayed lines of an error, in ANSI colours."""
    if isinstance(error, KeyboardInterrupt):
        return [f"{_RED}Interrupted:{_PLAIN} {str(error) or 'the running statement was cancelled.'}"]
    if not isinstance(error, DuckLakeError):
        first = hide(str(error).strip().partition("\n")[0])[:400]
        return [f"{_RED}{type(error).__name__}: {first}{_PLAIN} {_DIM}(--traceback shows where){_PLAIN}"]
    message = " ".join(str(error).split())
    if isinstance(error, SqlError) and error.line is not None and not re.search(rf"\bline {error.line}\b", message):
        position = f"line {error.line}" + (f", column {error.column}" if error.column is not None else "")
        message = f"{message.rstrip('.')} ({position})."
    lines = [f"{_RED}{message}{_PLAIN}"]
    if isinstance(error, SqlError) and error.line is not None:
        lines += _place(sql.split("\n"), error.line, error.column)
    return lines


def _place(lines: Sequence[str], line: int, column: int | None) -> list[str]:
    """Returns the line of SQL, with the word at the column marked; [] if the text has no such line."""
    if not 1 <= line <= len(lines):
        return []
    text = lines[line - 1].replace("\t", " ").rstrip()
    if hide("\n".join(lines)) != "\n".join(lines):
        return []  # a part of the line may be part of a secret
    at = (column or 1) - 1
    start = max(0, at - _WIDTH // 2) if len(text) > _WIDTH else 0
    end = start + _WIDTH
    gutter = f"{_DIM}{line:>4} │ {_PLAIN}"
    if column is None or at > len(text):
        return [gutter + text[start:end]]
    token = _TOKEN.match(text, at)
    stop = min(token.end(), end) if token else at
    return [f"{gutter}{text[start:at]}{_RED}▸{text[at:stop]}◂{_PLAIN}{text[stop:end]}"]
