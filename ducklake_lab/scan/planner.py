"""Plans scans: snapshot + predicate -> the files and inlined rows to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog import inlined, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import read_column_stats, read_data_files, visible_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_column_names, visible
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DataFile, DeleteFile, WrittenDeletes, WrittenFile
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID, StagedData, StagedFile
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.names import reused_names
from ducklake_lab.scan.plan import InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.pruning import columns_of, may_match


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
        staged: what the open transaction did to the table, seen on top of the snapshot.
        committed: the table is in the catalog; False for one the transaction made.
    """
    folder = lake.folder(state, table)
    at = state.snapshot.snapshot_id
    files = _committed_files(lake, connection, table, folder, at) if committed else []
    rows = (
        inlined.read_rows(connection, lake.database, table.table_id, table.columns, inlined.live_at(at))
        if committed
        else None
    )
    if staged is not None:
        files = _with_staged(files, staged, table, folder)
        rows = _rows_with_staged(rows, staged, table)
    kept = files
    if predicate is not None and committed and files:
        stats = read_column_stats(connection, table.table_id, columns_of(table, predicate), at)
        kept = [
            file
            for file in files
            if may_match(table, predicate, stats.get(file.data_file.data_file_id, {}), file.data_file.record_count)
        ]
    return ScanPlan(
        table=table,
        files=tuple(kept),
        inlined=InlinedRows(rows) if rows is not None and rows.num_rows else None,
        files_total=len(files),
        bytes_total=sum(file.data_file.file_size_bytes for file in files),
        data_path=folder,
        reused_names=reused_names(table.columns, read_column_names(connection, table.table_id) if committed else ()),
    )


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


def _committed_files(lake: Lake, connection: sa.Connection, table: Table, folder: str, at: int) -> list[ScanFile]:
    data_files = read_data_files(connection, table.table_id, visible(t.data_file, at))
    if not data_files:
        return []
    delete_files = visible_delete_files(connection, table.table_id, at)
    positions = inlined.read_deletes(connection, lake.database, table.table_id, at)
    files = []
    for data_file in data_files:
        delete = delete_files.get(data_file.data_file_id)
        files.append(
            ScanFile(
                data_file=data_file,
                path=paths.resolve(folder, data_file.path, data_file.path_is_relative),
                delete_file=delete,
                delete_path=paths.resolve(folder, delete.path, delete.path_is_relative) if delete else None,
                inlined_deletes=tuple(position for position, _ in positions.get(data_file.data_file_id, ())),
                deleted_up_to=at if delete is not None and delete.partial_max is not None else None,
                snapshot_id=data_file.begin_snapshot,
            )
        )
    return files


def _with_staged(files: list[ScanFile], staged: StagedData, table: Table, folder: str) -> list[ScanFile]:
    kept = [file for file in files if file.data_file.data_file_id not in staged.dropped_files]
    kept += [scan_file(_local_file(local_id, file, table), folder) for local_id, file in staged.files.items()]
    return [
        with_deletes(file, staged.deletes[file.data_file.data_file_id], folder)
        if file.data_file.data_file_id in staged.deletes
        else file
        for file in kept
    ]


def _local_file(local_id: int, staged: StagedFile, table: Table) -> DataFile:
    return DataFile(
        data_file_id=local_id,
        table_id=table.table_id,
        begin_snapshot=-1,
        end_snapshot=None,
        path=staged.file.path,
        path_is_relative=True,
        record_count=staged.file.record_count,
        file_size_bytes=staged.file.file_size_bytes,
        footer_size=staged.file.footer_size,
        row_id_start=staged.row_id_start,
        partition_id=staged.partition_id,
        partition_values=staged.file.partition_values,
    )


def with_deletes(file: ScanFile, deletes: WrittenDeletes, folder: str) -> ScanFile:
    """The file with uncommitted deletes: a delete file replaces what was there, positions add to it."""
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
        format="parquet",
        delete_count=deletes.delete_count,
        file_size_bytes=deletes.file_size_bytes,
        footer_size=deletes.footer_size,
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
        projected = inlined.project(batch.rows, batch.columns, table.columns)
        nulls = pa.nulls(projected.num_rows, pa.int64())
        parts.append(projected.add_column(1, SNAPSHOT_ID, nulls))
    return pa.concat_tables(parts) if parts else None
