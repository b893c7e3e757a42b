"""Rows of data files as they are stored, deleted ones included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import read_data_files
from ducklake_lab.doctor.context import Context
from ducklake_lab.engine.in_process import reader
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DataFile
from ducklake_lab.scan.plan import ScanFile, ScanPlan


def seen_files(context: Context, table_id: int | None = None, file_id: int | None = None) -> list[DataFile]:
    """Return data files that a snapshot sees: those of a table or of all, or one."""
    f = t.data_file.c
    wanted = [table_id] if table_id is not None else sorted(context.names)
    files: list[DataFile] = []
    for one in wanted:
        condition = f.data_file_id == file_id if file_id is not None else f.data_file_id >= 0
        files += read_data_files(context.connection, one, condition)
    return [file for file in files if first_seen(context, file) is not None]


def first_seen(context: Context, file: DataFile) -> int | None:
    """Return the first snapshot that sees a data file; None where none does."""
    first = context.first_from(file.begin_snapshot)
    return first if first is not None and (file.end_snapshot is None or first < file.end_snapshot) else None


def table_of(context: Context, file: DataFile) -> Table | None:
    """Return the table of a data file as of the last snapshot that sees both; None where none does."""
    end = file.end_snapshot if file.end_snapshot is not None else context.newest + 1
    for at in (context.last_before(end), first_seen(context, file)):
        if at is not None:
            state = context.lake.state(context.connection, context.lake.snapshot(context.connection, at))
            if file.table_id in state.tables:
                return state.tables[file.table_id]
    return None


def plan_of(context: Context, file: DataFile, table: Table, columns: Sequence[int] | None = None) -> ScanPlan:
    """Plan to read a whole data file, deleted rows too; some top-level columns by id, or all."""
    if columns is not None:
        table = replace(table, columns=tuple(one for one in table.columns if one.column_id in columns))
    path = context.place(file.table_id, file.path, file.path_is_relative)
    scanned = ScanFile(file, path, snapshot_id=file.begin_snapshot)
    return ScanPlan(table, (scanned,), None, 1, file.file_size_bytes, context.folders.get(file.table_id, ""))


def read_rows(plan: ScanPlan) -> pa.Table:
    """Read the rows of a plan with virtual columns.

    Raises:
        DuckLakeError: the file cannot be read.
    """
    return reader.read(plan, virtual=True)
