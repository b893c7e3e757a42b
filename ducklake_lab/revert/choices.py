"""Texts of options that choose what to revert."""

from __future__ import annotations

import argparse

from ducklake_lab.errors import UsageError


def listed(text: str | None) -> list[str] | None:
    """Read names with commas between; None for None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def row_ids(text: str | None) -> list[int] | None:
    """Read row ids with commas between; None for None.

    Raises:
        UsageError: one is no number.
    """
    ids = listed(text)
    if ids is not None and not all(one.isdecimal() for one in ids):
        raise UsageError("--rows takes row ids with commas between, such as --rows 17,18.")
    return None if ids is None else [int(one) for one in ids]


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Adds the options of commands that revert a snapshot."""
    parser.add_argument("--preview", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--tables", metavar="NAMES", help="only these tables, comma between")
    parser.add_argument("--rows", metavar="IDS", help="only the rows with these row ids, comma between")
    parser.add_argument(
        "--on-conflict",
        choices=("keep", "revert"),
        help="where a later snapshot changed the same: keep today's value, or revert to the old one",
    )
    parser.add_argument("--message", metavar="TEXT", help="the commit message; revert of snapshot N if left out")
