"""Counts of rows, files and bytes of tables at a snapshot: from the catalog, and few files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.files import among, read_data_files, table_folders, visible_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.tables import visible
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.scan.planner import scan_files
from ducklake_lab.scan.visible_counts import FileRows, count_rows


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Rows of a table that are not deleted, its data files, and their size."""

    rows: int = 0
    files: int = 0
    bytes: int = 0


def table_counts(lake: Lake, connection: sa.Connection, snapshot_id: int) -> dict[int, TableCounts]:
    """Counts at a snapshot, by table id; a table without rows and files is left out.

    Raises:
        DataFileError: a file that alone says how many rows were there is missing or cannot be read.
    """
    f, d = t.data_file, t.delete_file
    counts: defaultdict[int, TableCounts] = defaultdict(TableCounts)
    files = (
        sa.select(f.c.table_id, sa.func.sum(f.c.record_count), sa.func.count(), sa.func.sum(f.c.file_size_bytes))
        .where(visible(f, snapshot_id))
        .group_by(f.c.table_id)
    )
    for table_id, rows, count, size in connection.execute(files):
        counts[table_id] = TableCounts(int(rows or 0), count, int(size or 0))

    def add(table_id: int, rows: int) -> None:
        counts[table_id] = replace(counts[table_id], rows=counts[table_id].rows + rows)

    deletes = (
        sa.select(d.c.table_id, sa.func.sum(d.c.delete_count)).where(visible(d, snapshot_id)).group_by(d.c.table_id)
    )
    for table_id, rows in connection.execute(deletes):
        add(table_id, -int(rows or 0))
    for table_id, rows in inlined_rows(connection, snapshot_id).items():
        add(table_id, rows)
    tables = inlined_deletions.tables(connection, lake.database)
    deleted = [
        f"SELECT {table_id:d} AS table_id, -count(*) AS n FROM {quote_identifier(name)} AS x "
        "JOIN ducklake_data_file AS f ON x.file_id = f.data_file_id "
        f"WHERE x.begin_snapshot <= {snapshot_id:d} AND {_visible('f', snapshot_id)}"
        for table_id, name in tables.items()
    ]
    for table_id, rows in in_one(connection, deleted):
        add(table_id, rows)
    for file in read_uncertain(lake, connection, snapshot_id, tables).values():
        add(file.table_id, file.counted.live - file.summed)
    return dict(counts)


@dataclass(frozen=True, slots=True)
class UncertainFile:
    """Data file whose rows cannot be counted by sums over the catalog.

    Attributes:
        summed: such a sum: its rows less the deletions of delete files and inlined ones.
        counted: its rows at the snapshot.
    """

    table_id: int
    summed: int
    counted: FileRows


def read_uncertain(
    lake: Lake, connection: sa.Connection, at: int, delete_tables: Mapping[int, str]
) -> dict[int, UncertainFile]:
    """Read the files with rows or deletions of later snapshots, or with deletions in two places, by data file id.

    Args:
        delete_tables: the inlined delete tables of the tables that are looked at, by table id.
    """
    d = f"JOIN ducklake_delete_file AS d ON d.data_file_id = f.data_file_id WHERE {_visible('d', at)}"
    select = "SELECT f.table_id AS table_id, f.data_file_id AS data_file_id FROM ducklake_data_file AS f"
    queries = [
        f"{select} WHERE {_visible('f', at)} AND f.partial_max > {at:d}",
        f"{select} {d} AND (d.partial_max > {at:d} OR d.partial_max IS NULL AND f.partial_max IS NOT NULL "
        f"AND EXISTS (SELECT 1 FROM ducklake_snapshot WHERE snapshot_id > {at:d}))",
        f"{select} {d} GROUP BY f.table_id, f.data_file_id HAVING count(*) > 1",
        *(
            f"{select} {d} AND f.data_file_id IN (SELECT file_id FROM {quote_identifier(name)} "
            f"WHERE begin_snapshot <= {at:d})"
            for name in delete_tables.values()
        ),
    ]
    ids: defaultdict[int, set[int]] = defaultdict(set)
    for table_id, file_id in in_one(connection, queries):
        ids[table_id].add(file_id)
    folders = table_folders(connection, lake.data_path, ids)
    uncertain: dict[int, UncertainFile] = {}
    for table_id, file_ids in ids.items():
        files = [
            file
            for file in read_data_files(
                connection, table_id, sa.and_(visible(t.data_file, at), among(t.data_file.c.data_file_id, file_ids))
            )
            if file.data_file_id in file_ids
        ]
        scans = scan_files(lake, connection, table_id, folders[table_id], at, files)
        deletes = visible_delete_files(connection, table_id, at, file_ids)
        positions = inlined_deletions.read(connection, lake.database, table_id, at)
        for file, counted in zip(files, count_rows(scans), strict=True):
            file_id = file.data_file_id
            deleted = sum(delete.delete_count for delete in deletes.get(file_id, ())) + len(positions.get(file_id, ()))
            uncertain[file_id] = UncertainFile(table_id, file.record_count - deleted, counted)
    return uncertain


def _visible(alias: str, snapshot_id: int) -> str:
    return (
        f"{alias}.begin_snapshot <= {snapshot_id:d} "
        f"AND ({alias}.end_snapshot IS NULL OR {alias}.end_snapshot > {snapshot_id:d})"
    )


def inlined_rows(connection: sa.Connection, snapshot_id: int, table_id: int | None = None) -> dict[int, int]:
    """Rows that are kept in the catalog at a snapshot, by table id; of one table or all."""
    i = t.inlined_data_tables
    tables = sa.select(i.c.table_id, i.c.table_name)
    live = inlined.live_at(connection, snapshot_id)
    queries = [
        f"SELECT {which:d} AS table_id, count(*) AS n FROM {quote_identifier(name)} WHERE {live}"
        for which, name in connection.execute(
            tables if table_id is None else tables.where(i.c.table_id == table_id)
        ).all()
    ]
    by_table: defaultdict[int, int] = defaultdict(int)
    for which, rows in in_one(connection, queries):
        by_table[which] += rows
    return {which: rows for which, rows in by_table.items() if rows}


def in_one(connection: sa.Connection, queries: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of all queries, asked in one statement or a few: SQLite takes up to 500 parts."""
    for start in range(0, len(queries), 400):
        yield from (tuple(row) for row in run_text(connection, " UNION ALL ".join(queries[start : start + 400])).all())
