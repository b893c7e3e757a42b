"""Copies the metadata of a lake, as of one of its snapshots, into an empty catalog of the same database.

The copy has all snapshots up to that one, with their ids, entries, files and inlined rows. Later snapshots are absent from it:
no row begins after it, and what ended later has not ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.creating import define_tables
from ducklake_lab.catalog.database import CatalogDatabase
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


@dataclass(frozen=True, slots=True)
class Source:
    """The metadata of a lake up to one of its snapshots, as the connection to a branch's catalog reads it.

    Attributes:
        connection: a connection to the lake's catalog.
        target: the connection that reads it, to an empty catalog of the same database.
        prefix: SQL before the names of the lake's metadata tables.
    """

    lake: Lake
    connection: sa.Connection
    target: sa.Connection
    snapshot: Snapshot
    prefix: str

    def rows(self, table: sa.Table, columns: Sequence[str], condition: str = "1 = 1") -> Sequence[Any]:
        """Return rows as the driver gives them: a catalog may have a hundred thousand."""
        listed = ", ".join(map(quote_identifier, columns))
        where = f"{_condition(table, self.snapshot)} AND {condition}"
        result = run_text(
            self.target, f"SELECT {listed} FROM {self.prefix}{quote_identifier(table.name)} WHERE {where}"
        )
        assert result.cursor is not None
        rows = result.cursor.fetchall()
        result.close()
        return rows


def define_metadata(source: Source) -> list[tuple[str, bool]]:
    """Creates the metadata tables of the copy; returns (name, holds rows) of each table of inlined rows or deletions.

    This comes before all that is read, as MySQL commits with each.
    """
    inlined = list(_inlined(source.lake, source.connection, source.snapshot))
    define_tables(source.target, source.lake.version)
    for name, _ in inlined:
        _define_inlined(source.lake.database, source.connection, source.target, source.prefix, name)
    return inlined


def is_of_newest(source: Source) -> bool:
    """Return whether the snapshot is the lake's newest; if not, check that no data file holds rows of later ones.

    Raises:
        UnsupportedFeatureError: one does, as after a flush or a merge of files.
    """
    snapshot_id = source.snapshot.snapshot_id
    query = f"SELECT max(snapshot_id) FROM {source.prefix}ducklake_snapshot"
    if run_text(source.target, query).scalar_one() == snapshot_id:
        return True
    later = source.rows(t.data_file, ("partial_max",), f"partial_max > {snapshot_id:d}")
    if later:
        raise UnsupportedFeatureError(
            f"A branch at snapshot {snapshot_id} is not supported, as a file holds rows of it and of later snapshots; "
            f"branch at snapshot {max(later)[0]} or a later one."
        )
    return False


def tables_with_later_ends(source: Source, inlined: Sequence[tuple[str, bool]]) -> set[int]:
    """Return the ids of tables with files or inlined rows at the snapshot that later ones ended.

    Maintenance may have narrowed the bounds of such a table to its later rows.

    Args:
        inlined: from `define_metadata`.
    """
    later = f"> {source.snapshot.snapshot_id:d}"
    found = {int(row[0]) for row in source.rows(t.data_file, ("table_id",), f"end_snapshot {later}")}
    _, begin, end = map(quote_identifier, source.lake.version.inlined_columns)
    i = t.inlined_data_tables
    for table_id, name in source.connection.execute(sa.select(i.c.table_id, i.c.table_name)).all():
        if (name, True) in inlined and int(table_id) not in found:
            ended = f"NOT ({begin} {later}) AND {end} {later}"
            query = f"SELECT count(*) FROM {source.prefix}{quote_identifier(name)} WHERE {ended}"
            if run_text(source.target, query).scalar_one():
                found.add(int(table_id))
    return found


def copy_metadata(source: Source, inlined: Sequence[tuple[str, bool]], unbounded: Collection[int] = ()) -> None:
    """Copies all but options, in the transaction of the target; the caller commits it.

    Args:
        inlined: from `define_metadata`.
        unbounded: ids of tables whose own bounds are left out, which makes them unknown.
    """
    lake, connection, target, snapshot = source.lake, source.connection, source.target, source.snapshot
    prefix, version = source.prefix, lake.version
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
            if name == t.table_column_stats.name and unbounded:
                condition += f" AND table_id NOT IN ({', '.join(map(str, sorted(unbounded)))})"
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


def count_ids_anew(writes: Writes, snapshot: Snapshot) -> None:
    """Set the next file id of a copy's newest snapshot after all ids in use: later commits may have written files that it has."""
    ids = (t.data_file.c.data_file_id, t.delete_file.c.delete_file_id, t.column_mapping.c.mapping_id)
    last = max(writes.connection.scalar(sa.select(sa.func.max(column))) or 0 for column in ids)
    s = t.snapshot
    raised = s.update().where(s.c.snapshot_id == snapshot.snapshot_id, s.c.next_file_id <= last)
    writes.write_to_earlier(raised.values(next_file_id=last + 1))


def count_rows_anew(writes: Writes) -> None:
    """Count the rows and bytes of tables from their files and inlined rows."""
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
def reading(lake: Lake, connection: sa.Connection, target: sa.Connection, snapshot: Snapshot) -> Iterator[Source]:
    """Makes the metadata of a lake readable on a connection to another catalog of the same database in the block."""
    location = lake.database.location
    match lake.database.backend:
        case "duckdb":
            place = connection.exec_driver_sql("SELECT current_database(), current_schema()").one()
            yield Source(lake, connection, target, snapshot, ".".join(map(quote_identifier, place)) + ".")
        case "sqlite":
            driver = target.connection.driver_connection
            assert driver is not None and location.path is not None
            target.rollback()
            driver.execute("ATTACH ? AS ducklake_source", (str(location.path),))
            target.begin()
            yield Source(lake, connection, target, snapshot, "ducklake_source.")
            target.commit()
            driver.execute("DETACH ducklake_source")
            target.begin()
        case "mysql":
            yield Source(lake, connection, target, snapshot, quote_identifier(location.url.database or "") + ".")
        case _:
            schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
            yield Source(lake, connection, target, snapshot, quote_identifier(schema) + ".")


def _inlined(source: Lake, connection: sa.Connection, snapshot: Snapshot) -> Iterator[tuple[str, bool]]:
    """Yields (name, whether it holds rows) of tables of inlined rows and deletions that the snapshot can have."""
    i = t.inlined_data_tables
    names = sa.select(i.c.table_name).where(i.c.schema_version <= snapshot.schema_version).order_by(i.c.table_name)
    yield from ((name, True) for name in connection.scalars(names))
    yield from ((name, False) for name in inlined_deletions.tables(connection, source.database).values())


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
