"""Snapshots that may have changed rows of a table which a predicate needs: by file lists and statistics."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.staged import SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.column_history import history_of
from ducklake_lab.scan.plan import ChangePlan, ScanFile, ScanPlan
from ducklake_lab.scan.planner import matching_files


def plan_relevant(
    lake: Lake,
    connection: sa.Connection,
    state: CatalogState,
    table: Table,
    predicate: Predicate | None,
    start: int,
    end: int,
) -> ChangePlan:
    """Plans the change feed of a table, without files that hold no row for which a predicate is true.

    Files that were only rewritten, as by compaction or a flush, are not among them.

    Args:
        start: the first snapshot, inclusive.
        end: the last one, inclusive; `state` is that of it.
    """
    plan = plan_feed(lake, connection, state, table, start, end)
    if predicate is None:
        return plan
    history = history_of(table.columns, lake.column_versions(connection, table.table_id))
    since = t.data_file.c.begin_snapshot <= end
    matching = {file.data_file_id for file in matching_files(lake, connection, table, predicate, since, history)}

    def kept(scan: ScanPlan) -> ScanPlan:
        return replace(scan, files=tuple(file for file in scan.files if file.data_file.data_file_id in matching))

    return ChangePlan(
        inserted=kept(plan.inserted),
        removed=kept(plan.removed),
        deleted=tuple(rows for rows in plan.deleted if rows.after.data_file.data_file_id in matching),
    )


def changing_snapshots(plan: ChangePlan, known: Sequence[int]) -> set[int]:
    """Return the snapshots that may have made the changes of a plan, as far as file lists say.

    Args:
        known: the ids of the lake's snapshots, ascending. A change by an expired one counts as one by the next.
    """
    found = {rows.snapshot_id for rows in plan.deleted}
    found |= {file.snapshot_id for file in plan.removed.files if file.snapshot_id is not None}
    for scan in (plan.inserted, plan.removed):
        if scan.inlined is not None:
            found |= set(scan.inlined.rows.column(SNAPSHOT_ID).unique().to_pylist())
    for file in plan.inserted.files:
        found.update(_inserting(file, known))
    return next_known(found, known)


def _inserting(file: ScanFile, known: Sequence[int]) -> Iterator[int]:
    """Yield the snapshots that may have inserted rows of a file; one with rows of several says only the first and last."""
    first, last = file.data_file.begin_snapshot, file.data_file.partial_max
    yield first
    if last is not None:
        yield from (
            s for s in known[bisect_left(known, first) : bisect_right(known, last)] if s not in file.rows_except
        )
        yield last


def next_known(found: set[int], known: Sequence[int]) -> set[int]:
    """Return the first known snapshot at or after each one."""
    places = {bisect_left(known, snapshot_id) for snapshot_id in found}
    return {known[place] for place in places if place < len(known)}
