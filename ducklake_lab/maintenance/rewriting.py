"""Rewrites of several files of a table as one: in process while they are small, else one Spark task for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.in_process import reader
from ducklake_lab.engine.placement import Engines
from ducklake_lab.file_paths import join
from ducklake_lab.files.options import WriteOptions, write_options
from ducklake_lab.files.sorting import sort_rows
from ducklake_lab.files.writer import Writer
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import DataFile, WrittenFile
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.rewritable_files import Candidate, scan_of
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files to read and to write as one, below the folder of their table.

    Attributes:
        table: as it is now: its sort keys order the rows.
        columns: those the new file has.
        files: in the order of their rows; they have the same columns and partition values.
        path: of the new file, relative to `folder`.
        row_id_start: the file holds row ids only if they do not just count up from here; None if it has to hold them.
        keeps_snapshots: it holds the ids of the snapshots that inserted its rows.
    """

    table: Table
    columns: tuple[Column, ...]
    files: tuple[ScanFile, ...]
    folder: str
    path: str
    options: WriteOptions
    row_id_start: int | None
    keeps_snapshots: bool

    @property
    def bytes(self) -> int:
        return sum(file.data_file.file_size_bytes for file in self.files)


def new_path(like: DataFile) -> str:
    """A new file's path in the folder of another, if that is in the table's."""
    folder = like.path.rpartition("/")[0] if like.path_is_relative else ""
    return f"{folder}/ducklake-{new_uuid()}.parquet" if folder else f"ducklake-{new_uuid()}.parquet"


def rewrite_groups(
    transaction: Transaction,
    table: Table,
    groups: Sequence[Sequence[Candidate]],
    columns: Sequence[tuple[Column, ...]],
    engines: Engines,
    *,
    row_ids: Sequence[int | None],
    keeps_snapshots: bool,
) -> list[WrittenFile | None]:
    """Rewrite each group of files of a table as one file; None for a group without a row left.

    Args:
        columns: the columns of each group.
        row_ids: `row_id_start` of each new file, see `Rewrite`.
    """
    folder = transaction.lake.folder(transaction.base, table)
    rewrites = [
        Rewrite(
            table=table,
            columns=own_columns,
            files=tuple(scan_of(candidate, folder) for candidate in group),
            folder=folder,
            path=new_path(group[0].data_file),
            options=write_options(transaction.options, table),
            row_id_start=row_id,
            keeps_snapshots=keeps_snapshots,
        )
        for group, own_columns, row_id in zip(groups, columns, row_ids, strict=True)
    ]
    return _rewrite_all(rewrites, engines)


def _rewrite_all(rewrites: Sequence[Rewrite], engines: Engines) -> list[WrittenFile | None]:
    """Do all rewrites; None for those without a row left. If one fails, no file stays behind."""
    try:
        files = [file for item in rewrites for file in item.files]
        if engines.placing.place(facts_of(files, purpose="change")).is_here:
            return [rewrite(item) for item in rewrites]
        from ducklake_lab.spark.workers.tasks import run_tasks

        with engines.running() as session:
            return run_tasks(session, rewrite, rewrites)
    except BaseException:
        Storage().discard(join(item.folder, item.path) for item in rewrites)
        raise


def rewrite(item: Rewrite) -> WrittenFile | None:
    """Reads the files and writes the new one."""
    table = replace(item.table, columns=item.columns)
    plan = ScanPlan(table, item.files, None, len(item.files), item.bytes, item.folder, time_zone=item.options.time_zone)
    rows = reader.read(plan, virtual=True)
    if rows.num_rows == 0:
        return None
    order = {file.data_file.data_file_id: i for i, file in enumerate(item.files)}
    places = pa.array([order[file_id] for file_id in rows.column(FILE_ID).to_pylist()], pa.int32())
    rows = sort_rows(
        rows.append_column("_ducklake_place", places), item.table, item.columns, ["_ducklake_place", POSITION]
    )
    row_ids = rows.column(ROW_ID)
    keeps_ids = item.row_id_start is None or not _counts_up(row_ids, item.row_id_start)
    selected = list(range(len(item.columns)))
    selected += [rows.column_names.index(ROW_ID)] if keeps_ids else []
    selected += [rows.column_names.index(SNAPSHOT_ID)] if item.keeps_snapshots else []
    with Writer(table, item.options, keeps_ids=keeps_ids, keeps_snapshots=item.keeps_snapshots) as writer:
        written = writer.write(rows.select(selected), join(item.folder, item.path), Storage())
    return replace(written, path=item.path, partition_values=item.files[0].data_file.partition_values)


def _counts_up(row_ids: pa.ChunkedArray, start: int) -> bool:
    return bool(np.array_equal(row_ids.to_numpy(), np.arange(start, start + len(row_ids))))
