"""Counts and sizes of data files for maintenance, for one table or all at once; a few set-based queries."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.tables import visible
from ducklake_lab.collecting import without_collecting
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.scan.counts import in_one, inlined_rows, read_uncertain
from ducklake_lab.scan.visible_counts import FileRows


class Partition(NamedTuple):
    """Facts that files have in common which may become one.

    Attributes:
        partition_id: of the keys that the file was written by; None where there were none.
        values: of the keys, as the catalog has them.
        version: of the table's columns.
    """

    partition_id: int | None
    values: tuple[str | None, ...]
    version: int


@dataclass(frozen=True, slots=True)
class FileShape:
    """A data file as maintenance sees it.

    Attributes:
        file_id: its id.
        begin_snapshot: the snapshot that added it.
        rows: in it at the snapshot, those deleted since they were written included.
        deleted: by delete file or inlined.
    """

    file_id: int
    begin_snapshot: int
    rows: int
    deleted: int
    bytes: int
    partition: Partition


@dataclass(frozen=True, slots=True)
class TableShape:
    """The data files of a table, and its rows in the catalog."""

    files: list[FileShape]
    inlined_rows: int


@without_collecting()
def table_shapes(
    lake: Lake, connection: sa.Connection, snapshot_id: int, table_id: int | None = None
) -> dict[int, TableShape]:
    """Return the files of one table or all at a snapshot, by table id; a table without files and rows is left out."""
    f, d, p = t.data_file, t.delete_file, t.file_partition_value
    files = sa.select(
        f.c.table_id, f.c.data_file_id, f.c.partition_id, f.c.record_count, f.c.file_size_bytes, f.c.begin_snapshot
    ).where(visible(f, snapshot_id))
    deletes = sa.select(d.c.data_file_id, d.c.delete_count).where(visible(d, snapshot_id)).order_by(d.c.delete_file_id)
    values = (
        sa.select(p.c.data_file_id, p.c.partition_value)
        .join(f, f.c.data_file_id == p.c.data_file_id)
        .where(visible(f, snapshot_id))
        .order_by(p.c.data_file_id, p.c.partition_key_index)
    )
    if table_id is not None:
        files, deletes = files.where(f.c.table_id == table_id), deletes.where(d.c.table_id == table_id)
        values = values.where(p.c.table_id == table_id)
    rows = connection.execute(files).all()
    versions = _schema_versions(connection, table_id)
    # the newest delete file of a data file holds all of its deletions
    deleted = defaultdict(int, ((file_id, count) for file_id, count in connection.execute(deletes).all()))
    tables = inlined_deletions.tables(connection, lake.database)
    asked = {which: name for which, name in tables.items() if table_id in (None, which)}
    for file_id, count in _inlined_deletions(connection, snapshot_id, asked):
        deleted[file_id] += count
    uncertain = read_uncertain(lake, connection, snapshot_id, asked)
    keys: defaultdict[int, list[str | None]] = defaultdict(list)
    if any(row[2] is not None for row in rows):
        for file_id, value in connection.execute(values).all():
            keys[file_id].append(value)
    shapes: defaultdict[int, list[FileShape]] = defaultdict(list)
    for of_table, file_id, partition_id, count, size, begin in rows:
        version = bisect_right(versions.get(of_table, ()), begin)
        partition = Partition(partition_id, tuple(keys.get(file_id, ())), version)
        counted = uncertain[file_id].counted if file_id in uncertain else FileRows(count, deleted.get(file_id, 0))
        shapes[of_table].append(FileShape(file_id, begin, counted.rows, counted.deleted, size, partition))
    inlined_counts = inlined_rows(connection, snapshot_id, table_id)
    return {
        which: TableShape(shapes.get(which, []), inlined_counts.get(which, 0)) for which in {**shapes, **inlined_counts}
    }


def _schema_versions(connection: sa.Connection, table_id: int | None) -> dict[int, list[int]]:
    """The snapshots from which the columns of tables changed, ascending, by table id."""
    v = t.schema_versions
    query = sa.select(v.c.table_id, v.c.begin_snapshot).order_by(v.c.begin_snapshot)
    begins: defaultdict[int, list[int]] = defaultdict(list)
    for of_table, begin in connection.execute(query if table_id is None else query.where(v.c.table_id == table_id)):
        begins[of_table].append(begin)
    return begins


def _inlined_deletions(
    connection: sa.Connection, snapshot_id: int, tables: Mapping[int, str]
) -> Iterator[tuple[Any, ...]]:
    queries = [
        f"SELECT file_id, count(*) FROM {quote_identifier(name)} WHERE begin_snapshot <= {snapshot_id:d} GROUP BY file_id"
        for name in tables.values()
    ]
    return in_one(connection, queries)
