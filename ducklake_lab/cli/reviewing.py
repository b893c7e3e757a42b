"""`review`: what a branch changed, for those who decide over its merge, and what they say."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ducklake_lab.branches.remark_options import add_remarks, keep_remark, keeps_remark
from ducklake_lab.cli.arguments import DIFFERENT, DONE, Commands, add_data_path
from ducklake_lab.cli.lakes import attach
from ducklake_lab.cli.output import write

_FORMATS = ("text", "markdown", "json", "html")
#: Exit codes beside those of all commands: somebody asks for changes, and nobody has approved the branch as it is.
_ASKED, _NOT_APPROVED = 3, 4


def add_review(commands: Commands) -> None:
    review = commands.add(
        "review",
        "show what a branch changed, what the lake changed meanwhile, the conflicts of both, and remarks",
        _review,
        "lake.ducklake fix",
        "lake.ducklake fix --format markdown > review.md",
        'lake.ducklake fix --comment "why 0?" --table orders --row 100 --column amount',
        "lake.ducklake fix --approve --author ann",
        codes="0 a merge needs no rule, 1 conflicts, 3 changes are asked for, 4 --needs-approval and none of the branch as it is",
    )
    review.add_argument("name", metavar="BRANCH")
    review.add_argument("--format", choices=_FORMATS, default="text", help="how it is printed (text)")
    add_remarks(review)
    review.add_argument("--author", metavar="NAME", help="who says so")
    review.add_argument(
        "--needs-approval", action="store_true", help="exit with 4 without an approval of the branch as it is"
    )
    add_data_path(review)


def _review(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.html import visible

    with Session(engine="duckdb") as session:
        attach(session, given, read_only=not keeps_remark(given))
        review = session.review(given.name)
        keep_remark(review, given, given.author)
        made: dict[str, Callable[[], str]] = {
            "text": lambda: "\n".join(map(visible, repr(review).splitlines())),
            "markdown": review.to_markdown,
            "json": review.to_json,
            "html": review.to_html,
        }
        write([made[given.format](), "\n"])
        if review.verdict == "changes asked for":
            return _ASKED
        if not review.is_mergeable:
            return DIFFERENT
        return _NOT_APPROVED if given.needs_approval and review.verdict != "approved" else DONE
