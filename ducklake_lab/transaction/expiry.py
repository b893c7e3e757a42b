"""Expire snapshots, and remove rows and files that only they could see (spec: maintenance, expiring snapshots)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.branches.points import read_branch_points
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshot_tags import read_tags
from ducklake_lab.catalog.snapshots import read_history, read_snapshot
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.transaction.metadata import schedule_deletion

_s = t.snapshot.c
#: Ranges of ids that a query names as such.
_MOST_RANGES = 50
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


def delete_snapshots(lake: Lake, writes: Writes, snapshot_ids: Collection[int]) -> None:
    """Hold the expiry of snapshots. Files that no other snapshot sees are scheduled for deletion.

    Raises:
        CatalogError: the newest snapshot, or one with a tag or a branch, is among them; nothing was done.
    """
    if snapshot_ids:
        check_expirable(writes.connection, snapshot_ids)
        _Expiry(lake, writes, sorted(snapshot_ids)).run()


class _Expiry:
    def __init__(self, lake: Lake, writes: Writes, snapshot_ids: Sequence[int]) -> None:
        self._lake, self._writes, self._connection = lake, writes, writes.connection
        self._expired = snapshot_ids
        self._stays: sa.ColumnElement[bool] = sa.true()

    def run(self) -> None:
        found = sa.select(sa.func.count(_s.snapshot_id.distinct())).where(self._one_of(_s.snapshot_id, self._expired))
        there = [number for (number,) in self._connection.execute(sa.select(_s.snapshot_id).order_by(_s.snapshot_id))]
        self._writes.expect(found, len({*there} & {*self._expired}))
        ranges = _ranges(there, self._expired)
        # databases limit the depth of conditions
        if len(ranges) > _MOST_RANGES:
            self._stays = sa.not_(self._one_of(_s.snapshot_id, self._expired))
        else:
            self._stays = sa.and_(True, *(sa.not_(_s.snapshot_id.between(*ends)) for ends in ranges))
        for rows in (t.snapshot, t.snapshot_changes):
            self._remove(rows, self._one_of(rows.c.snapshot_id, self._expired))
        dropped = self._unseen_tables()
        folders = self._folders()
        f, d = t.data_file, t.delete_file
        of_tables = self._one_of(f.c.table_id, dropped)
        files = self._remove_files(f, f.c.data_file_id, sa.or_(of_tables, _unseen(f, self._stays)), folders)
        for rows in _OF_FILE[1:]:
            self._remove(rows, self._one_of(rows.c.data_file_id, files))
        gone = sa.or_(
            self._one_of(d.c.table_id, dropped), self._one_of(d.c.data_file_id, files), _unseen(d, self._stays)
        )
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
        if self._writes.has(rows):
            self._writes.write_to_earlier(rows.delete().where(gone))

    def _unseen_tables(self) -> list[int]:
        """Return the ids of tables that no remaining snapshot sees under any name."""
        seen = sa.select(t.table.c.table_id).where(sa.not_(_unseen(t.table, self._stays)))
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
            self._writes.write_to_earlier(rows.delete().where(self._one_of(key, ids)))
            named = [(row[0], paths.resolve(folders.get(row[1], ""), row[2], row[3] is not False)) for row in ended]
            schedule_deletion(self._writes, self._lake.data_path, named)
        return ids

    def _remove_tables(self, table_ids: Sequence[int]) -> None:
        i = t.inlined_data_tables
        query = sa.select(i.c.table_name).where(self._one_of(i.c.table_id, table_ids))
        names = self._connection.execute(query).scalars().all()
        for rows in _OF_TABLE:
            self._remove(rows, self._one_of(rows.c.table_id, table_ids))
        for name in (*names, *(inlined_deletions.table_name(table_id) for table_id in table_ids)):
            self._writes.text(f"DROP TABLE IF EXISTS {quote_identifier(name)}")


def _unseen(rows: sa.Table, *stays: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Rows that have ended and that no snapshot sees.

    Args:
        stays: condition on snapshots, where those that expire are still there.
    """
    sees = sa.select(_s.snapshot_id).where(
        _s.snapshot_id >= rows.c.begin_snapshot, _s.snapshot_id < rows.c.end_snapshot
    )
    return sa.and_(rows.c.end_snapshot.is_not(None), sa.not_(sees.where(*stays).exists()))


def _ranges(there: Iterable[int], expired: Collection[int]) -> list[tuple[int, int]]:
    """The first and last ids of expired snapshots that have no other one between them."""
    gone = set(expired)
    runs = groupby(there, gone.__contains__)
    return [(numbers[0], numbers[-1]) for is_gone, run in runs if is_gone and (numbers := list(run))]
