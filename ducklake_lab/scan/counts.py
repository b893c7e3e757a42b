"""How many rows and bytes each snapshot added and removed, from the catalog alone."""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa

from ducklake_lab.catalog import inlined
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.casting import quote_identifier
from ducklake_lab.catalog.lake import Lake

#: by snapshot id, then by table id
_Counts = defaultdict[int, defaultdict[int, int]]


class SnapshotCounts:
    """Rows and bytes that each snapshot added and removed, by table.

    A delete file that holds the deletions of several snapshots counts for the first of them: the catalog does not
    say how they divide.
    """

    def __init__(self, lake: Lake, connection: sa.Connection) -> None:
        self._added: _Counts = defaultdict(lambda: defaultdict(int))
        self._removed: _Counts = defaultdict(lambda: defaultdict(int))
        self._bytes: _Counts = defaultdict(lambda: defaultdict(int))
        f, d = t.data_file, t.delete_file
        begun = sa.select(
            f.c.begin_snapshot, f.c.table_id, sa.func.sum(f.c.record_count), sa.func.sum(f.c.file_size_bytes)
        ).group_by(f.c.begin_snapshot, f.c.table_id)
        for snapshot_id, table_id, rows, size in connection.execute(begun):
            self._added[snapshot_id][table_id] += int(rows or 0)
            self._bytes[snapshot_id][table_id] += int(size or 0)
        self._count_delete_files(connection)
        ended = (
            sa.select(f.c.end_snapshot, f.c.table_id, f.c.record_count, d.c.delete_count)
            .outerjoin(d, sa.and_(d.c.data_file_id == f.c.data_file_id, d.c.end_snapshot == f.c.end_snapshot))
            .where(f.c.end_snapshot.is_not(None))
        )
        for snapshot_id, table_id, rows, deleted in connection.execute(ended):
            self._removed[snapshot_id][table_id] += int(rows or 0) - int(deleted or 0)
        self._count_inlined(lake, connection)

    def _count_delete_files(self, connection: sa.Connection) -> None:
        d = t.delete_file
        columns = (
            d.c.data_file_id,
            d.c.begin_snapshot,
            d.c.end_snapshot,
            d.c.table_id,
            d.c.delete_count,
            d.c.file_size_bytes,
        )
        previous: dict[tuple[int, int | None], int] = {}
        for file_id, begin, end, table_id, count, size in connection.execute(
            sa.select(*columns).order_by(d.c.begin_snapshot)
        ):
            # a delete file repeats the deletions of the one that it takes the place of
            self._removed[begin][table_id] += count - previous.get((file_id, begin), 0)
            self._bytes[begin][table_id] += size
            previous[file_id, end] = count

    def _count_inlined(self, lake: Lake, connection: sa.Connection) -> None:
        i = t.inlined_data_tables
        tables = list(connection.execute(sa.select(i.c.table_id, i.c.table_name)))
        for column, counts in (("begin_snapshot", self._added), ("end_snapshot", self._removed)):
            if not tables:
                break
            parts = " UNION ALL ".join(
                f"SELECT {table_id:d} AS table_id, {column} AS snapshot_id FROM {quote_identifier(name)}"
                for table_id, name in tables
            )
            query = (
                f"SELECT snapshot_id, table_id, count(*) FROM ({parts}) AS changed "
                "WHERE snapshot_id IS NOT NULL GROUP BY snapshot_id, table_id"
            )
            for snapshot_id, table_id, rows in inlined.run_text(connection, query):
                counts[snapshot_id][table_id] += rows
        for table_id in {table_id for table_id, _ in tables}:
            if lake.database.has_table(connection, inlined.delete_table_name(table_id)):
                name = quote_identifier(inlined.delete_table_name(table_id))
                query = f"SELECT begin_snapshot, count(*) FROM {name} GROUP BY begin_snapshot"
                for snapshot_id, rows in inlined.run_text(connection, query):
                    self._removed[snapshot_id][table_id] += rows

    def of(self, snapshot_id: int, table_id: int | None) -> tuple[int, int, int]:
        """(rows added, rows removed, bytes added) by a snapshot, in one table or all."""

        def total(counts: _Counts) -> int:
            by_table = counts.get(snapshot_id, {})
            return sum(by_table.values()) if table_id is None else by_table.get(table_id, 0)

        return total(self._added), total(self._removed), total(self._bytes)
