"""Rows and bytes that each snapshot added to a lake or a table and removed from it.

Sums over the catalog give most of it. Merged files and delete files of several snapshots are read where a snapshot that
is asked for is among theirs: nothing but the snapshot ids, and once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions, paths, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import among, read_delete_files, table_folders
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.files import DeleteFile
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.parallel import in_parallel
from ducklake_lab.scan.counts import in_one
from ducklake_lab.scan.positions import read_delete_file, rows_by_snapshot
from ducklake_lab.storage import Storage

#: The highest count.
_MOST = (1 << 63) - 1
#: After any snapshot.
_EVER = 1 << 61


@dataclass(slots=True)
class Movement:
    """Rows and bytes that one snapshot added and removed.

    Attributes:
        rows_added: inserted rows, new versions of updated ones included; rows that were only rewritten are not, nor rows
            that the snapshot itself deleted from files that it added.
        rows_removed: deleted rows, old versions of updated ones and rows of dropped tables included.
        bytes_added: size of the data and delete files that begin with it.
        bytes_removed: size of those that end with it.
    """

    rows_added: int = 0
    rows_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0

    def bound(self) -> None:
        """Bound all counts to possible ones, whatever the catalog has."""
        for name in self.__slots__:
            setattr(self, name, min(max(getattr(self, name), 0), _MOST))


class _DeleteFile(NamedTuple):
    """Row of a delete file in the catalog; `last` is the last snapshot whose deletions it may hold."""

    begin: int
    end: int | None
    last: int
    deleted: int


@dataclass(slots=True)
class _Deletions:
    """Everything that deletes from one data file: delete files, oldest first, and inlined deletions by snapshot.

    Attributes:
        begin: the snapshot that inserted all rows of the file; None where several did.
    """

    table_id: int
    begin: int | None
    end: int | None
    delete_files: list[_DeleteFile] = field(default_factory=list)
    inlined: dict[int, int] = field(default_factory=dict)


def movements(
    lake: Lake,
    connection: sa.Connection,
    between: tuple[int, int],
    rewritten: Mapping[int, Set[int]],
    table_id: int | None = None,
) -> Mapping[int, Movement]:
    """Count movements by snapshot id, for all tables or one; a snapshot that moved nothing may be missing.

    Args:
        between: the snapshots that are asked for, both ends included.
        rewritten: the tables whose files a snapshot wrote anew without changing a row, by snapshot id.

    Raises:
        DataFileError: a file that alone says what a snapshot did is missing or cannot be read.
    """
    return _Counting(lake, connection, between, rewritten, table_id).run()


class _Counting:
    def __init__(
        self,
        lake: Lake,
        connection: sa.Connection,
        between: tuple[int, int],
        rewritten: Mapping[int, Set[int]],
        table_id: int | None,
    ) -> None:
        self._lake, self._connection, self._table_id = lake, connection, table_id
        self._low, self._high = between
        self._rewritten = rewritten
        self._found: defaultdict[int, Movement] = defaultdict(Movement)

    def run(self) -> Mapping[int, Movement]:
        self._count_files()
        self._count_merged_files()
        self._count_deletions()
        self._count_inlined()
        for movement in self._found.values():
            movement.bound()
        return self._found

    def _asked(self, snapshot_id: int | None) -> bool:
        return snapshot_id is not None and self._low <= snapshot_id <= self._high

    def _of_table(self, column: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        return sa.true() if self._table_id is None else column == self._table_id

    def _is_rewritten(self, snapshot_id: int, table_id: int) -> bool:
        return table_id in self._rewritten.get(snapshot_id, ())

    def _count_files(self) -> None:
        """Whole data files: their bytes, and their rows where one snapshot inserted all of them."""
        f, d = t.data_file, t.delete_file
        own = sa.case((_is_merged(), 0), else_=f.c.record_count)
        for number, rows, size in self._sums(f, f.c.begin_snapshot, own):
            self._found[number].rows_added += rows
            self._found[number].bytes_added += size
        for number, rows, size in self._sums(f, f.c.end_snapshot, f.c.record_count):
            self._found[number].rows_removed += rows
            self._found[number].bytes_removed += size
        for number, _, size in self._sums(d, d.c.begin_snapshot, sa.literal(0)):
            self._found[number].bytes_added += size
        for number, _, size in self._sums(d, d.c.end_snapshot, sa.literal(0)):
            self._found[number].bytes_removed += size
        for column, counted, name in (
            (f.c.begin_snapshot, own, "rows_added"),
            (f.c.end_snapshot, f.c.record_count, "rows_removed"),
        ):
            query = (
                sa.select(column, f.c.table_id, sa.func.sum(counted))
                .where(column.between(self._low, self._high), self._of_table(f.c.table_id))
                .where(among(column, self._rewritten))
                .group_by(column, f.c.table_id)
            )
            for number, table_id, count in self._connection.execute(query).all() if self._rewritten else ():
                if self._is_rewritten(number, table_id):
                    setattr(self._found[number], name, getattr(self._found[number], name) - int(count))

    def _sums(
        self, table: sa.Table, snapshot: sa.ColumnElement[int], rows: sa.ColumnElement[int]
    ) -> list[tuple[int, int, int]]:
        """(snapshot, rows, bytes) of the files that begin or end with each snapshot."""
        query = (
            sa.select(snapshot, sa.func.sum(rows), sa.func.sum(table.c.file_size_bytes))
            .where(snapshot.between(self._low, self._high), self._of_table(table.c.table_id))
            .group_by(snapshot)
        )
        return [(number, int(count or 0), int(size or 0)) for number, count, size in self._connection.execute(query)]

    def _count_merged_files(self) -> None:
        """Rows of files that hold those of several snapshots."""
        f = t.data_file
        query = sa.select(f.c.table_id, f.c.path, f.c.path_is_relative, f.c.encryption_key, f.c.begin_snapshot).where(
            _is_merged(), f.c.begin_snapshot <= self._high, f.c.partial_max >= self._low, self._of_table(f.c.table_id)
        )
        files = self._connection.execute(query.add_columns(f.c.record_count)).all()
        folders = table_folders(self._connection, self._lake.data_path, {row[0] for row in files})
        named = in_parallel(files, lambda row: rows_by_snapshot(paths.resolve(folders[row[0]], row[1], row[2]), row[3]))
        for (table_id, *_, begin, records), by_snapshot in zip(files, named, strict=True):
            for number, rows in (by_snapshot or {begin: records}).items():
                if self._asked(number) and not self._is_rewritten(number, table_id):
                    self._found[number].rows_added += rows

    def _count_deletions(self) -> None:
        unknown: dict[int, _Deletions] = {}
        for file_id, file in self._deletions().items():
            if not self._matters(file):
                continue
            by_snapshot = self._from_catalog(file)
            if by_snapshot is None:
                unknown[file_id] = file
            else:
                self._count_deleted(file, by_snapshot)
        for file_id, counts in self._from_files(unknown).items():
            self._count_deleted(unknown[file_id], counts)

    def _count_deleted(self, file: _Deletions, by_snapshot: Mapping[int, int]) -> None:
        for number, rows in by_snapshot.items():
            if self._asked(number) and number == file.begin:
                self._found[number].rows_added -= rows  # no snapshot shows them
            elif self._asked(number):
                self._found[number].rows_removed += rows
        if file.end is not None and self._asked(file.end) and not self._is_rewritten(file.end, file.table_id):
            # these rows were deleted before, so that the file's end does not remove them
            gone = sum(rows for number, rows in by_snapshot.items() if number < file.end)
            self._found[file.end].rows_removed -= gone

    def _deletions(self) -> dict[int, _Deletions]:
        """Read the deletions by data file id."""
        f, d = t.data_file, t.delete_file
        # one written together with a merged file has snapshot ids, though its `partial_max` does not say so
        unnamed = sa.case((f.c.partial_max.is_not(None), _EVER), else_=d.c.begin_snapshot)
        last = sa.func.coalesce(d.c.partial_max, unnamed)
        query = (
            sa.select(d.c.data_file_id, f.c.table_id, _own_begin(), f.c.end_snapshot)
            .add_columns(d.c.begin_snapshot, d.c.end_snapshot, last, d.c.delete_count)
            .join(f, f.c.data_file_id == d.c.data_file_id)
            .where(d.c.begin_snapshot <= self._high, self._of_table(d.c.table_id))
            .order_by(d.c.begin_snapshot, d.c.delete_file_id)
        )
        deletions: dict[int, _Deletions] = {}
        for file_id, table_id, begin, end, *values in self._connection.execute(query).all():
            file = deletions.setdefault(file_id, _Deletions(table_id, begin, end))
            file.delete_files.append(_DeleteFile(*values))
        queries = [
            "SELECT x.file_id, x.begin_snapshot, f.table_id, f.begin_snapshot, f.end_snapshot, count(*) "
            f"FROM {quote_identifier(name)} AS x JOIN ducklake_data_file AS f ON f.data_file_id = x.file_id "
            f"WHERE x.begin_snapshot <= {self._high:d} "
            "GROUP BY x.file_id, x.begin_snapshot, f.table_id, f.begin_snapshot, f.end_snapshot"
            for table_id, name in inlined_deletions.tables(self._connection, self._lake.database).items()
            if self._table_id in (None, table_id)
        ]
        for file_id, number, table_id, begin, end, rows in in_one(self._connection, queries):
            # only files of earlier snapshots have inlined deletions
            deletions.setdefault(file_id, _Deletions(table_id, begin, end)).inlined[number] = rows
        return deletions

    def _matters(self, file: _Deletions) -> bool:
        """Return whether a snapshot that is asked for deleted from the file, or ended it."""
        return (
            self._asked(file.end)
            or any(self._asked(number) for number in file.inlined)
            or any(delete.last >= self._low for delete in file.delete_files)
        )

    def _from_catalog(self, file: _Deletions) -> dict[int, int] | None:
        """Deletions by snapshot; those before the first that is asked for may stand together."""
        if not file.delete_files:
            return file.inlined
        if file.inlined:
            return None  # a delete file may repeat deletions by catalog rows
        by_snapshot: defaultdict[int, int] = defaultdict(int)
        end, count = None, 0
        for at, delete in enumerate(file.delete_files):
            if at and (end is None or end > delete.begin):
                return None  # two at once
            if delete.begin < delete.last and delete.last >= self._low:
                return None
            # a delete file repeats the deletions of the one that it replaces
            by_snapshot[delete.begin] += delete.deleted - (count if end == delete.begin else 0)
            end, count = delete.end, delete.deleted
        return by_snapshot

    def _from_files(self, files: Mapping[int, _Deletions]) -> dict[int, dict[int, int]]:
        """Count deletions by snapshot, by data file id: the first of each position."""
        by_table: defaultdict[int, set[int]] = defaultdict(set)
        for file_id, file in files.items():
            by_table[file.table_id].add(file_id)
        folders = table_folders(self._connection, self._lake.data_path, by_table)
        listed: dict[int, tuple[list[tuple[str, DeleteFile]], list[tuple[int, int]]]] = {}
        for table_id, ids in by_table.items():
            of_file: defaultdict[int, list[tuple[str, DeleteFile]]] = defaultdict(list)
            of_ids = sa.and_(among(t.delete_file.c.data_file_id, ids), t.delete_file.c.begin_snapshot <= self._high)
            for delete in read_delete_files(self._connection, table_id, of_ids):
                path = paths.resolve(folders[table_id], delete.path, delete.path_is_relative)
                of_file[delete.data_file_id].append((path, delete))
            inlined_deletes = inlined_deletions.read(self._connection, self._lake.database, table_id, self._high)
            listed |= {file_id: (of_file[file_id], inlined_deletes.get(file_id, [])) for file_id in ids}
        storage = Storage()
        read = in_parallel(listed.values(), lambda entry: _first_deletions(*entry, storage))
        return dict(zip(listed, read, strict=True))

    def _count_inlined(self) -> None:
        i = t.inlined_data_tables
        query = sa.select(i.c.table_id, i.c.table_name).where(self._of_table(i.c.table_id))
        tables = [(table_id, quote_identifier(name)) for table_id, name in self._connection.execute(query)]
        _, begin, end = versions.of(self._connection).inlined_columns
        for snapshot, name in ((begin, "rows_added"), (end, "rows_removed")):
            queries = [
                f"SELECT {snapshot} AS number, count(*) AS n FROM {table} "
                f"WHERE {snapshot} BETWEEN {self._low:d} AND {self._high:d} GROUP BY {snapshot}"
                for _, table in tables
            ]
            for number, rows in in_one(self._connection, queries):
                setattr(self._found[number], name, getattr(self._found[number], name) + rows)
        dropped = self._dropped()
        queries = [
            f"SELECT {dropped[table_id]:d} AS number, count(*) AS n FROM {table} "
            f"WHERE {begin} < {dropped[table_id]:d} AND {end} IS NULL"
            for table_id, table in tables
            if table_id in dropped
        ]
        for number, rows in in_one(self._connection, queries):
            self._found[number].rows_removed += rows

    def _dropped(self) -> dict[int, int]:
        """The snapshots that dropped tables, by table id: rows in the catalog stay as they are then."""
        x = t.table
        query = sa.select(x.c.table_id, sa.func.max(x.c.end_snapshot)).where(self._of_table(x.c.table_id))
        ended = query.group_by(x.c.table_id).having(sa.func.count(x.c.end_snapshot) == sa.func.count())
        return {number: end for number, end in self._connection.execute(ended) if self._asked(end)}


def _is_merged() -> sa.ColumnElement[bool]:
    f = t.data_file
    return sa.and_(f.c.partial_max.is_not(None), f.c.partial_max > f.c.begin_snapshot)


def _own_begin() -> sa.ColumnElement[int | None]:
    f = t.data_file
    return sa.case((_is_merged(), None), else_=f.c.begin_snapshot)


def _first_deletions(
    files: Sequence[tuple[str, DeleteFile]], kept: Iterable[tuple[int, int]], storage: Storage
) -> dict[int, int]:
    """Count the positions that each snapshot was the first to delete."""
    pairs = np.array([*kept], np.int64).reshape(-1, 2)
    positions, snapshots = [pairs[:, 0]], [pairs[:, 1]]
    for path, delete in files:
        deleted, named = read_delete_file(path, delete, storage)
        positions.append(deleted)
        snapshots.append(np.full(len(deleted), delete.begin_snapshot, np.int64) if named is None else named)
    every, when = np.concatenate(positions), np.concatenate(snapshots)
    order = np.lexsort((when, every))
    every, when = every[order], when[order]
    first = np.append(True, every[1:] != every[:-1])[: len(every)]
    ids, counts = np.unique(when[first], return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))
