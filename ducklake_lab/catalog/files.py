"""Reads data files, delete files and statistics (spec: ducklake_data_file, ducklake_file_column_stats)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import paths, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.mappings import read_mappings
from ducklake_lab.catalog.tables import one_of, visible
from ducklake_lab.collecting import without_collecting
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.files import ColumnStats, DataFile, DeleteFile
from ducklake_lab.model.mapping import ColumnMapping

#: A mapping with no rows: the table has no column of the file.
_NO_COLUMNS = ColumnMapping(())
#: The largest count of rows or bytes that a file can have.
_LARGEST = 2**48
#: Ids that are listed in a query, instead of asking for all.
_FEW = 500
#: Columns in the order of the fields that they fill.
_DATA_FILE = [t.data_file.c[one.name] for one in fields(DataFile) if one.name in t.data_file.c]
_DELETE_FILE = [t.delete_file.c[one.name] for one in fields(DeleteFile)]


_TABLE_STATS = sa.select(
    t.table_stats.c.table_id,
    t.table_stats.c.record_count,
    t.table_stats.c.next_row_id,
    t.table_stats.c.file_size_bytes,
)
_TABLE_STATS_OF = _TABLE_STATS.where(t.table_stats.c.table_id.in_(sa.bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True)
class TableStats:
    """One row of `ducklake_table_stats`: rows ever inserted, the next row id, bytes of data files."""

    record_count: int
    next_row_id: int
    file_size_bytes: int


def read_data_files(connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool]) -> list[DataFile]:
    """A table's data files for which a condition on `ducklake_data_file` holds, in file order."""
    return [file for file, _ in read_candidates(connection, table_id, condition, {})]


def read_files_by_id(connection: sa.Connection, table_id: int, file_ids: Collection[int]) -> list[DataFile]:
    """A table's data files of some ids, in file order."""
    return read_data_files(connection, table_id, one_of(connection, t.data_file.c.data_file_id, file_ids))


def join_stats(column_ids: Collection[int]) -> dict[int, sa.FromClause]:
    """`ducklake_file_column_stats` once per column, for `read_candidates` and conditions on it."""
    return {column_id: t.file_column_stats.alias(f"stats_{column_id}") for column_id in column_ids}


@without_collecting()
def read_candidates(
    connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool], joined: Mapping[int, sa.FromClause]
) -> list[tuple[DataFile, dict[int, ColumnStats]]]:
    """A table's data files for which a condition holds, in file order, with their counts and bounds of some columns.

    Args:
        condition: on `ducklake_data_file` and the joined tables.
        joined: by column id, as `join_stats` gives it; its rows may be missing.
    """
    f = t.data_file
    source: sa.FromClause = f
    values: list[sa.ColumnElement[Any]] = []
    ids = _ids_of_few(connection, table_id, condition, joined) if joined else None
    if ids is not None:
        if not ids:
            return []
        condition = one_of(connection, f.c.data_file_id, ids)
    for column_id, s in joined.items():
        of_file = _stats_of_file(s, table_id, column_id)
        source = source.outerjoin(
            s, of_file if ids is None else sa.and_(of_file, one_of(connection, s.c.data_file_id, ids))
        )
        values += [s.c.column_id, s.c.null_count, s.c.min_value, s.c.max_value, s.c.contains_nan]
    query = (
        sa.select(*_DATA_FILE, *values)
        .select_from(source)
        .where(f.c.table_id == table_id, condition)
        .order_by(f.c.data_file_id)
    )
    # tens of thousands of rows for a table of many files: fetched at once, and taken by place
    rows = connection.execute(query).all()
    names, width = [column.name for column in _DATA_FILE], len(_DATA_FILE)
    _check(rows, _DATA_FILE, "record_count", t.data_file)
    partition, mapping = names.index("partition_id"), names.index("mapping_id")
    partitioned = [row[0] for row in rows if row[partition] is not None]
    keys = _partition_values(connection, table_id, partitioned) if partitioned else {}
    mapped = any(row[mapping] is not None for row in rows)
    mappings = read_mappings(connection, table_id) if mapped else {}
    return [
        (
            DataFile(
                *(
                    *row[:width],
                    keys.get(row[0], ()),
                    mappings.get(row[mapping], _NO_COLUMNS) if row[mapping] is not None else None,
                )
            ),
            {
                row[i]: ColumnStats(row[i], None, None, *row[i + 1 : i + 5])
                for i in range(width, len(row), 5)
                if row[i] is not None
            },
        )
        for row in rows
    ]


def _check(rows: Sequence[sa.Row[Any]], columns: Sequence[sa.Column[Any]], count: str, table: sa.Table) -> None:
    """Raise CatalogError where a file has an impossible size or count of rows."""
    names = [column.name for column in columns]
    for name in (count, "file_size_bytes", "footer_size"):
        i = names.index(name)
        wrong = next((row[i] for row in rows if row[i] is not None and not 0 <= row[i] <= _LARGEST), None)
        if wrong is not None:
            raise CatalogError(
                f"The catalog is damaged: {name} is {wrong} in a row of {table.name}; restore it from a backup."
            )


def _ids_of_few(
    connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool], joined: Mapping[int, sa.FromClause]
) -> list[int] | None:
    """The ids of the data files for which a condition holds, where they are few and found more quickly alone.

    DuckDB would carry all columns of all files through the join, to leave nearly all of them out.
    """
    if connection.dialect.name != "duckdb":
        return None
    f = t.data_file
    source: sa.FromClause = f
    for column_id, s in joined.items():
        source = source.outerjoin(s, _stats_of_file(s, table_id, column_id))
    query = sa.select(f.c.data_file_id).select_from(source).where(f.c.table_id == table_id, condition)
    ids = list(connection.execute(query.limit(_FEW + 1)).scalars())
    return ids if len(ids) <= _FEW else None


def _stats_of_file(s: sa.FromClause, table_id: int, column_id: int) -> sa.ColumnElement[bool]:
    """The condition that joins the statistics of one column to their data file."""
    return sa.and_(
        s.c.data_file_id == t.data_file.c.data_file_id,
        s.c.table_id == table_id,
        s.c.column_id == sa.literal(column_id),
    )


def count_data_files(
    connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool], without: Collection[int] = ()
) -> tuple[int, int]:
    """Count the data files of a table that fulfil a condition on `ducklake_data_file`, and sum their bytes.

    Args:
        without: files that do not count.
    """
    f = t.data_file
    if without:
        every = sa.select(f.c.data_file_id, f.c.file_size_bytes).where(f.c.table_id == table_id, condition)
        sizes = [size for file_id, size in connection.execute(every).all() if file_id not in without]
        return len(sizes), sum(sizes)
    query = sa.select(sa.func.count(), sa.func.sum(f.c.file_size_bytes)).where(f.c.table_id == table_id, condition)
    count, total = connection.execute(query).one()
    return count, int(total or 0)


def among(column: sa.ColumnElement[Any], ids: Collection[int]) -> sa.ColumnElement[bool]:
    """Return a condition that rows of these ids meet; where they are few, no others meet it."""
    return column.in_(sorted(ids)) if len(ids) <= _FEW else sa.true()


def _partition_values(
    connection: sa.Connection, table_id: int, file_ids: Collection[int]
) -> dict[int, tuple[str | None, ...]]:
    p = t.file_partition_value
    query = (
        sa.select(p.c.data_file_id, p.c.partition_value)
        .where(p.c.table_id == table_id, among(p.c.data_file_id, file_ids))
        .order_by(p.c.data_file_id, p.c.partition_key_index)
    )
    values: dict[int, list[str | None]] = defaultdict(list)
    for file_id, value in connection.execute(query):
        values[file_id].append(value)
    return {file_id: tuple(keys) for file_id, keys in values.items()}


def read_delete_files(connection: sa.Connection, table_id: int, condition: sa.ColumnElement[bool]) -> list[DeleteFile]:
    """A table's delete files for which a condition on `ducklake_delete_file` holds."""
    query = sa.select(*_DELETE_FILE).where(t.delete_file.c.table_id == table_id, condition)
    rows = connection.execute(query).all()
    _check(rows, _DELETE_FILE, "delete_count", t.delete_file)
    return [DeleteFile(**row._mapping) for row in rows]


def visible_delete_files(
    connection: sa.Connection, table_id: int, snapshot_id: int, file_ids: Collection[int] | None = None
) -> dict[int, list[DeleteFile]]:
    """The delete files that apply to each data file at a snapshot, newest last: mostly one, rarely several.

    Args:
        file_ids: data files whose delete files are needed, others may be missing; None for all.
    """
    files_by_id: dict[int, list[DeleteFile]] = defaultdict(list)
    condition = visible(t.delete_file, snapshot_id)
    if file_ids is not None:
        condition = sa.and_(condition, among(t.delete_file.c.data_file_id, file_ids))
    for file in read_delete_files(connection, table_id, condition):
        files_by_id[file.data_file_id].append(file)
    for files in files_by_id.values():
        files.sort(key=lambda file: file.delete_file_id)
    return dict(files_by_id)


@without_collecting()
def read_column_stats(
    connection: sa.Connection,
    table_id: int,
    column_ids: Collection[int] | None,
    snapshot_id: int | None,
    file_ids: Collection[int] | None = None,
) -> dict[int, dict[int, ColumnStats]]:
    """Statistics of some columns (None: all) in some files (None: all) of those visible at a snapshot (None: at any).

    Returns:
        file id -> column id -> statistics.
    """
    s, f = t.file_column_stats, t.data_file
    query = (
        sa.select(
            s.c.data_file_id,
            s.c.column_id,
            s.c.column_size_bytes,
            s.c.value_count,
            s.c.null_count,
            s.c.min_value,
            s.c.max_value,
            s.c.contains_nan,
            s.c.extra_stats,
            versions.column(connection, s.c.min_is_exact),
            versions.column(connection, s.c.max_is_exact),
        )
        .join(f, sa.and_(s.c.data_file_id == f.c.data_file_id, f.c.table_id == table_id))
        .where(s.c.table_id == table_id)
    )
    if snapshot_id is not None:
        query = query.where(visible(f, snapshot_id))
    if column_ids is not None:
        query = query.where(s.c.column_id.in_(sorted(column_ids)))
    if file_ids is not None:
        query = query.where(one_of(connection, s.c.data_file_id, file_ids))
    statistics: dict[int, dict[int, ColumnStats]] = defaultdict(dict)
    # tens of thousands of rows for a table of many files: fetched at once, and taken by place
    for file_id, *stats, low, high in connection.execute(query).all():
        statistics[file_id][stats[0]] = ColumnStats(*(*stats, (), low, high))
    return dict(statistics)


def has_stats_before(connection: sa.Connection, table_id: int, column_id: int, at: int) -> bool:
    """Whether a data file of a table that is as old as a snapshot has statistics of a column."""
    s, f = t.file_column_stats, t.data_file
    files = f.c.table_id == table_id, f.c.begin_snapshot <= at
    stats = s.c.table_id == table_id, s.c.column_id == column_id
    query = sa.select(s.c.data_file_id).join(f, f.c.data_file_id == s.c.data_file_id).where(*files, *stats)
    return connection.execute(query.limit(1)).first() is not None


def table_folders(connection: sa.Connection, data_path: str, table_ids: Collection[int]) -> dict[int, str]:
    """The folders of tables, dropped ones too, by table id: absolute paths or URLs that end in `/`."""
    if not table_ids:
        return {}
    x, s = t.table, t.schema
    query = (
        sa.select(x.c.table_id, s.c.path, s.c.path_is_relative, x.c.path, x.c.path_is_relative)
        .join(s, s.c.schema_id == x.c.schema_id)
        .where(among(x.c.table_id, table_ids))
        .order_by(x.c.begin_snapshot)
    )
    return {
        table_id: paths.resolve(paths.resolve(data_path, schema, in_data_path), path, in_schema)
        for table_id, schema, in_data_path, path, in_schema in connection.execute(query)
    }


def read_table_stats(connection: sa.Connection, table_ids: Collection[int] | None = None) -> dict[int, TableStats]:
    """Table statistics by table id; all tables' for None."""
    if table_ids is None:
        rows = connection.execute(_TABLE_STATS)
    else:
        rows = connection.execute(_TABLE_STATS_OF, {"ids": sorted(table_ids)})
    return {
        table_id: TableStats(records or 0, next_row_id or 0, size or 0) for table_id, records, next_row_id, size in rows
    }


def file_sizes(connection: sa.Connection, snapshot_id: int) -> dict[int, tuple[int, int, int, int]]:
    """Per table: data files and their bytes, delete files and their bytes, as of a snapshot."""
    sizes: dict[int, list[int]] = {}
    for start, table in ((0, t.data_file), (2, t.delete_file)):
        query = (
            sa.select(table.c.table_id, sa.func.count(), sa.func.sum(table.c.file_size_bytes))
            .where(visible(table, snapshot_id))
            .group_by(table.c.table_id)
        )
        for table_id, count, size in connection.execute(query):
            sizes.setdefault(table_id, [0, 0, 0, 0])[start : start + 2] = [count, int(size or 0)]
    return {table_id: (row[0], row[1], row[2], row[3]) for table_id, row in sizes.items()}
