"""`merge` and `rebase`: branches, and what becomes of them."""

from __future__ import annotations

import argparse
import json

from ducklake_lab.cli.arguments import DIFFERENT, DONE, Commands, add_data_path, add_json
from ducklake_lab.cli.lakes import attach
from ducklake_lab.cli.output import conflicts_text, lake_diff_text, write
from ducklake_lab.errors import MergeConflictError


def add_merge(commands: Commands) -> None:
    merge = commands.add(
        "merge",
        "bring the changes of a branch into its lake, as one snapshot",
        _merge,
        "lake.ducklake fix --preview",
        "lake.ducklake fix --on-conflict ours",
        codes="0 done, 1 conflicts",
    )
    merge.add_argument("name", metavar="BRANCH")
    merge.add_argument("--preview", action="store_true", help="show what would change, and change nothing")
    merge.add_argument("--message", metavar="TEXT", help="the commit message; those of the branch if left out")
    _add_rule(merge)
    add_data_path(merge)
    add_json(merge)


def add_rebase(commands: Commands) -> None:
    rebase = commands.add(
        "rebase",
        "begin a branch at its lake's newest snapshot, with its changes on top",
        _rebase,
        "lake.ducklake fix",
        codes="0 done, 1 conflicts",
    )
    rebase.add_argument("name", metavar="BRANCH")
    _add_rule(rebase)
    add_data_path(rebase)
    add_json(rebase)


def _add_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on-conflict",
        choices=("ours", "theirs"),
        help="where both sides changed the same: ours is what the lake has, theirs what the branch has",
    )


def _merge(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given, read_only=False)
        try:
            if given.preview:
                diff = session.merge_preview(given.name, given.on_conflict)
                write([diff.to_json() if given.json else lake_diff_text(diff), "\n"])
                return DONE
            made = session.merge(given.name, given.on_conflict, message=given.message)
        except MergeConflictError as error:
            write([conflicts_text(error, as_json=given.json), "\n"])
            return DIFFERENT
        if given.json:
            write([json.dumps({"snapshot": made.snapshot_id if made is not None else None}), "\n"])
        elif made is None:
            write(["The branch has nothing that is not merged, so that no snapshot was made.\n"])
        else:
            write([f"Merged as snapshot {made.snapshot_id}.\n"])
    return DONE


def _rebase(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given, read_only=False)
        try:
            branch = session.rebase(given.name, given.on_conflict)
        except MergeConflictError as error:
            write([conflicts_text(error, as_json=given.json), "\n"])
            return DIFFERENT
        members = {"branch": branch.name, "snapshot": branch.snapshot_id}
        text = json.dumps(members) if given.json else f"{branch.name} begins at snapshot {branch.snapshot_id} now."
        write([text, "\n"])
    return DONE
