"""The subcommands that review, merge, pick from and rebase branches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ducklake_lab.branches.remark_options import add_remarks, keep_remark
from ducklake_lab.errors import UsageError

if TYPE_CHECKING:
    from ducklake_lab.magics.session import LakeSession
    from ducklake_lab.session.listings import Listing


def add_arguments(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Adds the subcommands to a parser."""
    review = add(
        "review", "show what a branch changed, what the lake changed meanwhile, the conflicts of both, and remarks"
    )
    review.add_argument("name", metavar="NAME")
    add_remarks(review)
    review.add_argument("--save", metavar="FILE", help="also write it to FILE.html, .md or .json")
    add("agents", "branches on which agents work: who did what, when, and the way to the review; it stays current")
    merge = add("merge", "bring the changes of a branch into the lake, as one snapshot")
    pick = add(
        "cherry-pick", "bring what one snapshot of a branch changed, or some rows, into the lake, as one snapshot"
    )
    rebase = add("rebase", "begin a branch at the lake's newest snapshot, with its changes on top")
    for parser in (merge, pick, rebase):
        parser.add_argument("name", metavar="NAME")
    pick.add_argument(
        "snapshot", metavar="SNAPSHOT", type=int, nargs="?", help="of the branch; with --rows all if left out"
    )
    pick.add_argument(
        "--rows", metavar="TABLE=IDS", action="append", help="only rows of a table, by row ids with commas between"
    )
    merge.add_argument("-m", "--message", metavar="TEXT", help="the commit message; those of the branch if left out")
    pick.add_argument("-m", "--message", metavar="TEXT", help="the commit message; pick of snapshot N if left out")
    for parser in (merge, pick, rebase):
        parser.add_argument("--preview", action="store_true", help="show what would change, and change nothing")
        parser.add_argument(
            "--on-conflict",
            choices=("ours", "theirs"),
            help="where both sides changed the same: ours is what the lake has, theirs what the branch has",
        )


class MergeCommands:
    """Runs these subcommands."""

    _session: Callable[[], LakeSession]

    def _run_review(self, given: argparse.Namespace) -> object:
        review = self._session().review(given.name)
        keep_remark(review, given)
        if given.save is not None:
            review.save(given.save)
        return review

    def _run_agents(self, _given: argparse.Namespace) -> object:
        return self._session().agents()

    def _run_merge(self, given: argparse.Namespace) -> object:
        session = self._session()
        if given.preview:
            return session.merge_preview(given.name, given.on_conflict)
        made = session.merge(given.name, given.on_conflict, message=given.message)
        is_done = made is not None or session.in_transaction
        note = "merged" if is_done else "the branch has nothing that is not merged, so no snapshot was made"
        return _listing(given.name, (made or session.current_snapshot()).snapshot_id, note)

    def _run_cherry_pick(self, given: argparse.Namespace) -> object:
        session, rows = self._session(), _rows(given.rows)
        if given.preview:
            return session.cherry_pick_preview(given.name, given.snapshot, rows, given.on_conflict)
        made = session.cherry_pick(given.name, given.snapshot, rows, given.on_conflict, given.message)
        is_done = made is not None or session.in_transaction
        note = "picked" if is_done else "the lake has these changes, so no snapshot was made"
        return _listing(given.name, (made or session.current_snapshot()).snapshot_id, note)

    def _run_rebase(self, given: argparse.Namespace) -> object:
        session = self._session()
        if given.preview:
            return session.rebase_preview(given.name, given.on_conflict)
        branch = session.rebase(given.name, given.on_conflict)
        return _listing(branch.name, branch.snapshot_id, "begins there now")


def _listing(name: str, snapshot_id: int, note: str) -> Listing:
    from ducklake_lab.session.listings import Listing

    return Listing("", ("branch", "snapshot"), ((name, snapshot_id),), noun="branch", note=note)


def _rows(texts: Sequence[str] | None) -> dict[str, list[int]] | None:
    """Read row ids by the names of tables; None for None."""
    if texts is None:
        return None
    row_ids: dict[str, list[int]] = {}
    for text in texts:
        name, _, ids = text.rpartition("=")
        numbers = [one.strip() for one in ids.split(",")]
        if not name or not all(one.isdecimal() for one in numbers):
            raise UsageError("--rows takes a table and row ids with commas between, such as --rows orders=17,18.")
        row_ids.setdefault(name, []).extend(map(int, numbers))
    return row_ids
