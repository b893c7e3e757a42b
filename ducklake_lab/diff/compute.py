"""Computes diffs: the cost is that of the files that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.catalog.snapshots import read_history_of
from ducklake_lab.diff.baseline_stats import Known, known, reading
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.diff_states import Aligned, Side, Sides, align
from ducklake_lab.diff.model import ColumnChange, FileChange, FileDiff
from ducklake_lab.diff.pairs import RowCounts, check_unique, paired, sampled, side
from ducklake_lab.diff.pairs import count as count_pairs
from ducklake_lab.diff.rows import ChangedRows, places_of
from ducklake_lab.engine import changes
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import Rows
from ducklake_lab.errors import EntryNotFoundError, UsageError, did_you_mean
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.scan.changes import compare
from ducklake_lab.scan.history import lake_history
from ducklake_lab.scan.plan import ChangePlan, ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.scan.presence import check_present
from ducklake_lab.scan.visible_counts import count_rows, live_rows

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

#: Changed rows that are read for distributions, segments and the rows shown, where Spark has counted them.
SAMPLE = 100_000


def diff_sides(before: Side, after: Side, name: str, *, key: Sequence[str] = (), engines: Engines) -> Diff:
    """The diff of a table between two states, or of two tables.

    Args:
        key: columns by which rows are paired; by row id where there are none.
        engines: say whether it is computed in process, or counted and sampled on Spark.

    Raises:
        UsageError: the states do not share row ids and no key is given, or the key is not unique.
    """
    old, new = before.table or after.table, after.table or before.table
    if old is None or new is None:
        raise EntryNotFoundError(f"There is no table {name} in either state.")
    same = old.table_id == new.table_id and before.lake is after.lake
    _check_key(old, new, name, key, same=same)
    aligned = align(old, new, same=same)
    sides = Sides(before, after, aligned, same, _returned(before, old, new) if same else frozenset())
    earlier = _plan(before, aligned.before)
    later = _plan(after, aligned.after)
    check_present(after.lake, name, later.files)
    # files show the changes of the later of two snapshots
    backward = same and before.snapshot_id > after.snapshot_id
    change = compare(*((later, earlier) if backward else (earlier, later))) if same else ChangePlan(later, earlier, ())
    count = rows_to_read(change)
    schema = schema_changes(old, new, same=same)
    zone = before.lake.session.time_zone()
    baseline = _baseline(before, aligned)
    if engines.placing.place(replace(facts_of(change.files), rows=count)).is_here:
        changed = _in_process(_reads(change, aligned, None, backward), aligned, key, baseline, zone, reading(earlier))
        counts = changed.count()
    else:
        with engines.running() as spark:
            changed, counts = _on_spark(_reads(change, aligned, spark, backward), aligned, key, baseline, zone)
    summary = counts.summary(_live_rows(later))
    return Diff(
        table=name,
        start=snapshot_info(before),
        end=None if sides.is_open else snapshot_info(after),
        schema=schema,
        summary=summary,
        counts=counts,
        renamed=aligned.renamed,
        files=_files(earlier, later),
        changed=changed,
        sides=sides,
        readings=(reading(earlier), reading(later)),
        history=_history(before, after) if same else (),
        key=tuple(aligned.columns[place].name for place in places_of(aligned.columns, key)),
        other=_other(before, after) if not same else None,
    )


def _check_key(old: Table, new: Table, name: str, key: Sequence[str], *, same: bool) -> None:
    if not key and not same:
        raise UsageError(
            f"The rows of {name} have other row ids in the two states; say by which columns to pair them, "
            'e.g. key=["id"] or --key id.'
        )
    for column in key:
        for table in (old, new):
            if table.column(column) is None:
                hint = did_you_mean(column, [each.name for each in table.columns])
                raise EntryNotFoundError(f'{table.name} has no column "{column}" to pair rows by.{hint}')


def _plan(side: Side, table: Table) -> ScanPlan:
    with side.lake.connect() as connection:
        if side.table is not None:
            return plan_scan(side.lake, connection, side.state, table, staged=side.staged, committed=side.committed)
    return ScanPlan(table, (), None, 0, 0, side.lake.data_path)


def _baseline(before: Side, aligned: Aligned) -> Known:
    """Return the statistics of the earlier state, under the later state's names."""
    known_before = known(before)
    earlier = {was: now for now, was in aligned.renamed.items()}
    absent = (
        set()
        if before.table is None
        else {c.name for c in aligned.columns if before.table.column_by_id(c.column_id) is None}
    )
    return Known(
        # NULLs in a column that did not exist are no news
        frozenset(earlier.get(name, name) for name in known_before.constant) | absent,
        {earlier.get(name, name): share for name, share in known_before.null_shares.items()},
        {earlier.get(name, name): bounds for name, bounds in known_before.ranges.items()},
    )


def _returned(before: Side, old: Table, new: Table) -> frozenset[int]:
    """The columns that the later state has and the earlier one lacks, although it is younger than they are."""
    made = {column.column_id for column in new.columns} - {column.column_id for column in old.columns}
    if not made:
        return frozenset()
    with before.lake.connect() as connection:
        versions = before.lake.column_versions(connection, new.table_id)
    return frozenset(v.column_id for v in versions if v.column_id in made and v.begin_snapshot <= before.snapshot_id)


_Reads = tuple[Callable[[], Rows], Callable[[], Rows]]


def _reads(change: ChangePlan, aligned: Aligned, spark: SparkSession | None, backward: bool) -> _Reads:
    """Return functions that read the deleted rows, and the new ones.

    Args:
        backward: the change leads from the later state to the earlier one.
    """
    gone = lambda: side(changes.removed(change, spark), aligned.columns)  # noqa: E731
    new = lambda: side(changes.added(change, spark), aligned.columns)  # noqa: E731
    return (new, gone) if backward else (gone, new)


def _in_process(
    reads: _Reads,
    aligned: Aligned,
    key: Sequence[str],
    baseline: Known,
    time_zone: str,
    earlier: Callable[[Sequence[int]], pa.Table] | None,
) -> ChangedRows:
    read_removed, read_added = reads
    # few row groups to a file: each is read by one thread, so that the sides are read at once
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(lambda: read_added().arrow())
        removed = read_removed().arrow()
        added = later.result()
    return ChangedRows(
        removed,
        added,
        aligned.columns,
        only_before=aligned.only_before,
        key=key,
        known=baseline,
        time_zone=time_zone,
        earlier=earlier,
    )


def _on_spark(
    reads: _Reads, aligned: Aligned, key: Sequence[str], baseline: Known, time_zone: str
) -> tuple[ChangedRows, RowCounts]:
    """A sample of the changed rows, and exact counts of all of them."""
    columns, later = aligned.columns, len(aligned.columns) - aligned.only_before
    places = places_of(columns, key)
    removed, added = (read() for read in reads)
    for rows, state in ((removed, "earlier"), (added, "later")) if key else ():
        check_unique(rows, places, key, state)
    pairs = paired(removed, added, columns, later, places)
    counts = count_pairs(pairs, later)
    share = min(1.0, SAMPLE / max(counts.changed, 1))
    return ChangedRows(
        *sampled(pairs, columns, share, places),
        columns,
        only_before=aligned.only_before,
        key=key,
        known=baseline,
        time_zone=time_zone,
        total=counts.changed if share < 1 else None,
        from_spark=True,
    ), counts


def schema_changes(old: Table, new: Table, *, same: bool = True) -> list[ColumnChange]:
    """Top-level columns that differ, by column id (by name in two tables): in the later order, dropped ones last."""
    before = {column.column_id if same else column.name.casefold(): column for column in old.columns}
    kept = set()
    changes = []
    for column in new.columns:
        place = column.column_id if same else column.name.casefold()
        kept.add(place)
        was = before.get(place)
        now = (column.name, column.data_type.sql())
        if was is None:
            changes.append(ColumnChange("added", column.column_id, None, now))
            continue
        then = (was.name, was.data_type.sql())
        if then[0] != now[0]:
            changes.append(ColumnChange("renamed", column.column_id, then, now))
        if then[1] != now[1]:
            changes.append(ColumnChange("retyped", column.column_id, then, now))
    changes += [
        ColumnChange("dropped", column.column_id, (column.name, column.data_type.sql()), None)
        for place, column in before.items()
        if place not in kept
    ]
    return changes


def rows_to_read(change: ChangePlan) -> int:
    """Count the rows that a diff has to read; more than the changed ones where files were rewritten."""
    rows = sum(file.data_file.record_count for plan in (change.inserted, change.removed) for file in plan.files)
    inlined: int = sum(plan.inlined.rows.num_rows for plan in (change.inserted, change.removed) if plan.inlined)
    return rows + inlined + sum(_deleted(rows.after) for rows in change.deleted)


def _deleted(file: ScanFile) -> int:
    return len(file.inlined_deletes) + (file.delete_file.delete_count if file.delete_file is not None else 0)


def _live_rows(plan: ScanPlan) -> int:
    inlined = plan.inlined.rows.num_rows if plan.inlined is not None else 0
    return inlined + live_rows(plan.files)


def _files(before: ScanPlan, after: ScanPlan) -> FileDiff:
    old, new = _by_id(before), _by_id(after)
    added = [file for file_id, file in new.items() if file_id not in old]
    removed = [file for file_id, file in old.items() if file_id not in new]
    old_deletes, new_deletes = _by_delete_path(before), _by_delete_path(after)
    gained = [file for path, file in new_deletes.items() if path not in old_deletes]
    lost = [file for path, file in old_deletes.items() if path not in new_deletes]
    delete_files = _delete_files(gained)
    return FileDiff(
        unchanged=len(new) - len(added),
        added=len(added),
        removed=len(removed),
        bytes_added=sum(file.data_file.file_size_bytes for file in added),
        bytes_removed=sum(file.data_file.file_size_bytes for file in removed),
        delete_files_added=len(gained),
        delete_bytes_added=sum(file.bytes for file in delete_files),
        only_after=(*_data_files(added), *delete_files),
        only_before=(*_data_files(removed), *_delete_files(lost)),
    )


def _by_id(plan: ScanPlan) -> dict[int, ScanFile]:
    return {file.data_file.data_file_id: file for file in plan.files}


def _by_delete_path(plan: ScanPlan) -> dict[str, ScanFile]:
    return {file.delete_path: file for file in plan.files if file.delete_path is not None}


def _data_files(files: Sequence[ScanFile]) -> list[FileChange]:
    whole = [replace(file, delete_file=None, delete_path=None, inlined_deletes=()) for file in files]
    return [
        FileChange(file.path, counted.rows, file.data_file.file_size_bytes, "data")
        for file, counted in zip(files, count_rows(whole), strict=True)
    ]


def _delete_files(files: Sequence[ScanFile]) -> list[FileChange]:
    """Return the delete files of the data files, with the number of deletions that apply."""
    alone = [replace(file, inlined_deletes=(), rows_up_to=None) for file in files]
    return [
        FileChange(file.delete_path, counted.deleted, file.delete_file.file_size_bytes, "deletes")
        for file, counted in zip(files, count_rows(alone), strict=True)
        if file.delete_file is not None and file.delete_path is not None
    ]


def snapshot_info(side: Side) -> SnapshotInfo:
    """The snapshot of a side, its time in the session's zone."""
    with side.lake.connect() as connection:
        info = read_history_of(connection, side.snapshot_id)
        return replace(info, snapshot_time=side.lake.local(info.snapshot_time))


def _history(before: Side, after: Side) -> Sequence[HistoryEntry]:
    """The snapshots after the earlier state, up to the later one, that touched the table."""
    table = after.table or before.table
    assert table is not None  # checked before
    if after.snapshot_id <= before.snapshot_id:
        return ()
    with after.lake.connect() as connection:
        return lake_history(
            after.lake, connection, table_id=table.table_id, between=(before.snapshot_id + 1, after.snapshot_id)
        )


def _other(before: Side, after: Side) -> str:
    assert before.table is not None and after.table is not None  # two tables are there, or they were one
    return f"{after.lake.alias}.{after.state.qualified_name(after.table)}"
