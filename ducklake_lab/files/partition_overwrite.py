"""Overwrites partitions: removes the rows of those partitions that receive new ones."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.files.options import WriteOptions
from ducklake_lab.files.partitions import Values, groups, key_sql, partition_keys
from ducklake_lab.files.writer import Writer
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.model.transforms import Identity
from ducklake_lab.model.types import INTEGERS
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.transaction.transaction import Transaction

#: Types whose values have one text each, whoever writes it.
_PLAIN = (*INTEGERS, "varchar", "boolean", "date")


def check_overwritable(table: Table) -> None:
    """Raises for a table whose partition keys have several texts for one value.

    Raises:
        UnsupportedFeatureError: a key is a value of a type with several texts.
    """
    for column, transform in partition_keys(table):
        if isinstance(transform, Identity) and column.data_type.name not in _PLAIN:
            raise UnsupportedFeatureError(
                f"Overwriting partitions by {column.name} is not supported, as it is {column.data_type.sql()}; "
                "delete the rows and append."
            )


def overwrite_partitions(
    transaction: Transaction,
    table: Table,
    files: Iterable[WrittenFile],
    options: WriteOptions,
) -> None:
    """Stages the deletion of all rows in the partitions of some new files, which the caller appends.

    A table without partition keys is one partition.

    Raises:
        UnsupportedFeatureError: a file was written under other partition keys, so it may hold rows of several partitions.
    """
    check_overwritable(table)
    partitions = {file.partition_values for file in files}
    with transaction.lake.connect() as connection:
        plan = plan_scan(transaction.lake, connection, transaction.state, table, staged=transaction.peek(table))
    if table.partition is not None:
        spec = table.partition.partition_id
        for file in plan.files if partitions else ():
            if file.data_file.partition_id != spec:
                raise UnsupportedFeatureError(
                    f"Overwriting partitions of {table.name} is not supported, as the file {file.data_file.path} was written "
                    "under other partition keys; rewrite its rows first."
                )
    replaced = [
        file.data_file.data_file_id
        for file in plan.files
        if file.data_file.partition_values in partitions or (table.partition is None and partitions)
    ]
    row_ids: list[int] = []
    if plan.inlined is not None and plan.inlined.rows.num_rows and partitions:
        rows = plan.inlined.rows
        numbers: Iterable[int] = range(rows.num_rows)
        if table.partition is not None:
            numbers = _in(partitions, table, rows.select([column.name for column in table.columns]), options)
        row_ids = rows.column(ROW_ID).take(list(numbers)).to_pylist()
    if replaced or row_ids:
        transaction.truncate(table, replaced, row_ids)


def _in(partitions: set[Values], table: Table, rows: pa.Table, options: WriteOptions) -> list[int]:
    """Returns the numbers of the rows in some partitions."""
    with Writer(table, options) as writer:
        groups_of_rows = groups(writer.evaluate(rows, key_sql(table, options.time_zone)), table)
        return [number for values, numbers in groups_of_rows if values in partitions for number in numbers.to_pylist()]
