"""Options of commands that review a branch and keep a remark with it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ducklake_lab.errors import UsageError

# the magics offer these options before anything of lakes is imported
if TYPE_CHECKING:
    from ducklake_lab.branches.review import Review


def add_remarks(parser: argparse.ArgumentParser) -> None:
    """Adds the options that keep a remark with the branch."""
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--comment", metavar="TEXT", help="keep a comment with the branch")
    kind.add_argument(
        "--approve", metavar="TEXT", nargs="?", const="", help="approve the branch as it is, with words or without"
    )
    kind.add_argument("--ask-for-changes", metavar="TEXT", help="say what should change")
    kind.add_argument("--remove", metavar="ID", help="remove a remark, by its id in --format json")
    parser.add_argument("--table", metavar="TABLE", help="the table that the remark is about")
    parser.add_argument("--row", metavar="ID", type=int, help="the row id in that table, as on the branch")
    parser.add_argument("--column", metavar="COLUMN", help="the column, or the cell of the row")


def keep_remark(review: Review, given: argparse.Namespace, author: str | None = None) -> None:
    """Keeps or removes the remark that the options give, if any.

    Raises:
        UsageError: a place is given for what has none.
    """
    place = {"table": given.table, "row": given.row, "column": given.column}
    if given.comment is not None:
        review.comment(given.comment, **place, author=author)
    elif given.ask_for_changes is not None:
        review.ask_for_changes(given.ask_for_changes, **place, author=author)
    elif any(value is not None for value in place.values()):
        raise UsageError("--table, --row and --column belong to --comment and --ask-for-changes.")
    elif given.approve is not None:
        review.approve(given.approve, author=author)
    elif given.remove is not None:
        review.remove_remark(given.remove)


def keeps_remark(given: argparse.Namespace) -> bool:
    """Return whether the options keep or remove a remark."""
    return any(one is not None for one in (given.comment, given.approve, given.ask_for_changes, given.remove))
