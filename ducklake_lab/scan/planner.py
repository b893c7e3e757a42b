"""Plans scans: snapshot + predicate -> the files and inlined rows to read."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.attachments import partition_specs
from ducklake_lab.catalog.files import (
    count_data_files,
    join_stats,
    read_candidates,
    read_data_files,
    visible_delete_files,
)
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.projection import project
from ducklake_lab.catalog.tables import visible
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DataFile, DeleteFile, WrittenDeletes, WrittenFile
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.staged import LOCAL_ROWS, ROW_ID, SNAPSHOT_ID, Compaction, FlushedFile, StagedData, StagedFile
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan import prefilter
from ducklake_lab.scan.column_history import ColumnHistory, check_encrypted, history_of
from ducklake_lab.scan.partitioned import UNPARTITIONED, Partitioning
from ducklake_lab.scan.plan import InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.positions import deleted_positions
from ducklake_lab.scan.pruning import columns_of, may_match
from ducklake_lab.storage import Storage

#: Columns of a predicate whose statistics are looked at; a database joins only so many.
_JOINED_COLUMNS = 16


def plan_scan(
    lake: Lake,
    connection: sa.Connection,
    state: CatalogState,
    table: Table,
    *,
    predicate: Predicate | None = None,
    staged: StagedData | None = None,
    committed: bool = True,
) -> ScanPlan:
    """Plans to read a table as of the state's snapshot.

    Args:
        predicate: rows for which it is not true need not be read.
        staged: the open transaction's changes of the table, on top of the snapshot.
        committed: the table is in the catalog; False for one the transaction made.
    """
    folder = lake.folder(state, table)
    at = state.snapshot.snapshot_id
    scanned = _Files()
    history = history_of(table.columns, lake.column_versions(connection, table.table_id) if committed else ())
    if committed:
        gone = _gone(staged) if staged is not None else set()
        scanned = _committed_files(lake, connection, table, folder, at, predicate, gone, history)
    rows = (
        inlined.read_rows(
            connection,
            lake.database,
            table.table_id,
            table.columns,
            inlined.live_at(connection, at),
            unaltered=_unaltered(lake.state(connection, state.snapshot), table, history),
            time_zone=lake.session.time_zone(),
        )
        if committed
        else None
    )
    if staged is not None:
        if staged.flushed_tables:
            rows = None
        scanned = _with_staged(scanned, staged, table, folder)
        rows = _rows_with_staged(rows, staged, table)
    lake.check_data_path(file.path for file in scanned.files)
    check_encrypted(table.columns, scanned.files, history.reused)
    return ScanPlan(
        table=replace(table, columns=history.columns),
        files=tuple(scanned.files),
        inlined=InlinedRows(rows) if rows is not None and rows.num_rows else None,
        files_total=scanned.total,
        bytes_total=scanned.bytes_total,
        data_path=folder,
        reused_names=history.reused,
        time_zone=lake.session.time_zone(),
        retyped=history.retyped,
    )


def _unaltered(state: CatalogState, table: Table, history: ColumnHistory) -> range:
    """Snapshots, up to a committed state's, at which a table certainly has the columns it is read with."""
    committed = state.tables.get(table.table_id)
    if committed is None or committed.columns != table.columns:
        return range(0)
    parts = [part for column in committed.columns for part in column.walk()]
    begins = [part.begin_snapshot for part in parts if part.begin_snapshot is not None]
    if len(begins) < len(parts) or history.ids != {part.column_id for part in parts}:
        return range(0)  # some were dropped at an unknown snapshot
    return range(max(begins), state.snapshot.snapshot_id + 1)


@dataclass(frozen=True, slots=True)
class _Files:
    """Files to read; number and bytes of all files before pruning."""

    files: Sequence[ScanFile] = ()
    total: int = 0
    bytes_total: int = 0


def plan_written(table: Table, files: Sequence[WrittenFile], folder: str) -> ScanPlan:
    """Plans to read files that were just written for a table."""
    scans = [scan_file(_local_file(-1, StagedFile(file, None, 0), table), folder) for file in files]
    return ScanPlan(table, tuple(scans), None, len(scans), 0, folder)


def scan_file(
    data_file: DataFile, folder: str, deletes: ScanFile | None = None, *, snapshot_id: int | None = None
) -> ScanFile:
    """A file to read whole, or with the deletes of another ScanFile of it."""
    return ScanFile(
        data_file=data_file,
        path=paths.resolve(folder, data_file.path, data_file.path_is_relative),
        delete_file=deletes.delete_file if deletes is not None else None,
        delete_path=deletes.delete_path if deletes is not None else None,
        inlined_deletes=deletes.inlined_deletes if deletes is not None else (),
        deleted_up_to=deletes.deleted_up_to if deletes is not None else None,
        snapshot_id=_snapshot_of(data_file) if snapshot_id is None else snapshot_id,
    )


def _snapshot_of(data_file: DataFile) -> int | None:
    return data_file.begin_snapshot if data_file.begin_snapshot >= 0 else None


def _committed_files(
    lake: Lake,
    connection: sa.Connection,
    table: Table,
    folder: str,
    at: int,
    predicate: Predicate | None,
    gone: Set[int],
    history: ColumnHistory,
) -> _Files:
    """Read the files visible at a snapshot that may hold matching rows, without those that the transaction dropped."""
    present = visible(t.data_file, at)
    if predicate is None:
        data_files = read_data_files(connection, table.table_id, present)
    else:
        total, size = count_data_files(connection, table.table_id, present, gone)
        data_files = matching_files(lake, connection, table, predicate, present, history) if total else []
    data_files = [file for file in data_files if file.data_file_id not in gone]
    if predicate is None:
        total, size = len(data_files), sum(file.file_size_bytes for file in data_files)
    if not data_files:
        return _Files((), total, size)
    return _Files(scan_files(lake, connection, table.table_id, folder, at, data_files), total, size)


def scan_files(
    lake: Lake, connection: sa.Connection, table_id: int, folder: str, at: int, data_files: Sequence[DataFile]
) -> list[ScanFile]:
    """Return data files of a table visible at a snapshot, with the deletions of that time."""
    ids = [file.data_file_id for file in data_files]
    delete_files = visible_delete_files(connection, table_id, at, ids)
    positions = inlined_deletions.read(connection, lake.database, table_id, at)
    files = []
    for data_file in data_files:
        file_id = data_file.data_file_id
        applying: list[DeleteFile | None] = [*delete_files.get(file_id, ())]
        *others, delete = applying or [None]
        file = ScanFile(
            data_file=data_file,
            path=paths.resolve(folder, data_file.path, data_file.path_is_relative),
            delete_file=delete,
            delete_path=paths.resolve(folder, delete.path, delete.path_is_relative) if delete else None,
            inlined_deletes=tuple(position for position, _ in positions.get(file_id, ())),
            deleted_up_to=at if may_name_snapshots(data_file, delete) else None,
            rows_up_to=rows_up_to(data_file, at),
            snapshot_id=data_file.begin_snapshot,
        )
        files.append(_with_others(file, others, folder, at) if others else file)
    return files


def matching_files(
    lake: Lake,
    connection: sa.Connection,
    table: Table,
    predicate: Predicate,
    present: sa.ColumnElement[bool],
    history: ColumnHistory,
) -> list[DataFile]:
    """Return the data files that may hold rows for which the predicate is true, of those that a condition chooses."""
    joined = join_stats(sorted(columns_of(table, predicate))[:_JOINED_COLUMNS])
    partitioning = partitioning_of(connection, table, history) if table.partition is not None else UNPARTITIONED
    wanted = prefilter.may_match(table, predicate, joined, lake.database.backend, partitioning)
    condition = present if wanted is None else sa.and_(present, wanted)
    candidates = read_candidates(connection, table.table_id, condition, joined)
    if table.partition is None and any(file.partition_id is not None for file, _ in candidates):
        partitioning = partitioning_of(connection, table, history)
    return [
        file
        for file, stats in candidates
        if may_match(table, predicate, stats, file.record_count, partitioning.keys_of(file))
    ]


def partitioning_of(connection: sa.Connection, table: Table, history: ColumnHistory) -> Partitioning:
    """Returns the partition keys that a table ever had."""
    return Partitioning(partition_specs(connection, table.table_id), history.retyped)


def _with_others(file: ScanFile, others: Sequence[DeleteFile | None], folder: str, at: int) -> ScanFile:
    """Add the positions in further delete files to the inlined deletions of a file."""
    scans = [
        replace(
            file,
            delete_file=other,
            delete_path=paths.resolve(folder, other.path, other.path_is_relative),
            deleted_up_to=at,
        )
        for other in others
        if other is not None
    ]
    positions = {int(p) for scan in scans for p in next(iter(deleted_positions([scan], Storage()).values()))}
    return replace(file, inlined_deletes=tuple(sorted({*file.inlined_deletes, *positions})))


def may_name_snapshots(data_file: DataFile, delete: DeleteFile | None) -> bool:
    """Return whether a delete file may have the snapshot ids of its deletions.

    One written together with a file of rows of several snapshots has them, though its `partial_max` does not say so.
    """
    return delete is not None and (delete.partial_max is not None or data_file.partial_max is not None)


def rows_up_to(data_file: DataFile, at: int) -> int | None:
    """The snapshot after which rows of the file are not visible at a snapshot; None where all are."""
    return at if data_file.partial_max is not None and data_file.partial_max > at else None


def _gone(staged: StagedData) -> set[int]:
    """The committed files that the transaction has dropped or compacted."""
    return staged.dropped_files | {s.data_file_id for c in staged.compactions.values() for s in c.sources}


def _with_staged(scanned: _Files, staged: StagedData, table: Table, folder: str) -> _Files:
    kept: list[ScanFile] = []
    kept += [_flushed_file(local_id, flushed, table, folder) for local_id, flushed in staged.flushed.items()]
    kept += [
        scan_file(_compacted_file(local_id, c, c.file, table), folder)
        for local_id, c in staged.compactions.items()
        if c.file is not None
    ]
    kept += [scan_file(_local_file(local_id, file, table), folder) for local_id, file in staged.files.items()]
    files = [
        with_deletes(file, staged.deletes[file.data_file.data_file_id], folder)
        if file.data_file.data_file_id in staged.deletes
        else file
        for file in (*scanned.files, *kept)
    ]
    size = sum(file.data_file.file_size_bytes for file in kept)
    return _Files(files, scanned.total + len(kept), scanned.bytes_total + size)


def _flushed_file(local_id: int, flushed: FlushedFile, table: Table, folder: str) -> ScanFile:
    data_file = replace(
        _local_file(local_id, StagedFile(flushed.file, flushed.partition_id, flushed.row_id_start), table),
        begin_snapshot=flushed.begin_snapshot,
        partial_max=flushed.partial_max,
    )
    scan = scan_file(data_file, folder)
    return scan if flushed.deletes is None else with_deletes(scan, flushed.deletes, folder)


def _compacted_file(local_id: int, compaction: Compaction, file: WrittenFile, table: Table) -> DataFile:
    first = compaction.begin_snapshot
    return replace(
        _local_file(local_id, StagedFile(file, compaction.partition_id, 0), table),
        begin_snapshot=-1 if first is None else first,
        partial_max=compaction.partial_max,
        row_id_start=compaction.row_id_start,
    )


def _local_file(local_id: int, staged: StagedFile, table: Table) -> DataFile:
    return DataFile(
        data_file_id=local_id,
        table_id=table.table_id,
        begin_snapshot=-1,
        end_snapshot=None,
        path=staged.file.path,
        path_is_relative=staged.file.path_is_relative,
        record_count=staged.file.record_count,
        file_size_bytes=staged.file.file_size_bytes,
        footer_size=staged.file.footer_size,
        row_id_start=staged.row_id_start,
        partition_id=staged.partition_id,
        partition_values=staged.file.partition_values,
        mapping=staged.file.mapping,
        encryption_key=staged.file.encryption_key,
    )


def with_deletes(file: ScanFile, deletes: WrittenDeletes, folder: str) -> ScanFile:
    """Add uncommitted deletes to the file: a delete file replaces the earlier one, positions add to it."""
    positions = tuple(sorted({*file.inlined_deletes, *deletes.positions}))
    if deletes.path is None:
        return replace(file, inlined_deletes=positions)
    delete_file = DeleteFile(
        delete_file_id=-1,
        data_file_id=deletes.data_file_id,
        begin_snapshot=-1,
        end_snapshot=None,
        path=deletes.path,
        path_is_relative=True,
        format=deletes.format,
        delete_count=deletes.delete_count,
        file_size_bytes=deletes.file_size_bytes,
        footer_size=deletes.footer_size,
        encryption_key=deletes.encryption_key,
    )
    return replace(
        file,
        delete_file=delete_file,
        delete_path=folder + deletes.path,
        inlined_deletes=positions,
        deleted_up_to=None,
    )


def _rows_with_staged(rows: pa.Table | None, staged: StagedData, table: Table) -> pa.Table | None:
    parts = []
    if rows is not None:
        if staged.deleted_row_ids:
            deleted = pa.array(sorted(staged.deleted_row_ids), pa.int64())
            rows = rows.filter(pc.invert(pc.is_in(rows.column(ROW_ID), deleted)))
        parts.append(rows)
    for batch in staged.rows:
        projected = project(batch.rows, batch.columns, table.columns)
        nulls = pa.nulls(projected.num_rows, pa.int64())
        parts.append(inlined.with_place(projected.add_column(1, SNAPSHOT_ID, nulls), LOCAL_ROWS))
    return pa.concat_tables(parts) if parts else None
