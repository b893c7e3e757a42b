"""The history of a lake and the files of a table, as listings show them; a few set-based queries each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.casting import quote_identifier
from ducklake_lab.catalog.files import read_column_stats, read_data_files, visible_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history, visible
from ducklake_lab.model.changes import Change, parse_changes
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.history import ChangeKind, FileEntry, HistoryEntry
from ducklake_lab.model.state import CatalogState

_READABLE = {
    "dropped_schema": "dropped schema {}",
    "dropped_table": "dropped table {}",
    "dropped_view": "dropped view {}",
    "created_schema": "created schema {}",
    "created_table": "created table {}",
    "created_view": "created view {}",
    "created_scalar_macro": "created macro {}",
    "created_table_macro": "created macro {}",
    "dropped_scalar_macro": "dropped macro {}",
    "dropped_table_macro": "dropped macro {}",
    "inserted_into_table": "inserted into {}",
    "inlined_insert": "inserted into {}",
    "deleted_from_table": "deleted from {}",
    "inlined_delete": "deleted from {}",
    "altered_table": "altered {}",
    "altered_view": "altered view {}",
    "inline_flush": "flushed {}",
    "flushed_inlined": "flushed {}",
    "compacted_table": "compacted {}",
    "merge_adjacent": "merged files of {}",
    "rewrite_delete": "rewrote files of {}",
}
_INSERTS = {"inserted_into_table", "inlined_insert"}
_DELETES = {"deleted_from_table", "inlined_delete"}
_MAINTENANCE = {"inline_flush", "flushed_inlined", "compacted_table", "merge_adjacent", "rewrite_delete"}


def kind_of(changes: Iterable[Change]) -> ChangeKind:
    """What a snapshot mostly did: rows before schema, since CREATE TABLE AS is a load to those who look."""
    kinds = {change.kind for change in changes}
    inserts, deletes = bool(kinds & _INSERTS), bool(kinds & _DELETES)
    if inserts and deletes:
        return "update"
    if inserts:
        return "insert"
    if deletes:
        return "delete"
    if kinds & _MAINTENANCE:
        return "maintenance"
    return "schema" if kinds else "none"


def lake_history(
    lake: Lake, connection: sa.Connection, *, table_id: int | None = None, last: int | None = None
) -> list[HistoryEntry]:
    """The snapshots of a lake, oldest first; only those that touched a table, or only the newest `last`, if given."""
    names = _table_names(connection)
    counts = _Counts(lake, connection)
    entries = []
    for info in read_history(connection, last):
        if lake.at is not None and info.snapshot_id > lake.snapshot(connection).snapshot_id:
            continue
        changes = parse_changes(info.changes_made)
        touched = [i for change in changes if (i := _table_of(change, names)) is not None]
        if table_id is not None and table_id not in touched:
            continue
        added, removed, size = counts.of(info.snapshot_id, table_id)
        entries.append(
            HistoryEntry(
                info=info,
                kind=kind_of(changes),
                changes=tuple(dict.fromkeys(_readable(change, names) for change in changes)),
                tables=tuple(dict.fromkeys(names[i] for i in touched)),
                rows_added=added,
                rows_removed=removed,
                bytes_added=size,
            )
        )
    return entries


def _table_names(connection: sa.Connection) -> dict[int, str]:
    """The newest `schema.table` name of every table, view and schema that ever was."""
    s, table = t.schema, t.table
    query = (
        sa.select(table.c.table_id, s.c.schema_name, table.c.table_name)
        .join(s, s.c.schema_id == table.c.schema_id)
        .order_by(table.c.begin_snapshot)
    )
    return {table_id: f"{schema}.{name}" for table_id, schema, name in connection.execute(query).tuples()}


def _table_of(change: Change, names: dict[int, str]) -> int | None:
    if isinstance(change.value, int):
        return change.value if change.value in names and not change.kind.endswith("_schema") else None
    if change.kind != "created_table":
        return None
    wanted = ".".join(change.value)
    return next((table_id for table_id, name in names.items() if name == wanted), None)


def _readable(change: Change, names: dict[int, str]) -> str:
    if isinstance(change.value, int):
        name = names.get(change.value, f"#{change.value}")
    else:
        name = ".".join(change.value)
    return _READABLE.get(change.kind, change.kind.replace("_", " ") + " {}").format(name)


class _Counts:
    """Rows and bytes that each snapshot added and removed, by table."""

    def __init__(self, lake: Lake, connection: sa.Connection) -> None:
        self._added: dict[tuple[int, int], int] = defaultdict(int)
        self._removed: dict[tuple[int, int], int] = defaultdict(int)
        self._bytes: dict[tuple[int, int], int] = defaultdict(int)
        f, d = t.data_file, t.delete_file
        begun = sa.select(
            f.c.begin_snapshot, f.c.table_id, sa.func.sum(f.c.record_count), sa.func.sum(f.c.file_size_bytes)
        ).group_by(f.c.begin_snapshot, f.c.table_id)
        for snapshot_id, table_id, rows, size in connection.execute(begun).tuples():
            self._added[snapshot_id, table_id] += int(rows or 0)
            self._bytes[snapshot_id, table_id] += int(size or 0)
        self._count_delete_files(connection)
        ended = (
            sa.select(f.c.end_snapshot, f.c.table_id, f.c.record_count, d.c.delete_count)
            .outerjoin(d, sa.and_(d.c.data_file_id == f.c.data_file_id, d.c.end_snapshot == f.c.end_snapshot))
            .where(f.c.end_snapshot.is_not(None))
        )
        for snapshot_id, table_id, rows, deleted in connection.execute(ended).tuples():
            self._removed[snapshot_id, table_id] += int(rows or 0) - int(deleted or 0)
        self._count_inlined(lake, connection)

    def _count_delete_files(self, connection: sa.Connection) -> None:
        d = t.delete_file
        columns = (d.c.data_file_id, d.c.begin_snapshot, d.c.end_snapshot, d.c.table_id, d.c.delete_count,
                   d.c.file_size_bytes)
        previous: dict[tuple[int, int | None], int] = {}
        for file_id, begin, end, table_id, count, size in connection.execute(
            sa.select(*columns).order_by(d.c.begin_snapshot)
        ).tuples():
            # a delete file repeats the deletions of the one that it takes the place of
            self._removed[begin, table_id] += count - previous.get((file_id, begin), 0)
            self._bytes[begin, table_id] += size
            previous[file_id, end] = count

    def _count_inlined(self, lake: Lake, connection: sa.Connection) -> None:
        i = t.inlined_data_tables
        tables = list(connection.execute(sa.select(i.c.table_id, i.c.table_name)).tuples())
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
            for snapshot_id, table_id, rows in inlined.run_text(connection, query).tuples():
                counts[snapshot_id, table_id] += rows
        for table_id in {table_id for table_id, _ in tables}:
            if lake.database.has_table(connection, inlined.delete_table_name(table_id)):
                name = quote_identifier(inlined.delete_table_name(table_id))
                query = f"SELECT begin_snapshot, count(*) FROM {name} GROUP BY begin_snapshot"
                for snapshot_id, rows in inlined.run_text(connection, query).tuples():
                    self._removed[snapshot_id, table_id] += rows

    def of(self, snapshot_id: int, table_id: int | None) -> tuple[int, int, int]:
        """(rows added, rows removed, bytes added) by a snapshot, in one table or all."""
        sums = (
            sum(
                value
                for (snapshot, table), value in counts.items()
                if snapshot == snapshot_id and table_id in (None, table)
            )
            for counts in (self._added, self._removed, self._bytes)
        )
        added, removed, size = sums
        return added, removed, size


def table_files(lake: Lake, connection: sa.Connection, state: CatalogState, table: Table) -> list[FileEntry]:
    """The data files of a table at the state's snapshot, with deletions, partition values and statistics."""
    at = state.snapshot.snapshot_id
    folder = lake.folder(state, table)
    delete_files = visible_delete_files(connection, table.table_id, at)
    positions = inlined.read_deletes(connection, lake.database, table.table_id, at)
    stats = read_column_stats(connection, table.table_id, None, at)
    names = dict(_leaf_names(table.columns))
    keys = _partition_keys(connection, table)
    entries = []
    for file in read_data_files(connection, table.table_id, visible(t.data_file, at)):
        delete = delete_files.get(file.data_file_id)
        entries.append(
            FileEntry(
                data_file=file,
                path=paths.resolve(folder, file.path, file.path_is_relative),
                deleted=(delete.delete_count if delete is not None else 0) + len(positions.get(file.data_file_id, ())),
                delete_path=paths.resolve(folder, delete.path, delete.path_is_relative) if delete is not None else None,
                delete_bytes=delete.file_size_bytes if delete is not None else 0,
                partition=tuple(zip(keys.get(file.partition_id, ()), file.partition_values, strict=False)),
                stats={
                    names[column_id]: column
                    for column_id, column in stats.get(file.data_file_id, {}).items()
                    if column_id in names
                },
            )
        )
    return entries


def _leaf_names(columns: Iterable[Column], prefix: str = "") -> Iterable[tuple[int, str]]:
    for column in columns:
        if column.children:
            yield from _leaf_names(column.children, f"{prefix}{column.name}.")
        else:
            yield column.column_id, prefix + column.name


def _partition_keys(connection: sa.Connection, table: Table) -> dict[int | None, tuple[str, ...]]:
    """The keys of every partition spec the table ever had, as people write them."""
    p = t.partition_column
    query = (
        sa.select(p.c.partition_id, p.c.column_id, p.c.transform)
        .where(p.c.table_id == table.table_id)
        .order_by(p.c.partition_id, p.c.partition_key_index)
    )
    found: dict[int | None, tuple[str, ...]] = {}
    for partition_id, column_id, transform in connection.execute(query).tuples():
        column = table.column_by_id(column_id)
        name = column.name if column is not None else f"#{column_id}"
        key = name if transform == "identity" else f"{transform}({name})"
        found[partition_id] = (*found.get(partition_id, ()), key)
    return found
