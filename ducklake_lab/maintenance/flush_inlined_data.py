"""flush_inlined_data: inlined rows and deletions move into files (spec: advanced_features/data_inlining).

A file of inlined rows holds the snapshots that inserted them, and its delete file those that deleted them, so that
every snapshot reads as before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.catalog.inlined import InlinedVersion
from ducklake_lab.errors import TransactionError
from ducklake_lab.file_paths import join
from ducklake_lab.files.deletes import Deletions, earlier_deletions, write_deletions
from ducklake_lab.files.options import DeleteOptions, WriteOptions, delete_options, write_options
from ducklake_lab.files.partitions import groups, hive_folder, key_sql
from ducklake_lab.files.sorting import sort_rows
from ducklake_lab.files.writer import Writer
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DeleteFile, WrittenDeletes, WrittenFile
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID, FlushedFile
from ducklake_lab.scan.flushing import InlinedDeletions, read_inlined, read_inlined_deletions
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.transaction import Transaction

_END = "end_snapshot"


def flush_inlined_data(transaction: Transaction, table: Table) -> int:
    """Writes the inlined rows and deletions of a table into files; the count of rows written, deleted ones included.

    Rows that the transaction itself has inlined stay where they are.

    Raises:
        TransactionError: the transaction has changed rows of the table, and some rows are inlined already.
    """
    staged = transaction.peek(table)
    lake, state = transaction.lake, transaction.base
    if not transaction.is_committed(table) or (staged is not None and staged.flushed):
        return 0
    with lake.connect() as connection:
        versions = read_inlined(lake, connection, state, state.tables[table.table_id])
        deletions = read_inlined_deletions(lake, connection, state, state.tables[table.table_id])
    if len(versions) > 1:
        transaction.drop_superseded()
    if not deletions and not any(version.rows.num_rows for _, version in versions):
        return 0
    if staged is not None and staged.changes_rows:
        raise TransactionError(
            f"flush_inlined_data cannot follow changes of rows of {table.name} in one transaction; COMMIT them first."
        )
    folder = lake.folder(state, state.tables[table.table_id])
    at = state.snapshot.snapshot_id
    delete = delete_options(transaction.options, table, lake.version)
    storage = Storage()
    files: list[FlushedFile] = []
    deletes: list[WrittenDeletes] = []
    try:
        for then, version in versions:
            if version.rows.num_rows:
                options = write_options(transaction.options, table)
                files += _write(table, then, version, folder, options, delete, storage)
        deletes += [_merged(of_file, folder, delete, storage) for of_file in deletions]
    except BaseException:
        paths = [f.file.path for f in files] + [f.deletes.path for f in files if f.deletes and f.deletes.path]
        storage.discard(join(folder, path) for path in [*paths, *(d.path for d in deletes if d.path)])
        raise
    flushed = {version.name: at for _, version in versions if version.rows.num_rows}
    transaction.flush(table, files, flushed, deletes, at if deletes else None)
    return sum(file.file.record_count for file in files)


def _write(
    newest: Table,
    then: Table,
    version: InlinedVersion,
    folder: str,
    options: WriteOptions,
    delete: DeleteOptions,
    storage: Storage,
) -> list[FlushedFile]:
    """The files of one inlined data table, one or more per combination of partition keys."""
    count = len(version.columns)
    rows = version.rows.select([*range(3, 3 + count), 0, 1, 2])
    rows = sort_rows(rows, newest, version.columns, [ROW_ID, SNAPSHOT_ID])
    table = replace(then, columns=version.columns)
    keys = key_sql(table, options.time_zone)
    files: list[FlushedFile] = []
    with Writer(table, options, keeps_ids=True, keeps_snapshots=True) as writer:
        parts = groups(writer.evaluate(rows.select(range(count)), keys), table) if keys else [((), None)]
        for values, numbers in parts:
            part = rows if numbers is None else rows.take(numbers)
            subfolder = hive_folder(table, values) if options.hive_file_pattern else ""
            start = 0
            for written in _data_files(writer, part.select(range(count + 2)), folder, subfolder, options, storage):
                held = part.slice(start, written.record_count)
                start += written.record_count
                snapshots = held.column(SNAPSHOT_ID).to_numpy()
                has_keys = table.partition is not None and bool(table.partition.fields)
                files.append(
                    FlushedFile(
                        file=replace(written, partition_values=values),
                        partition_id=table.partition.partition_id if table.partition is not None and has_keys else None,
                        begin_snapshot=int(snapshots.min()),
                        partial_max=int(snapshots.max()),
                        row_id_start=int(held.column(ROW_ID).to_numpy().min()),
                        deletes=_deletes_of(held, join(folder, written.path), folder, delete, storage),
                    )
                )
    return files


def _data_files(
    writer: Writer, rows: pa.Table, folder: str, subfolder: str, options: WriteOptions, storage: Storage
) -> list[WrittenFile]:
    """The rows in one file, in several where they reach the size that files aim at; paths are relative to `folder`."""
    if rows.nbytes > options.target_file_size:
        split = writer.write_split(rows, join(folder, subfolder), storage)
        return [replace(file, path=subfolder + file.path) for file in split]
    path = f"{subfolder}ducklake-{new_uuid()}.parquet"
    return [replace(writer.write(rows, join(folder, path), storage), path=path)]


def _deletes_of(
    rows: pa.Table, path: str, folder: str, options: DeleteOptions, storage: Storage
) -> WrittenDeletes | None:
    """A delete file of the rows that were deleted while they were inlined."""
    ends = rows.column(_END).to_pylist()
    positions = [i for i, end in enumerate(ends) if end is not None]
    if not positions:
        return None
    deletions = Deletions(np.array(positions, np.int64), np.array([ends[i] for i in positions], np.int64))
    return write_deletions(deletions, path, folder, options, storage)


def _merged(inlined: InlinedDeletions, folder: str, options: DeleteOptions, storage: Storage) -> WrittenDeletes:
    """A delete file of the inlined deletions from a data file, and of those in the delete files that it replaces."""
    pairs = dict(inlined.deletions)
    replaced: list[DeleteFile] = []
    for file in inlined.files:
        earlier = earlier_deletions(file, storage)
        replaced += earlier.replaces
        if earlier.snapshots is not None:
            for position, snapshot_id in zip(earlier.positions.tolist(), earlier.snapshots.tolist(), strict=True):
                pairs[position] = min(snapshot_id, pairs.get(position, snapshot_id))
    deletions = Deletions(np.array(list(pairs), np.int64), np.array(list(pairs.values()), np.int64))
    newest = inlined.files[-1]
    return replace(
        write_deletions(deletions, newest.path, folder, options, storage),
        data_file_id=newest.data_file.data_file_id,
        replaces=tuple(replaced),
        end_snapshot=newest.data_file.end_snapshot,
    )
