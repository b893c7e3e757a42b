"""`revert`: takes one snapshot's changes back."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ducklake_lab.cli.arguments import DIFFERENT, DONE, Commands, add_data_path, add_json
from ducklake_lab.cli.lakes import attach, moment
from ducklake_lab.cli.output import conflicts_text, lake_diff_text, write
from ducklake_lab.errors import RevertConflictError
from ducklake_lab.revert.choices import add_choices, listed, row_ids

if TYPE_CHECKING:
    from ducklake_lab.session import Session


def add_revert(commands: Commands) -> None:
    revert = commands.add(
        "revert",
        "take the changes of one snapshot back, as a new snapshot",
        _revert,
        "lake.ducklake 13 --preview",
        "lake.ducklake 13 --on-conflict keep",
        "lake.ducklake -1 --tables flights --rows 17,18 --json",
        codes="0 done, 1 conflicts with later snapshots",
    )
    revert.add_argument("snapshot", metavar="SNAPSHOT", help="its id, a tag or a time; negative counts from the newest")
    add_choices(revert)
    add_data_path(revert)
    add_json(revert)


def _revert(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given, read_only=False)
        snapshot = _snapshot(session, given.snapshot)
        choice: dict[str, Any] = {
            "tables": listed(given.tables),
            "rows": row_ids(given.rows),
            "on_conflict": given.on_conflict,
        }
        try:
            if given.preview:
                write([_preview(session.revert_preview(snapshot, **choice), as_json=given.json), "\n"])
                return DONE
            made = session.revert(snapshot, **choice, message=given.message)
        except RevertConflictError as error:
            write([conflicts_text(error, as_json=given.json), "\n"])
            return DIFFERENT
        if given.json:
            write([json.dumps({"snapshot": made.snapshot_id if made is not None else None}), "\n"])
        elif made is None:
            write(["Nothing is left to take back, so that no snapshot was made.\n"])
        else:
            write([f"Reverted as snapshot {made.snapshot_id}.\n"])
    return DONE


def _snapshot(session: Session, given: str) -> Any:
    if given in session.tags():
        return given
    return moment(given, session.current_snapshot().snapshot_id)


def _preview(diff: Any, *, as_json: bool) -> str:
    from ducklake_lab.diff.lake import LakeDiff
    from ducklake_lab.widgets.diff_text import text

    if as_json:
        return str(diff.to_json())
    return lake_diff_text(diff) if isinstance(diff, LakeDiff) else text(diff)
