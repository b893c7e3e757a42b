"""Texts and rows on standard output."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ducklake_lab.errors import UsageError

if TYPE_CHECKING:
    from ducklake_lab.diff.lake import LakeDiff
    from ducklake_lab.errors import MergeConflictError
    from ducklake_lab.session.rows.result import Result

#: Conflicts that are printed as text.
_SHOWN = 50


def write(parts: Iterable[str]) -> None:
    """Prints texts; a reader that has read enough, as `head` has, changes nothing but how many of them.

    Raises:
        UsageError: the output's encoding lacks a character, or the output cannot be written.
    """
    try:
        for part in parts:
            sys.stdout.write(part)
        sys.stdout.flush()
    except BrokenPipeError:
        read_no_more()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"The output's encoding, {error.encoding}, has no {error.object[error.start]!a}; set PYTHONIOENCODING=utf-8."
        ) from None
    except OSError as error:
        read_no_more()
        raise UsageError(f"The output cannot be written: {error.strerror or error}.") from None


def read_no_more() -> None:
    """Sends further output nowhere: Python flushes once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_rows(result: Result, given: argparse.Namespace, footer: Callable[[], str] | None = None) -> None:
    """Prints rows in the form that a command with `add_output` was asked for.

    Args:
        footer: makes the line below a table; by default the result's summary.
    """
    from ducklake_lab.widgets.printed import printed
    from ducklake_lab.widgets.result import LIMIT, summary

    most = limit(given)
    footer = footer or (lambda: summary(result, most or LIMIT, "--format csv prints all"))
    write(printed(result, given.format, most, footer, is_terminal=sys.stdout.isatty()))


def limit(given: argparse.Namespace) -> int | None:
    """Returns the number of rows to print at most; None for all."""
    from ducklake_lab.widgets.result import LIMIT

    most: int | None = given.limit
    return LIMIT if most is None and given.format in ("table", "markdown") else most


def lake_diff_text(diff: LakeDiff) -> str:
    """Returns the tables that differ, a line each, below a line on the snapshots."""
    from ducklake_lab.widgets.html import visible

    end = diff.end.snapshot_id if diff.end is not None else "uncommitted"
    lines = [
        f"{diff.lake}  snapshot {diff.start.snapshot_id} → {end}",
        f"{diff.unchanged:,} tables unchanged",
        *map(repr, diff),
    ]
    return "\n".join(visible(line) for line in lines)


def conflicts_text(error: MergeConflictError, *, as_json: bool) -> str:
    """Returns the conflicts of a merge or a revert: a line each with its three values, or JSON."""
    from ducklake_lab.widgets import values
    from ducklake_lab.widgets.html import visible

    listed = [one.to_dict() for one in error.conflicts]
    if as_json:
        return json.dumps(
            {"error": str(error), "total": error.total, "conflicts": listed}, ensure_ascii=False, indent=2
        )
    shown = (f"{one}: {' → '.join(map(values.text, one.versions))}" for one in error.conflicts[:_SHOWN])
    lines = [str(error), *shown]
    return "\n".join(visible(line) for line in lines)
