"""Counts of rows and bytes from the catalog alone: of tables, and of what each snapshot added and removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import inlined
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.casting import quote_identifier
from ducklake_lab.catalog.database import run_text
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.tables import visible

#: In the place of a table id: all tables together.
_ALL = -1

#: by snapshot id, then by table id
_Counts = defaultdict[int, defaultdict[int, int]]


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Rows of a table that are not deleted, its data files, and their size."""

    rows: int = 0
    files: int = 0
    bytes: int = 0


def table_counts(lake: Lake, connection: sa.Connection, snapshot_id: int) -> dict[int, TableCounts]:
    """Counts at a snapshot, by table id; a table without rows and files is left out.

    Exact, but for older snapshots of tables with delete files that hold the deletions of several snapshots: these
    count as a whole.
    """
    f, d = t.data_file, t.delete_file
    found: defaultdict[int, TableCounts] = defaultdict(TableCounts)
    files = (
        sa.select(f.c.table_id, sa.func.sum(f.c.record_count), sa.func.count(), sa.func.sum(f.c.file_size_bytes))
        .where(visible(f, snapshot_id))
        .group_by(f.c.table_id)
    )
    for table_id, rows, count, size in connection.execute(files):
        found[table_id] = TableCounts(int(rows or 0), count, int(size or 0))

    def add(table_id: int, rows: int) -> None:
        found[table_id] = replace(found[table_id], rows=found[table_id].rows + rows)

    deletes = (
        sa.select(d.c.table_id, sa.func.sum(d.c.delete_count)).where(visible(d, snapshot_id)).group_by(d.c.table_id)
    )
    for table_id, rows in connection.execute(deletes):
        add(table_id, -int(rows or 0))
    for table_id, rows in inlined_rows(connection, snapshot_id).items():
        add(table_id, rows)
    deleted = [
        f"SELECT {table_id:d} AS table_id, -count(*) AS n FROM {quote_identifier(name)} AS x "
        "JOIN ducklake_data_file AS f ON x.file_id = f.data_file_id "
        f"WHERE x.begin_snapshot <= {snapshot_id:d} AND f.begin_snapshot <= {snapshot_id:d} "
        f"AND (f.end_snapshot IS NULL OR f.end_snapshot > {snapshot_id:d})"
        for table_id, name in inlined.delete_tables(connection, lake.database).items()
    ]
    for table_id, rows in in_one(connection, deleted):
        add(table_id, rows)
    return dict(found)


def inlined_rows(connection: sa.Connection, snapshot_id: int, table_id: int | None = None) -> dict[int, int]:
    """Rows that are kept in the catalog at a snapshot, by table id; of one table or all."""
    i = t.inlined_data_tables
    tables = sa.select(i.c.table_id, i.c.table_name)
    queries = [
        f"SELECT {which:d} AS table_id, count(*) AS n FROM {quote_identifier(name)} WHERE {inlined.live_at(snapshot_id)}"
        for which, name in connection.execute(
            tables if table_id is None else tables.where(i.c.table_id == table_id)
        ).all()
    ]
    found: defaultdict[int, int] = defaultdict(int)
    for which, rows in in_one(connection, queries):
        found[which] += rows
    return {which: rows for which, rows in found.items() if rows}


class SnapshotCounts:
    """Rows and bytes that each snapshot added and removed, by table.

    A delete file that holds the deletions of several snapshots counts for the first of them: the catalog does not
    say how they divide.
    """

    def __init__(self, lake: Lake, connection: sa.Connection, table_id: int | None = None) -> None:
        """Counts of all tables, or of one only, which is cheaper."""
        self._only = table_id
        self._added: _Counts = defaultdict(lambda: defaultdict(int))
        self._removed: _Counts = defaultdict(lambda: defaultdict(int))
        self._bytes: _Counts = defaultdict(lambda: defaultdict(int))
        self._bytes_removed: _Counts = defaultdict(lambda: defaultdict(int))
        f, d = t.data_file, t.delete_file
        # Of all tables together the sums are enough, and much less to fetch than those of each.
        which = table_id if table_id is not None else _ALL
        begun = sa.select(f.c.begin_snapshot, sa.func.sum(f.c.record_count), sa.func.sum(f.c.file_size_bytes)).group_by(
            f.c.begin_snapshot
        )
        begun = begun if table_id is None else begun.where(f.c.table_id == table_id)
        for snapshot_id, rows, size in connection.execute(begun).all():
            self._added[snapshot_id][which] += int(rows or 0)
            self._bytes[snapshot_id][which] += int(size or 0)
        self._count_delete_files(connection)
        ended = (
            sa.select(
                f.c.end_snapshot,
                sa.func.sum(f.c.record_count),
                sa.func.sum(sa.func.coalesce(d.c.delete_count, 0)),
                sa.func.sum(f.c.file_size_bytes),
            )
            .outerjoin(d, sa.and_(d.c.data_file_id == f.c.data_file_id, d.c.end_snapshot == f.c.end_snapshot))
            .where(f.c.end_snapshot.is_not(None))
            .group_by(f.c.end_snapshot)
        )
        ended = ended if table_id is None else ended.where(f.c.table_id == table_id)
        for snapshot_id, rows, deleted, size in connection.execute(ended).all():
            self._bytes_removed[snapshot_id][which] += int(size or 0)
            self._removed[snapshot_id][which] += int(rows or 0) - int(deleted or 0)
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
        query = sa.select(*columns).order_by(d.c.begin_snapshot)
        query = query if self._only is None else query.where(d.c.table_id == self._only)
        for file_id, begin, end, table_id, count, size in connection.execute(query):
            # a delete file repeats the deletions of the one that it takes the place of
            self._removed[begin][table_id] += count - previous.get((file_id, begin), 0)
            self._bytes[begin][table_id] += size
            if end is not None:
                self._bytes_removed[end][table_id] += size
            previous[file_id, end] = count

    def _count_inlined(self, lake: Lake, connection: sa.Connection) -> None:
        i = t.inlined_data_tables
        query = sa.select(i.c.table_id, i.c.table_name)
        tables = list(connection.execute(query if self._only is None else query.where(i.c.table_id == self._only)))
        for column, counts in (("begin_snapshot", self._added), ("end_snapshot", self._removed)):
            parts = [
                f"SELECT {column} AS snapshot_id, {table_id:d} AS table_id, count(*) AS n "
                f"FROM {quote_identifier(name)} WHERE {column} IS NOT NULL GROUP BY {column}"
                for table_id, name in tables
            ]
            for snapshot_id, table_id, rows in in_one(connection, parts):
                counts[snapshot_id][table_id] += rows
        for table_id, name in inlined.delete_tables(connection, lake.database).items():
            if self._only not in (None, table_id):
                continue
            text = f"SELECT begin_snapshot, count(*) FROM {quote_identifier(name)} GROUP BY begin_snapshot"
            for snapshot_id, rows in in_one(connection, [text]):
                self._removed[snapshot_id][table_id] += rows

    def of(self, snapshot_id: int, table_id: int | None) -> tuple[int, int, int, int]:
        """(rows added, rows removed, bytes added, bytes removed) by a snapshot, in one table or all."""

        def total(counts: _Counts) -> int:
            by_table: dict[int, int] = counts.get(snapshot_id) or {}
            return sum(by_table.values()) if table_id is None else by_table.get(table_id, 0)

        return total(self._added), total(self._removed), total(self._bytes), total(self._bytes_removed)


def in_one(connection: sa.Connection, queries: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of all queries, asked in one statement or a few: SQLite takes up to 500 parts."""
    for start in range(0, len(queries), 400):
        yield from (tuple(row) for row in run_text(connection, " UNION ALL ".join(queries[start : start + 400])).all())
