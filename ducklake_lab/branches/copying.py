"""Copies the metadata of a lake, as of one of its snapshots, into an empty catalog of the same database.

The copy has all snapshots up to that one, with their ids, entries, files and inlined rows. Later snapshots are absent from it:
no row begins after it, and what ended later has not ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.creating import define_tables
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.inlined import delete_tables
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.versions.version import columns_of
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.model.quoting import quote_identifier, quote_text

#: Tables whose rows belong to rows of another table: that table, and the column they share.
_PARENTS: Mapping[str, tuple[str, str]] = {
    "ducklake_file_column_stats": ("ducklake_data_file", "data_file_id"),
    "ducklake_file_variant_stats": ("ducklake_data_file", "data_file_id"),
    "ducklake_file_partition_value": ("ducklake_data_file", "data_file_id"),
    "ducklake_partition_column": ("ducklake_partition_info", "partition_id"),
    "ducklake_sort_expression": ("ducklake_sort_info", "sort_id"),
    "ducklake_macro_impl": ("ducklake_macro", "macro_id"),
    "ducklake_macro_parameters": ("ducklake_macro", "macro_id"),
    "ducklake_table_stats": ("ducklake_table", "table_id"),
    "ducklake_table_column_stats": ("ducklake_table", "table_id"),
    "ducklake_column_mapping": ("ducklake_table", "table_id"),
    "ducklake_inlined_data_tables": ("ducklake_table", "table_id"),
}
#: Tables that are not copied: a branch has options of its own, and deletes no file of its lake.
_LEFT_OUT = frozenset(("ducklake_metadata", "ducklake_files_scheduled_for_deletion"))


def check_copyable(connection: sa.Connection, snapshot_id: int, newest: int) -> None:
    """Check that the data files of a snapshot hold no rows of later ones.

    Raises:
        UnsupportedFeatureError: one does, as after a flush or a merge of files.
    """
    if snapshot_id == newest:
        return
    f = t.data_file
    later = sa.and_(f.c.begin_snapshot <= snapshot_id, f.c.partial_max > snapshot_id)
    first = connection.scalar(sa.select(sa.func.max(f.c.partial_max)).where(later))
    if first is not None:
        raise UnsupportedFeatureError(
            f"A branch at snapshot {snapshot_id} is not supported, as a file holds rows of it and of later snapshots; "
            f"branch at snapshot {first} or a later one."
        )


def copy_metadata(
    source: Lake,
    connection: sa.Connection,
    target: sa.Connection,
    snapshot: Snapshot,
) -> None:
    """Copies all but options, in one transaction that reads nothing of the target; the caller commits it.

    Args:
        connection: a connection to the source's catalog.
        target: a connection to an empty catalog of the same database.
    """
    with _reading(source.database, connection, target) as prefix:
        version = source.version
        inlined = list(_inlined(source, connection, snapshot))
        define_tables(target, version)
        for name, _ in inlined:
            _define_inlined(source.database, connection, target, prefix, name)
        for table in versions.tables(version).sorted_tables:
            if table.name not in _LEFT_OUT and table.name not in _PARENTS and table.name != t.name_mapping.name:
                _copy(target, prefix, table.name, _values(table, snapshot), _condition(table, snapshot))
        for name, (parent, key) in _PARENTS.items():
            if name in versions.tables(version).tables:
                table = versions.tables(version).tables[name]
                condition = f"{key} IN (SELECT {key} FROM {parent})"
                if name == t.inlined_data_tables.name:
                    named = ", ".join(quote_text(of) for of, is_data in inlined if is_data)
                    condition += f" AND table_name IN ({named or 'NULL'})"
                _copy(target, prefix, name, _values(table, snapshot), condition)
        mappings = "mapping_id IN (SELECT mapping_id FROM ducklake_column_mapping)"
        _copy(target, prefix, t.name_mapping.name, _values(t.name_mapping, snapshot), mappings)
        _, begin, end = version.inlined_columns
        for name, is_data in inlined:
            columns = columns_of(connection, name)
            ends = {end: _end(quote_identifier(end), snapshot)} if is_data else {}
            begins = begin if is_data else "begin_snapshot"
            values = {column: ends.get(column, quote_identifier(column)) for column in columns}
            _copy(target, prefix, name, values, f"{quote_identifier(begins)} <= {snapshot.snapshot_id:d}")


def count_rows_anew(writes: Writes) -> None:
    """Set the counts of rows and bytes of tables to those of their files and inlined rows; their bounds stay wide enough."""
    f, target = t.data_file, writes.connection
    live = f.c.end_snapshot.is_(None)
    counts = sa.select(f.c.table_id, sa.func.sum(f.c.record_count), sa.func.sum(f.c.file_size_bytes))
    sums = {row[0]: (int(row[1]), int(row[2])) for row in target.execute(counts.where(live).group_by(f.c.table_id))}
    _, _, end = versions.of(target).inlined_columns
    i = t.inlined_data_tables
    for table_id, name in target.execute(sa.select(i.c.table_id, i.c.table_name)).all():
        query = f"SELECT count(*) FROM {quote_identifier(name)} WHERE {quote_identifier(end)} IS NULL"
        rows, size = sums.get(table_id, (0, 0))
        sums[table_id] = (rows + int(run_text(target, query).scalar_one()), size)
    s = t.table_stats
    for table_id in target.scalars(sa.select(s.c.table_id)).all():
        rows, size = sums.get(table_id, (0, 0))
        counted = s.update().where(s.c.table_id == table_id)
        writes.write_to_earlier(counted.values(record_count=rows, file_size_bytes=size))


@contextmanager
def _reading(database: CatalogDatabase, connection: sa.Connection, target: sa.Connection) -> Iterator[str]:
    """Makes the source readable on the target's connection, and yields SQL that goes before its tables."""
    location = database.location
    match database.backend:
        case "duckdb":
            place = connection.exec_driver_sql("SELECT current_database(), current_schema()").one()
            yield ".".join(map(quote_identifier, place)) + "."
        case "sqlite":
            driver = target.connection.driver_connection
            assert driver is not None and location.path is not None
            target.rollback()
            driver.execute("ATTACH ? AS ducklake_source", (str(location.path),))
            target.begin()
            yield "ducklake_source."
            target.commit()
            driver.execute("DETACH ducklake_source")
            target.begin()
        case "mysql":
            yield quote_identifier(location.url.database or "") + "."
        case _:
            schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
            yield quote_identifier(schema) + "."


def _inlined(source: Lake, connection: sa.Connection, snapshot: Snapshot) -> Iterator[tuple[str, bool]]:
    """Yields (name, whether it holds rows) of tables of inlined rows and deletions that the snapshot can have."""
    i = t.inlined_data_tables
    names = sa.select(i.c.table_name).where(i.c.schema_version <= snapshot.schema_version).order_by(i.c.table_name)
    yield from ((name, True) for name in connection.scalars(names))
    yield from ((name, False) for name in delete_tables(connection, source.database).values())


def _define_inlined(
    database: CatalogDatabase, connection: sa.Connection, target: sa.Connection, prefix: str, name: str
) -> None:
    quoted = quote_identifier(name)
    if database.backend != "sqlite":
        run_text(target, f"CREATE TABLE {quoted} AS SELECT * FROM {prefix}{quoted} WHERE 1 = 0")
        return
    # a table AS SELECT would lose the declared types
    described = run_text(connection, f"PRAGMA table_info({quoted})").mappings()
    columns = ", ".join(f"{quote_identifier(row['name'])} {row['type']}" for row in described)
    run_text(target, f"CREATE TABLE {quoted} ({columns})")


def _copy(target: sa.Connection, prefix: str, name: str, values: Mapping[str, str], condition: str) -> None:
    columns = ", ".join(map(quote_identifier, values))
    quoted = quote_identifier(name)
    run_text(
        target,
        f"INSERT INTO {quoted} ({columns}) SELECT {', '.join(values.values())} FROM {prefix}{quoted} WHERE {condition}",
    )


def _values(table: sa.Table, snapshot: Snapshot) -> dict[str, str]:
    """Return SQL for each column of a copy."""
    return {
        column.name: _end("end_snapshot", snapshot) if column.name == "end_snapshot" else quote_identifier(column.name)
        for column in table.columns
    }


def _end(column: str, snapshot: Snapshot) -> str:
    return f"CASE WHEN {column} <= {snapshot.snapshot_id:d} THEN {column} END"


def _condition(table: sa.Table, snapshot: Snapshot) -> str:
    for name in ("begin_snapshot", "snapshot_id"):
        if name in table.c:
            return f"{name} <= {snapshot.snapshot_id:d}"
    return "1 = 1"
