"""The command `ducklake-lab revert`: takes one snapshot's changes back."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import RevertConflictError
from ducklake_lab.revert.choices import add_choices, listed, row_ids

if TYPE_CHECKING:
    from ducklake_lab.session import Session

#: Exit codes: done; conflicts that no rule settles.
DONE, CONFLICTS = 0, 1
_CODES = "Exit codes: 0 done, 1 conflicts with later snapshots, 2 an error, 130 stopped by Ctrl-C."
#: Conflicts that are printed as text.
_SHOWN = 50


def add_command(
    add: Callable[..., argparse.ArgumentParser],
    attach: Callable[..., None],
    moment: Callable[[str, int], Any],
    write: Callable[[Iterable[str]], None],
) -> None:
    """Adds the command.

    Args:
        add: makes the parser of a command, from its name, its help, its function and its examples.
        attach: attaches the lake that the words name to a session.
        moment: reads a snapshot id or time, given the newest id.
        write: prints texts.
    """
    revert = add(
        "revert",
        "take the changes of one snapshot back, as a new snapshot",
        lambda given: _revert(given, attach, moment, write),
        "lake.ducklake 13 --preview",
        "lake.ducklake 13 --on-conflict keep",
        "lake.ducklake -1 --tables flights --rows 17,18 --json",
    )
    revert.epilog = f"{str(revert.epilog).partition('Exit codes')[0]}{_CODES}"
    revert.add_argument("snapshot", metavar="SNAPSHOT", help="its id, a tag or a time; negative counts from the newest")
    add_choices(revert)
    revert.add_argument("--data-path", metavar="PATH", help="where the data is, if not where the catalog says")
    revert.add_argument("--json", action="store_true", help="print JSON")


def _revert(
    given: argparse.Namespace,
    attach: Callable[..., None],
    moment: Callable[[str, int], Any],
    write: Callable[[Iterable[str]], None],
) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given, read_only=False)
        snapshot = _snapshot(session, given.snapshot, moment)
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
            write([_conflicts(error, as_json=given.json), "\n"])
            return CONFLICTS
        if given.json:
            write([json.dumps({"snapshot": made.snapshot_id if made is not None else None}), "\n"])
        elif made is None:
            write(["Nothing is left to take back, so that no snapshot was made.\n"])
        else:
            write([f"Reverted as snapshot {made.snapshot_id}.\n"])
    return DONE


def _snapshot(session: Session, given: str, moment: Callable[[str, int], Any]) -> Any:
    if given in session.tags():
        return given
    return moment(given, session.current_snapshot().snapshot_id)


def _preview(diff: Any, *, as_json: bool) -> str:
    from ducklake_lab.diff.lake import LakeDiff
    from ducklake_lab.widgets.diff_text import text
    from ducklake_lab.widgets.html import visible

    if as_json:
        return str(diff.to_json())
    if isinstance(diff, LakeDiff):
        head = [f"{diff.lake}  snapshot {diff.start.snapshot_id} → uncommitted", f"{diff.unchanged:,} tables unchanged"]
        return "\n".join(visible(line) for line in [*head, *map(repr, diff)])
    return text(diff)


def _conflicts(error: RevertConflictError, *, as_json: bool) -> str:
    from ducklake_lab.widgets import values
    from ducklake_lab.widgets.html import visible

    if as_json:
        found = {"error": str(error), "total": error.total, "conflicts": [one.to_dict() for one in error.conflicts]}
        return json.dumps(found, ensure_ascii=False, indent=2)
    lines = [str(error)]
    for one in error.conflicts[:_SHOWN]:
        base, then, now = (values.text(value) for value in (one.base, one.then, one.now))
        lines.append(f"{one}: {base} → {then} → {now}")
    return "\n".join(visible(line) for line in lines)
