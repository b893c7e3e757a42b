"""Plan of restoring a table to its content at an earlier snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.model.changes import parse_changes
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.staged import FILE_NAME, ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan

#: Changes of a table that leave its rows the values that they have.
_KEEP_VALUES = frozenset(
    "deleted_from_table inlined_delete inline_flush flushed_inlined compacted_table merge_adjacent rewrite_delete".split()
)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Differences between a table now and then.

    Attributes:
        before: reads the table as it is now.
        after: reads it as it was then.
        gone: the data files that are there now and were not then.
        files: those that were there then and are not now, as they were then.
        both: those that are there now and were then, maybe with other rows, each as it is now and as it was then.
        stats: of these, by file id: one per leaf column.
        row_ids: of the inlined rows that are there now and were not then.
        rows: the inlined rows that were there then and are not now: `_ducklake_row_id`, then the columns of then.
        unwritten: the last snapshot up to which no row of then got another value; rows of files that begin by then are as they were.
    """

    before: ScanPlan
    after: ScanPlan
    gone: tuple[ScanFile, ...]
    files: tuple[ScanFile, ...]
    both: tuple[tuple[ScanFile, ScanFile], ...]
    stats: dict[int, tuple[ColumnStats, ...]]
    row_ids: tuple[int, ...]
    rows: pa.Table | None
    unwritten: int


def plan_restore(
    lake: Lake, connection: sa.Connection, now: CatalogState, current: Table | None, then: CatalogState, old: Table
) -> RestorePlan:
    """Compares a table at two snapshots; `current` is None where it has been dropped since."""
    after = plan_scan(lake, connection, then, old)
    # rows that were inlined when a table was dropped stay in the catalog, and come back with it
    before = plan_scan(lake, connection, replace(then, snapshot=now.snapshot), current or old)
    there = {file.data_file.data_file_id: file for file in before.files}
    wanted = {file.data_file.data_file_id: file for file in after.files}
    stats = read_column_stats(connection, old.table_id, None, then.snapshot.snapshot_id)
    missing, extra = _inlined(before.inlined, after.inlined)
    return RestorePlan(
        before=before,
        after=after,
        gone=tuple(file for file_id, file in there.items() if file_id not in wanted),
        files=tuple(file for file_id, file in wanted.items() if file_id not in there),
        both=tuple(
            (there[file_id], file)
            for file_id, file in wanted.items()
            if file_id in there and _content(there[file_id]) != _content(file)
        ),
        stats={file_id: tuple(columns.values()) for file_id, columns in stats.items()},
        row_ids=extra,
        rows=missing,
        unwritten=_unwritten(connection, old.table_id, then.snapshot.snapshot_id, now.snapshot.snapshot_id),
    )


def _unwritten(connection: sa.Connection, table_id: int, then: int, now: int) -> int:
    """The last snapshot after `then` up to which the table's rows were deleted and its files rewritten, and nothing else."""
    last = then
    for info in read_history(connection, between=(then + 1, now)):
        if info.snapshot_id != last + 1:
            break  # the changes of an expired snapshot are unknown
        for change in parse_changes(info.changes_made):
            if change.kind == "created_table" or (change.value == table_id and change.kind not in _KEEP_VALUES):
                return last
        last = info.snapshot_id
    return last


def _content(file: ScanFile) -> object:
    """Return the properties that decide which rows of a file are visible; `deleted_up_to` bounds its delete file."""
    return (file.delete_path, file.deleted_up_to, file.inlined_deletes, file.rows_up_to)


def _inlined(now: InlinedRows | None, then: InlinedRows | None) -> tuple[pa.Table | None, tuple[int, ...]]:
    """Return (earlier rows that are gone, ids of new rows); id and snapshot identify a row."""
    old, new = _keys(then), _keys(now)
    extra = tuple(row_id for row_id, _ in sorted(new - old))
    if then is None:
        return None, extra
    pairs = zip(then.rows.column(ROW_ID).to_pylist(), then.rows.column(SNAPSHOT_ID).to_pylist(), strict=True)
    missing = then.rows.filter(pa.array([pair not in new for pair in pairs], pa.bool_()))
    return (missing.drop_columns([SNAPSHOT_ID, FILE_NAME]) if missing.num_rows else None), extra


def _keys(inlined: InlinedRows | None) -> set[tuple[int, int]]:
    if inlined is None:
        return set()
    columns = (inlined.rows.column(name).to_pylist() for name in (ROW_ID, SNAPSHOT_ID))
    return set(zip(*columns, strict=True))
