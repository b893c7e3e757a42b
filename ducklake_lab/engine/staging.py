"""Stages rows that were written or deleted in a transaction."""

from __future__ import annotations

from functools import partial

from ducklake_lab.catalog.inlined import can_inline
from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.target import Target, Written
from ducklake_lab.files.options import delete_options, write_options
from ducklake_lab.model.entries import Table
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.transaction.nul_bytes import can_inline_rows
from ducklake_lab.transaction.transaction import Transaction


def few_rows(transaction: Transaction, table: Table) -> int:
    """Returns the largest number of rows, or deletions from a file, that are inlined."""
    return transaction.options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id)


def target_of(
    transaction: Transaction, table: Table, *, inline: bool = True, sorted_table: Table | None = None
) -> Target:
    """Returns a table as one whose rows are written in a transaction.

    Args:
        inline: few rows are inlined.
        sorted_table: as `Target.sorted`.
    """
    lake, options = transaction.lake, transaction.options
    backend = lake.location.backend
    inlines = can_inline(table.columns, backend, lake.version)
    return Target(
        table,
        lake.folder(transaction.state, table),
        write_options(options, table),
        delete_options(options, table, lake.version),
        few=-1 if not inline else few_rows(transaction, table) if inlines else 0,
        can_inline=partial(can_inline_rows, table.columns, backend=backend),
        sorted=sorted_table,
        next_snapshot=transaction.next_snapshot,
    )


def stage_written(transaction: Transaction, table: Table, written: Written) -> int:
    """Stages rows that were written; returns their number."""
    if written.rows is not None:
        transaction.append_rows(table, written.rows, written.row_ids)
    else:
        transaction.append_files(table, written.files)
    return written.count


def stage_deleted(transaction: Transaction, target: Target, scan: ScanPlan, rows: Rows, count: int) -> None:
    """Deletes rows, which begin with the virtual columns.

    Args:
        scan: the read that gave the rows.
        count: their number.
    """
    if count == 0:
        return
    inlined_ids, deletes = rows.delete(target, scan, count)
    transaction.delete_inlined(target.table, inlined_ids)
    records = {file.data_file.data_file_id: file.data_file.record_count for file in scan.files}
    transaction.delete_from_files(target.table, deletes, records)
