"""Expire snapshots, and remove rows and files that only they could see (spec: maintenance, expiring snapshots)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, paths, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.branches.points import read_branch_points
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history, read_snapshot
from ducklake_lab.catalog.snapshot_tags import read_tags
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.transaction.metadata import Metadata, schedule_deletion

#: Metadata tables with rows by table id.
_OF_TABLE = (
    t.table,
    t.table_stats,
    t.table_column_stats,
    t.partition_info,
    t.partition_column,
    t.column,
    t.column_tag,
    t.sort_info,
    t.sort_expression,
    t.schema_versions,
    t.inlined_data_tables,
    t.column_mapping,
)
_OF_FILE = (t.data_file, t.file_column_stats, t.file_variant_stats, t.file_partition_value)
#: Tables whose rows go as soon as no snapshot that is left sees them.
_VERSIONED = (t.schema, t.view, t.view_column_tag, t.tag, t.macro)


def read_expirable(lake: Lake, *, with_tags: bool) -> list[SnapshotInfo]:
    """List the snapshots that can expire, oldest first: not the newest; those with tags or branches only if asked for."""
    with lake.connect() as connection:
        kept = {read_snapshot(connection).snapshot_id}
        if not with_tags:
            kept |= {*read_tags(connection).values(), *read_branch_points(connection)}
        return [info for info in read_history(connection) if info.snapshot_id not in kept]


def check_expirable(connection: sa.Connection, snapshot_ids: Collection[int]) -> int:
    """The id of the newest snapshot, which is to stay.

    Raises:
        CatalogError: the newest snapshot, or one with a tag or a branch, is among those to be forgotten.
    """
    newest = read_snapshot(connection).snapshot_id
    if newest in snapshot_ids:
        raise CatalogError(f"Snapshot {newest} is the newest and cannot expire.")
    kept = {number: name for name, number in read_tags(connection).items() if number in snapshot_ids}
    if kept:
        number, name = min(kept.items())
        raise CatalogError(f'Snapshot {number} has the tag "{name}" and cannot expire; untag it first.')
    points = {number: name for number, name in read_branch_points(connection).items() if number in snapshot_ids}
    if points:
        number, name = min(points.items())
        raise CatalogError(
            f'The branch "{name}" began at snapshot {number}, which cannot expire; drop or rebase it first.'
        )
    return newest


def delete_snapshots(lake: Lake, connection: sa.Connection, snapshot_ids: Collection[int]) -> None:
    """Expire snapshots; the caller commits. Files that no other snapshot sees are scheduled for deletion.

    Raises:
        CatalogError: the newest snapshot, or one with a tag or a branch, is among them; nothing was done.
    """
    if snapshot_ids:
        _Expiry(lake, connection, check_expirable(connection, snapshot_ids)).run(sorted(snapshot_ids))


class _Expiry:
    def __init__(self, lake: Lake, connection: sa.Connection, newest: int) -> None:
        self._lake, self._connection = lake, connection
        self._metadata = Metadata(connection, newest)

    def run(self, snapshot_ids: Sequence[int]) -> None:
        for rows in (t.snapshot, t.snapshot_changes):
            self._remove(rows, self._one_of(rows.c.snapshot_id, snapshot_ids))
        dropped = self._unseen_tables()
        folders = self._folders()
        f, d = t.data_file, t.delete_file
        of_tables = self._one_of(f.c.table_id, dropped)
        files = self._remove_files(f, f.c.data_file_id, sa.or_(of_tables, _unseen(f)), folders)
        for rows in _OF_FILE[1:]:
            self._remove(rows, self._one_of(rows.c.data_file_id, files))
        gone = sa.or_(self._one_of(d.c.table_id, dropped), self._one_of(d.c.data_file_id, files), _unseen(d))
        self._remove_files(d, d.c.delete_file_id, gone, folders)
        if dropped:
            self._remove_tables(dropped)
        for rows in _VERSIONED:
            self._remove(rows, _unseen(rows))
        for parts, owner, key in (
            (t.macro_impl, t.macro, "macro_id"),
            (t.macro_parameters, t.macro, "macro_id"),
            (t.name_mapping, t.column_mapping, "mapping_id"),
        ):
            self._remove(parts, parts.c[key].not_in(sa.select(owner.c[key])))

    def _one_of(self, column: sa.Column[int], ids: Collection[int]) -> sa.ColumnElement[bool]:
        return one_of(self._connection, column, ids)

    def _remove(self, rows: sa.Table, gone: sa.ColumnElement[bool]) -> None:
        """Deletes rows of a metadata table, if the catalog's version has the table."""
        if versions.has(self._connection, rows):
            self._connection.execute(rows.delete().where(gone))

    def _unseen_tables(self) -> list[int]:
        """Return the ids of tables that no remaining snapshot sees under any name."""
        seen = sa.select(t.table.c.table_id).where(sa.not_(_unseen(t.table)))
        query = sa.select(t.table.c.table_id).where(t.table.c.table_id.not_in(seen)).distinct()
        return [table_id for (table_id,) in self._connection.execute(query)]

    def _folders(self) -> dict[int, str]:
        """The absolute folder of every table there ever was, by its id."""
        table, schema = t.table, t.schema
        query = sa.select(
            table.c.table_id, table.c.path, table.c.path_is_relative, schema.c.path, schema.c.path_is_relative
        ).join(schema, schema.c.schema_id == table.c.schema_id)
        folders = {}
        for table_id, path, relative, schema_path, schema_relative in self._connection.execute(query):
            base = paths.resolve(self._lake.data_path, schema_path or "", schema_relative is not False)
            folders[table_id] = paths.resolve(base, path or "", relative is not False)
        return folders

    def _remove_files(
        self, rows: sa.Table, key: sa.Column[int], gone: sa.ColumnElement[bool], folders: dict[int, str]
    ) -> list[int]:
        """Takes files out of the catalog and schedules them for deletion; their ids."""
        query = sa.select(key, rows.c.table_id, rows.c.path, rows.c.path_is_relative).where(gone).order_by(key)
        ended = self._connection.execute(query).all()
        ids = [row[0] for row in ended]
        if ids:
            self._connection.execute(rows.delete().where(self._one_of(key, ids)))
            named = [(row[0], paths.resolve(folders.get(row[1], ""), row[2], row[3] is not False)) for row in ended]
            schedule_deletion(self._metadata, self._lake.data_path, named)
        return ids

    def _remove_tables(self, table_ids: Sequence[int]) -> None:
        i = t.inlined_data_tables
        query = sa.select(i.c.table_name).where(self._one_of(i.c.table_id, table_ids))
        names = self._connection.execute(query).scalars().all()
        for rows in _OF_TABLE:
            self._remove(rows, self._one_of(rows.c.table_id, table_ids))
        for name in (*names, *(inlined.delete_table_name(table_id) for table_id in table_ids)):
            run_text(self._connection, f"DROP TABLE IF EXISTS {quote_identifier(name)}")


def _unseen(rows: sa.Table) -> sa.ColumnElement[bool]:
    """Rows that have ended and that no snapshot sees."""
    s = t.snapshot
    sees = sa.select(s.c.snapshot_id).where(
        s.c.snapshot_id >= rows.c.begin_snapshot, s.c.snapshot_id < rows.c.end_snapshot
    )
    return sa.and_(rows.c.end_snapshot.is_not(None), sa.not_(sees.exists()))
