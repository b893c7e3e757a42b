"""Errors of a cell as one line, without a stack trace."""

from __future__ import annotations

from collections.abc import Sequence

from ducklake_lab.errors import DuckLakeError, SqlError

# Bold red is the darker red of notebooks, which reads on the pale red they put behind errors.
_RED = "\x1b[1;31m"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"

_WIDTH = 120


def quiet(error: BaseException, sql: str = "") -> None:
    """Makes the notebook show an exception as its message and, where it is known, its place in the SQL.

    The exception stays what it is: the cell has failed, and a run of all cells stops there.
    """
    lines = render(error, sql)
    # IPython asks an exception for its own rendering before it makes a stack trace.
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]


def render(error: BaseException, sql: str = "") -> list[str]:
    """The lines shown for an error, in ANSI colours."""
    if isinstance(error, KeyboardInterrupt):
        return [f"{_RED}Interrupted:{_PLAIN} {str(error) or 'the running statement was cancelled.'}"]
    if not isinstance(error, DuckLakeError):
        first = str(error).strip().partition("\n")[0][:400]
        return [f"{_RED}{type(error).__name__}: {first}{_PLAIN} {_DIM}(--traceback shows where){_PLAIN}"]
    lines = [f"{_RED}{error}{_PLAIN}"]
    if isinstance(error, SqlError) and error.line is not None:
        lines += _place(sql.split("\n"), error.line, error.column)
    return lines


def _place(lines: Sequence[str], line: int, column: int | None) -> list[str]:
    """The line of SQL and a caret under the column; [] where the text has no such line."""
    if not 1 <= line <= len(lines):
        return []
    text = lines[line - 1].replace("\t", " ").rstrip()
    at = (column or 1) - 1
    start = max(0, at - _WIDTH // 2) if len(text) > _WIDTH else 0
    shown = text[start : start + _WIDTH]
    gutter = f"{line:>4} │ "
    result = [f"{_DIM}{gutter}{_PLAIN}{shown}"]
    if column is not None and at <= len(text):
        result.append(f"{' ' * (len(gutter) - 2)}{_DIM}│{_PLAIN} {' ' * (at - start)}{_RED}^{_PLAIN}")
    return result
