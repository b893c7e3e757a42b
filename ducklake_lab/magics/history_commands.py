"""The subcommands of `%ducklake` that show the history of lakes, or take parts of it back."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.display import display

from ducklake_lab.errors import EntryNotFoundError, UsageError
from ducklake_lab.model.snapshot_names import named_snapshot

if TYPE_CHECKING:
    from ducklake_lab.magics.session import At, LakeSession
    from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser


class HistoryCommands:
    """Runs the subcommands about snapshots."""

    _session: Callable[[], LakeSession]

    def _run_snapshots(self, given: argparse.Namespace) -> SnapshotBrowser:
        from ducklake_lab.widgets import browsers

        return browsers.snapshots(self._session(), given.table)

    _run_history = _run_snapshots

    def _run_diff(self, given: argparse.Namespace) -> object:
        if given.revert and not given.patch:
            raise UsageError("--revert is of a patch; say where to write it with --patch FILE.")
        if given.end is None and self._is_snapshot(given.table):
            return self._lake_diff(given)
        table = self._session().table(given.table)
        more: dict[str, object] = {}
        if given.key:
            more["key"] = [name.strip() for name in given.key.split(",")]
        if given.other:
            more["other"] = given.other
        diff = table.diff(snapshot_option(given.start), snapshot_option(given.end), **more)
        shown: dict[str, object] = {"kind": given.kind, "changed": given.changed, "limit": given.rows}
        if given.sort:
            shown["sort"] = [(given.sort, given.descending)]
        if chosen := {name: value for name, value in shown.items() if value is not None}:
            diff = diff.showing(**chosen)
        if given.html:
            diff.to_html(Path(given.html))
            _say_written(given.html)
        if given.patch:
            diff.write_patch(Path(given.patch), revert=given.revert)
            _say_written(given.patch)
        return diff

    def _run_compare(self, given: argparse.Namespace) -> object:
        key = [name.strip() for name in given.key.split(",")] if given.key else None
        diff = self._session().compare(given.query, named_snapshot(given.start), snapshot_option(given.end), key=key)
        if given.rows is not None:
            diff = diff.showing(limit=given.rows)
        if given.html:
            diff.to_html(Path(given.html))
            _say_written(given.html)
        return diff

    def _run_when(self, given: argparse.Namespace) -> object:
        return self._session().when(
            given.query, snapshot_option(given.start), snapshot_option(given.end), given.monotonic
        )

    def _run_check(self, given: argparse.Namespace) -> object:
        return self._session().check(given.table, since=snapshot_option(given.since))

    def _run_lineage(self, given: argparse.Namespace) -> object:
        return self._session().lineage(given.name)

    def _is_snapshot(self, word: str) -> bool:
        """Whether the first word of a diff names a snapshot, not a table."""
        if not isinstance(named_snapshot(word), str):
            return True
        try:
            self._session().table(word)
        except EntryNotFoundError:
            if word not in self._session().tags():
                raise
            return True
        return False

    def _lake_diff(self, given: argparse.Namespace) -> object:
        of_one_table = ("other", "key", "kind", "changed", "sort", "rows", "patch")
        wrong = next((name for name in of_one_table if getattr(given, name) is not None), None)
        if wrong is not None:
            option = "--with" if wrong == "other" else f"--{wrong}"
            raise UsageError(f"{option} is of one table; name it: %ducklake diff TABLE {given.table}.")
        diff = self._session().diff(named_snapshot(given.table), snapshot_option(given.start))
        if given.html:
            diff.to_html(Path(given.html))
            _say_written(given.html)
        return diff

    def _run_blame(self, given: argparse.Namespace) -> object:
        columns = [name.strip() for name in given.columns.split(",")] if given.columns else None
        return self._session().table(given.table, at=snapshot_option(given.at)).blame(given.where, columns)

    def _run_life(self, given: argparse.Namespace) -> object:
        return self._session().table(given.table, at=snapshot_option(given.at)).life(given.row_id)

    def _run_restore(self, given: argparse.Namespace) -> object:
        from ducklake_lab.session.listings import Listing

        session = self._session()
        snapshot = session.restore(given.table, given.to)
        made = snapshot.snapshot_id if snapshot is not None else session.current_snapshot().snapshot_id
        note = (
            "restored"
            if snapshot is not None or session.in_transaction
            else "nothing differed, so no snapshot was made"
        )
        return Listing("", ("table", "is as of", "snapshot"), ((given.table, given.to, made),), noun="table", note=note)

    def _run_revert(self, given: argparse.Namespace) -> object:
        from ducklake_lab.revert.choices import listed, row_ids
        from ducklake_lab.session.listings import Listing

        session, snapshot = self._session(), named_snapshot(given.snapshot)
        choice: dict[str, object] = {
            "tables": listed(given.tables),
            "rows": row_ids(given.rows),
            "on_conflict": given.on_conflict,
        }
        if given.preview:
            return session.revert_preview(snapshot, **choice)
        made = session.revert(snapshot, **choice, message=given.message)
        note = (
            "reverted"
            if made is not None or session.in_transaction
            else "nothing was left to take back, so no snapshot was made"
        )
        newest = (made or session.current_snapshot()).snapshot_id
        return Listing("", ("reverted", "snapshot"), ((given.snapshot, newest),), noun="snapshot", note=note)


def snapshot_option(text: str | None) -> At:
    """Returns the snapshot that an option names by id, time or tag; None for None."""
    return None if text is None else named_snapshot(text)


def _say_written(path: str) -> None:
    display({"text/plain": f"Wrote {path}, {Path(path).stat().st_size:,} bytes."}, raw=True)
