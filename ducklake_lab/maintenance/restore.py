"""restore: a new snapshot in which a table has its earlier content.

No row is read or written: the files of then are linked, or copied by the storage, under names of their own, so that
expiry of the old snapshots does not take them away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine.in_process import reader
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import DataFileError, EntryNotFoundError, TransactionError, UnsupportedFeatureError
from ducklake_lab.file_paths import join
from ducklake_lab.files.deletes import Deletions, delete_positions, write_deletions
from ducklake_lab.files.options import delete_options, write_options
from ducklake_lab.files.writer import write_rows
from ducklake_lab.maintenance.rewriting import new_path
from ducklake_lab.maintenance.unchanged import Places, without_unchanged
from ducklake_lab.model.commit_notes import Restored
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.model.positions import Positions, ascending, others
from ducklake_lab.model.staged import POSITION, ROW_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.positions import check_files, deleted_positions
from ducklake_lab.scan.restoring import RestorePlan, plan_restore
from ducklake_lab.sql.bind import following
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.transaction import Transaction


def restore(transaction: Transaction, then: CatalogState, old: Table, engines: Engines) -> Restored | None:
    """Stages that a table has the columns and rows again that it had at an earlier snapshot; it may have been dropped.

    Nothing is staged where the table has not changed. A file that is still there stays: rows deleted since come back
    in a copy that has these alone, and rows that came since are deleted.

    Args:
        then: the entries of that snapshot.
        old: the table among them.
        engines: say whether rows can be compared here; see `without_unchanged`.

    Returns:
        The snapshot that it is like now, and whether moved rows may be the same; None where nothing was staged.

    Raises:
        TransactionError: the transaction has changed the table already.
        DataFileError: a file of then has been deleted.
    """
    lake, now = transaction.lake, transaction.base
    current = now.tables.get(old.table_id)
    if transaction.state.tables.get(old.table_id) != current or transaction.peek(old):
        raise TransactionError(f"The transaction has changed {old.name}; COMMIT before restoring it.")
    with lake.connect() as connection:
        plan = plan_restore(lake, connection, now, current, then, old)
    storage = Storage()
    check_files([*plan.files, *plan.gone, *(file for pair in plan.both for file in pair)])
    come, go = _differences(plan, current, old, storage)
    exact = True
    if current is not None and current.columns == old.columns:
        come, go, exact = without_unchanged(come, go, old, engines, plan.unwritten)
    for path, size in storage.sizes(file.path for file in come.files).items():
        if size is None:
            raise DataFileError(
                f"{old.name} cannot be restored to snapshot {then.snapshot.snapshot_id}: its file {path} is gone."
            )
    table = _with_entries_of(transaction, current, then, old)
    folder = lake.folder(transaction.state, table)
    options = delete_options(transaction.options, table, lake.version)
    written: list[str] = []
    try:
        files = []
        for file, back in come.in_files.values():
            if not len(back):
                continue
            path = _copy_path(file)
            storage.duplicate(file.path, join(folder, path))
            written.append(path)
            described = _described(file, path, plan.stats.get(file.data_file.data_file_id, ()))
            deletes, hidden = None, others(back, file.data_file.record_count)
            if len(hidden):
                deletes = write_deletions(Deletions(hidden), join(folder, path), folder, options, storage)
                written += [deletes.path] if deletes.path is not None else []
            files.append((described, file.data_file.partition_id, file.data_file.row_id_start, deletes))
        gone, ended, records = [], [], {}
        for file_id, (file, surplus) in go.in_files.items():
            if not len(surplus):
                continue
            records[file_id] = file.data_file.record_count
            if len(surplus) + len(_hidden_positions(file, old, storage)) == records[file_id]:
                gone.append(file_id)
                continue
            hiding = delete_positions(file, surplus, folder, "ducklake-", options, transaction.next_snapshot, storage)
            if hiding is not None:
                written += [hiding.path] if hiding.path is not None else []
                ended.append(hiding)
        transaction.restore_files(table, gone, files)
        transaction.delete_from_files(table, ended, records)
        transaction.delete_inlined(table, sorted(go.inlined))
        if plan.rows is not None:
            missing = pc.is_in(plan.rows.column(ROW_ID), pa.array(sorted(come.inlined), pa.int64()))
            _add_rows(transaction, table, plan.rows.filter(missing), folder)
    except BaseException:
        storage.discard(join(folder, path) for path in written)
        raise
    if transaction.state.tables[old.table_id] == current and not transaction.peek(old):
        return None
    return Restored(then.snapshot.snapshot_id, at_most=not exact)


def _differences(plan: RestorePlan, current: Table | None, old: Table, storage: Storage) -> tuple[Places, Places]:
    """Return the rows of the earlier state alone, and those of the present state alone."""
    come: dict[int, tuple[ScanFile, Positions]] = {}
    go: dict[int, tuple[ScanFile, Positions]] = {}
    for file in plan.files:
        come[file.data_file.data_file_id] = file, _visible(file, old, storage)
    for file in plan.gone:
        go[file.data_file.data_file_id] = file, _visible(file, current or old, storage)
    for here, file in plan.both:
        hidden, wanted = _hidden_positions(here, current or old, storage), _hidden_positions(file, old, storage)
        come[file.data_file.data_file_id] = file, np.setdiff1d(hidden, wanted, assume_unique=True)
        if len(extra := np.setdiff1d(wanted, hidden, assume_unique=True)):
            go[file.data_file.data_file_id] = here, extra
    missing = plan.rows.column(ROW_ID).to_pylist() if plan.rows is not None else ()
    return Places(plan.after, come, frozenset(missing)), Places(plan.before, go, frozenset(plan.row_ids))


def _visible(file: ScanFile, table: Table, storage: Storage) -> Positions:
    return others(_hidden_positions(file, table, storage), file.data_file.record_count)


def _with_entries_of(transaction: Transaction, current: Table | None, then: CatalogState, old: Table) -> Table:
    """The table with the columns of then; it is created again if it was dropped."""
    if current is None:
        schema = then.schemas[old.schema_id]
        if old.schema_id not in transaction.state.schemas:
            raise EntryNotFoundError(
                f"The schema {schema.name} of {old.name} has been dropped; tables cannot be restored without it."
            )
        transaction.check_name_is_free(schema, old.name)
        # the parts of keys belong to no snapshot, so that their old ids would get them twice
        partition = transaction.new_partition(old.partition.fields) if old.partition is not None else None
        sort = transaction.new_sort(old.sort.keys) if old.sort is not None else None
        table = replace(old, partition=partition, sort=sort)
        transaction.state = transaction.state.with_table(table)
        return table
    if current.columns != old.columns:
        ids = {column.column_id for column in old.columns}
        for key in current.partition.fields if current.partition is not None else ():
            if key.column_id not in ids:
                raise UnsupportedFeatureError(
                    f"{old.name} is partitioned by a column it did not have then; RESET PARTITIONED BY first."
                )
        keys = following.sort_keys(current, old.columns)
        is_same = current.sort is None or current.sort.keys == keys
        sort = current.sort if is_same else transaction.new_sort(keys)
        tags = following.expectation_tags(current, old.columns)
        table = replace(current, columns=old.columns, sort=sort, tags=tags)
        known = set(following.missing_columns(current))
        for what, name, drop in following.missing_columns(table):
            if (what, name, drop) not in known:
                raise UnsupportedFeatureError(
                    f"{old.name} had no column {name} then, and its {what} names it; {drop} first."
                )
        transaction.replace_table(table)
    return transaction.state.tables[old.table_id]


def _hidden_positions(file: ScanFile, table: Table, storage: Storage) -> Positions:
    """The rows of a file that were not visible, ascending: deleted, or of later snapshots."""
    deleted = deleted_positions([file], storage).get(file.path, np.zeros(0, np.int64))
    if file.rows_up_to is None:
        return deleted
    narrow = replace(table, columns=table.columns[:1])
    later = replace(file, rows_from=file.rows_up_to + 1, rows_up_to=None, delete_file=None, delete_path=None)
    plan = ScanPlan(narrow, (replace(later, inlined_deletes=()),), None, 1, 0, "")
    rows = reader.read(plan, virtual=True).column(POSITION).to_numpy()
    return ascending(np.concatenate([deleted, rows]))


def _copy_path(file: ScanFile) -> str:
    """Return the path of a file's copy, in folders with the same partition values."""
    path, data_file = new_path(file.data_file), file.data_file
    if data_file.path_is_relative or data_file.mapping is None:
        return path
    taken = {column.source_name.casefold() for column in data_file.mapping.columns if column.is_partition}
    folders = [
        part
        for part in file.path.split("/")[:-1]
        if "=" in part and unquote(part.partition("=")[0]).casefold() in taken
    ]
    return "/".join([*folders, path])


def _described(file: ScanFile, path: str, stats: Sequence[object]) -> WrittenFile:
    data_file = file.data_file
    return WrittenFile(
        path=path,
        record_count=data_file.record_count,
        file_size_bytes=data_file.file_size_bytes,
        footer_size=data_file.footer_size or 0,
        column_stats=tuple(stats),  # type: ignore[arg-type]
        partition_values=data_file.partition_values,
        has_row_ids=True,
        mapping=data_file.mapping,
        encryption_key=data_file.encryption_key,
    )


def _add_rows(transaction: Transaction, table: Table, rows: pa.Table, folder: str) -> None:
    """Add the rows that were inlined then: inlined again, or in a file if they are many."""
    options = transaction.options
    row_ids = rows.column(ROW_ID).combine_chunks()
    values = rows.drop_columns([ROW_ID])
    if rows.num_rows <= options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id):
        transaction.append_rows(table, values, row_ids)
        return
    files = write_rows(table, values, folder, write_options(options, table), row_ids)
    partition = table.partition.partition_id if table.partition is not None and table.partition.fields else None
    transaction.restore_files(table, (), [(file, partition, None, None) for file in files])
