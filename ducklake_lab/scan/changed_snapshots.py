"""Snapshots that may have made the changes of a plan, by file lists."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ducklake_lab.model.changes import OF_ROWS, parse_changes, rewritten_tables
from ducklake_lab.model.staged import SNAPSHOT_ID
from ducklake_lab.scan.plan import ChangePlan, DeletedRows, ScanFile


def changing_snapshots(plan: ChangePlan, known: Sequence[int]) -> set[int]:
    """Return the snapshots that may have made the changes of a plan, as far as file lists say.

    Args:
        known: the ids of the lake's snapshots, ascending. A change by an expired one counts as one by the next.
    """
    by_file = snapshots_by_file(plan.inserted.files, plan.removed.files, plan.deleted, known)
    snapshot_ids = {snapshot_id for snapshots in by_file.values() for snapshot_id in snapshots}
    for scan in (plan.inserted, plan.removed):
        if scan.inlined is not None:
            snapshot_ids |= set(scan.inlined.rows.column(SNAPSHOT_ID).unique().to_pylist())
    return next_known(snapshot_ids, known)


def snapshots_by_file(
    inserted: Iterable[ScanFile], removed: Iterable[ScanFile], deleted: Iterable[DeletedRows], known: Sequence[int]
) -> dict[int, set[int]]:
    """Return the snapshots that may have inserted rows into data files, or taken some away, by file id.

    Args:
        known: as for `changing_snapshots`.
    """
    by_file: dict[int, set[int]] = defaultdict(set)
    for rows in deleted:
        by_file[rows.after.data_file.data_file_id].add(rows.snapshot_id)
    for file in removed:
        if file.snapshot_id is not None:
            by_file[file.data_file.data_file_id].add(file.snapshot_id)
    for file in inserted:
        by_file[file.data_file.data_file_id].update(_inserting(file, known))
    return by_file


def _inserting(file: ScanFile, known: Sequence[int]) -> Iterator[int]:
    """Yield the snapshots that may have inserted rows of a file; one with rows of several says only the first and last."""
    first, last = file.data_file.begin_snapshot, file.data_file.partial_max
    if file.rows_from is None:
        yield first
    if last is not None:
        yield from (
            s for s in known[bisect_left(known, first) : bisect_right(known, last)] if s not in file.rows_except
        )
        yield last


def next_known(snapshot_ids: set[int], known: Sequence[int]) -> set[int]:
    """Return the first known snapshot at or after each one."""
    places = {bisect_left(known, snapshot_id) for snapshot_id in snapshot_ids}
    return {known[place] for place in places if place < len(known)}


def rewriting_and_changing(table_id: int, changes_made: Mapping[int, str]) -> set[int]:
    """Return the snapshots that rewrote files of a table and changed its rows too, which a change feed leaves out.

    Args:
        changes_made: the changes of snapshots by their ids.
    """
    snapshot_ids = set()
    for snapshot_id, text in changes_made.items():
        if f":{table_id}" not in text:
            continue
        changes = [change for change in parse_changes(text) if change.value == table_id]
        if rewritten_tables(changes) and any(change.kind in OF_ROWS for change in changes):
            snapshot_ids.add(snapshot_id)
    return snapshot_ids
