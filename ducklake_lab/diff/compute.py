"""Computes diffs: the cost is that of the files that differ."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history_of
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.model import ColumnChange, FileDiff
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.local import reader
from ducklake_lab.model.entries import LOCAL_ID_START, Column, Table
from ducklake_lab.model.staged import StagedData
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changes import compare
from ducklake_lab.scan.plan import ChangePlan, ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan

#: Changed rows up to which a diff is computed in process.
MAX_CHANGED_ROWS = 3_000_000


def diff_states(
    lake: Lake,
    before: CatalogState,
    after: CatalogState,
    old: Table,
    new: Table,
    name: str,
    *,
    staged: StagedData | None = None,
) -> Diff:
    """The diff of a table between two states of a lake.

    Args:
        old: the table in the earlier state.
        new: the table in the later one.
        staged: the open transaction's changes to it, where the later state is not committed.

    Raises:
        UnsupportedFeatureError: more rows changed than are looked at in process.
    """
    dropped = _dropped(old, new)
    combined = replace(new, columns=(*new.columns, *dropped))
    uncommitted = staged is not None or after.snapshot is before.snapshot
    with lake.connect() as connection:
        earlier = plan_scan(lake, connection, before, combined)
        later = plan_scan(lake, connection, after, combined, staged=staged)
        start = read_history_of(connection, before.snapshot.snapshot_id)
        end = None if uncommitted else read_history_of(connection, after.snapshot.snapshot_id)
        constant, null_shares = _known(connection, new, before)
    # that rows have no value in a column that was not there is no news
    constant |= {column.name for column in new.columns if old.column_by_id(column.column_id) is None}
    change = compare(earlier, later)
    _check_size(change, name)
    added = reader.read(change.inserted, virtual=True)
    removed = reader.read(change.removed, virtual=True)
    if change.deleted:
        removed = pa.concat_tables([removed, reader.read_deleted(change.removed, change.deleted)])
    changed = ChangedRows(
        removed, added, combined.columns, only_before=len(dropped), constant=constant, null_shares=null_shares
    )
    summary = changed.summary(_rows(later))
    return Diff(
        table=name,
        start=start,
        end=end,
        schema=schema_changes(old, new),
        summary=summary,
        columns=changed.columns(summary),
        files=_files(earlier, later, change),
        patterns=changed.patterns(summary),
        changed=changed,
    )


def schema_changes(old: Table, new: Table) -> list[ColumnChange]:
    """Top-level columns that differ, by column id: in the order of the later schema, dropped ones last."""
    before = {column.column_id: column for column in old.columns}
    changes = []
    for column in new.columns:
        was = before.get(column.column_id)
        now = (column.name, column.data_type.sql())
        if was is None:
            changes.append(ColumnChange("added", column.column_id, None, now))
            continue
        then = (was.name, was.data_type.sql())
        if then[0] != now[0]:
            changes.append(ColumnChange("renamed", column.column_id, then, now))
        if then[1] != now[1]:
            changes.append(ColumnChange("retyped", column.column_id, then, now))
    kept = {column.column_id for column in new.columns}
    changes += [
        ColumnChange("dropped", column.column_id, (column.name, column.data_type.sql()), None)
        for column in old.columns
        if column.column_id not in kept
    ]
    return changes


def _dropped(old: Table, new: Table) -> tuple[Column, ...]:
    """Columns only the earlier schema has, under names the later one does not use."""
    kept = {column.column_id for column in new.columns}
    names = {column.name.casefold() for column in new.columns}
    return tuple(
        replace(column, name=f"{column.name} (dropped)") if column.name.casefold() in names else column
        for column in old.columns
        if column.column_id not in kept
    )


def _check_size(change: ChangePlan, name: str) -> None:
    rows = sum(file.data_file.record_count for plan in (change.inserted, change.removed) for file in plan.files) + sum(
        _deleted(rows.after) for rows in change.deleted
    )
    if rows > MAX_CHANGED_ROWS:
        raise UnsupportedFeatureError(
            f"{rows:,} rows of {name} may have changed; a diff looks at up to {MAX_CHANGED_ROWS:,}. "
            "Choose snapshots closer together, or query the change feed with table_changes."
        )


def _deleted(file: ScanFile) -> int:
    return len(file.inlined_deletes) + (file.delete_file.delete_count if file.delete_file is not None else 0)


def _rows(plan: ScanPlan) -> int:
    """Live rows; asked of the reader where a delete file holds several snapshots' deletions."""
    inlined = plan.inlined.rows.num_rows if plan.inlined is not None else 0
    exact = [file for file in plan.files if file.deleted_up_to is None]
    partial = [file for file in plan.files if file.deleted_up_to is not None]
    rows = inlined + sum(file.data_file.record_count - _deleted(file) for file in exact)
    if partial:
        narrow = replace(plan.table, columns=plan.table.columns[:1])
        rows += reader.read(replace(plan, table=narrow, files=tuple(partial), inlined=None)).num_rows
    return rows


def _files(before: ScanPlan, after: ScanPlan, change: ChangePlan) -> FileDiff:
    old_deletes = {file.delete_path for file in before.files}
    new_deletes = {
        file.delete_path: file.delete_file.file_size_bytes
        for file in after.files
        if file.delete_file is not None and file.delete_path not in old_deletes
    }
    return FileDiff(
        unchanged=len(after.files) - len(change.inserted.files),
        added=len(change.inserted.files),
        removed=len(change.removed.files),
        bytes_added=change.inserted.bytes_read,
        bytes_removed=change.removed.bytes_read,
        delete_files_added=len(new_deletes),
        delete_bytes_added=sum(new_deletes.values()),
    )


def _known(connection: sa.Connection, table: Table, state: CatalogState) -> tuple[frozenset[str], dict[str, float]]:
    """From the files' statistics: columns of one value, and the share of NULL per column."""
    if table.table_id >= LOCAL_ID_START:
        return frozenset(), {}
    files = read_column_stats(connection, table.table_id, None, state.snapshot.snapshot_id)
    constant, shares = set(), {}
    for column in table.columns:
        stats = [known[column.column_id] for known in files.values() if column.column_id in known]
        values: set[str | None] = {text for known in stats for text in (known.min_value, known.max_value)}
        if len(values) == 1 and None not in values:
            constant.add(column.name)
        nulls, others = sum(s.null_count or 0 for s in stats), sum(s.value_count or 0 for s in stats)
        if nulls + others:
            shares[column.name] = nulls / (nulls + others)
    return frozenset(constant), shares
