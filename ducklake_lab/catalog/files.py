"""Reads data files, delete files and statistics (spec: ducklake_data_file, ducklake_file_column_stats)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.reader import visible
from ducklake_lab.model.files import ColumnStats, DataFile, DeleteFile

_DATA_FILE = [
    t.data_file.c[name]
    for name in (
        "data_file_id",
        "table_id",
        "begin_snapshot",
        "end_snapshot",
        "path",
        "path_is_relative",
        "record_count",
        "file_size_bytes",
        "footer_size",
        "row_id_start",
        "partition_id",
        "encryption_key",
        "mapping_id",
        "partial_max",
    )
]
_DELETE_FILE = [
    t.delete_file.c[name]
    for name in (
        "delete_file_id",
        "data_file_id",
        "begin_snapshot",
        "end_snapshot",
        "path",
        "path_is_relative",
        "format",
        "delete_count",
        "file_size_bytes",
        "footer_size",
        "encryption_key",
        "partial_max",
    )
]


@dataclass(frozen=True, slots=True)
class TableStats:
    """One row of `ducklake_table_stats`: rows ever inserted, the next row id, bytes of data files."""

    record_count: int
    next_row_id: int
    file_size_bytes: int


def read_data_files(connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool]) -> list[DataFile]:
    """A table's data files for which a condition on `ducklake_data_file` holds, in file order."""
    f = t.data_file
    query = sa.select(*_DATA_FILE).where(f.c.table_id == table_id, condition).order_by(f.c.data_file_id)
    rows = connection.execute(query).mappings().all()
    values = _partition_values(connection, table_id) if any(r["partition_id"] is not None for r in rows) else {}
    return [DataFile(**row, partition_values=values.get(row["data_file_id"], ())) for row in rows]


def _partition_values(connection: sa.Connection, table_id: int) -> dict[int, tuple[str | None, ...]]:
    p = t.file_partition_value
    query = (
        sa.select(p.c.data_file_id, p.c.partition_value)
        .where(p.c.table_id == table_id)
        .order_by(p.c.data_file_id, p.c.partition_key_index)
    )
    values: dict[int, list[str | None]] = defaultdict(list)
    for file_id, value in connection.execute(query):
        values[file_id].append(value)
    return {file_id: tuple(keys) for file_id, keys in values.items()}


def read_delete_files(connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool]) -> list[DeleteFile]:
    """A table's delete files for which a condition on `ducklake_delete_file` holds."""
    query = sa.select(*_DELETE_FILE).where(t.delete_file.c.table_id == table_id, condition)
    return [DeleteFile(**row) for row in connection.execute(query).mappings()]


def visible_delete_files(connection: sa.Connection, table_id: int, snapshot_id: int) -> dict[int, DeleteFile]:
    """The delete file that applies to each data file at a snapshot; there is at most one."""
    files = read_delete_files(connection, table_id, visible(t.delete_file, snapshot_id))
    return {file.data_file_id: file for file in files}


def read_column_stats(
    connection: sa.Connection, table_id: int, column_ids: Collection[int] | None, snapshot_id: int
) -> dict[int, dict[int, ColumnStats]]:
    """Statistics of some columns (None: all) in the files visible at a snapshot: file id -> column id -> statistics."""
    s, f = t.file_column_stats, t.data_file
    query = (
        sa.select(s)
        .join(f, sa.and_(s.c.data_file_id == f.c.data_file_id, f.c.table_id == table_id))
        .where(s.c.table_id == table_id, visible(f, snapshot_id))
    )
    if column_ids is not None:
        query = query.where(s.c.column_id.in_(sorted(column_ids)))
    found: dict[int, dict[int, ColumnStats]] = defaultdict(dict)
    row: Any
    for row in connection.execute(query).mappings():
        found[row["data_file_id"]][row["column_id"]] = ColumnStats(
            column_id=row["column_id"],
            column_size_bytes=row["column_size_bytes"],
            value_count=row["value_count"],
            null_count=row["null_count"],
            min_value=row["min_value"],
            max_value=row["max_value"],
            contains_nan=row["contains_nan"],
            extra_stats=row["extra_stats"],
        )
    return dict(found)


def read_table_stats(connection: sa.Connection, table_ids: Collection[int] | None = None) -> dict[int, TableStats]:
    """Table statistics by table id; all tables' for None."""
    s = t.table_stats
    query = sa.select(s.c.table_id, s.c.record_count, s.c.next_row_id, s.c.file_size_bytes)
    if table_ids is not None:
        query = query.where(s.c.table_id.in_(sorted(table_ids)))
    return {
        table_id: TableStats(records or 0, next_row_id or 0, size or 0)
        for table_id, records, next_row_id, size in connection.execute(query)
    }
