"""Plans the rows that two states do not share, and the rows each snapshot of a range changed.

Both cost what the changed files cost: files that both sides have, with the same deletions, are never read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog import inlined, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import read_data_files, read_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_column_names
from ducklake_lab.model.changes import parse_changes
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DataFile, DeleteFile
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.names import reused_names
from ducklake_lab.scan.plan import ChangePlan, DeletedRows, InlinedRows, ScanFile, ScanPlan


def compare(before: ScanPlan, after: ScanPlan) -> ChangePlan:
    """What separates two states of one table; both plans must read it under the same columns."""
    old = {file.data_file.data_file_id: file for file in before.files}
    new = {file.data_file.data_file_id: file for file in after.files}
    deleted = [
        DeletedRows(after=new[file_id], before=old[file_id], snapshot_id=-1)
        for file_id in old.keys() & new.keys()
        if _deletes(old[file_id]) != _deletes(new[file_id])
    ]
    inserted_rows, removed_rows = _compare_inlined(before.inlined, after.inlined)
    return ChangePlan(
        inserted=_plan(after, [file for key, file in new.items() if key not in old], inserted_rows),
        removed=_plan(before, [file for key, file in old.items() if key not in new], removed_rows),
        deleted=tuple(sorted(deleted, key=lambda rows: rows.after.data_file.data_file_id)),
    )


def _deletes(file: ScanFile) -> tuple[object, ...]:
    partial = file.deleted_up_to
    return (file.delete_path, partial, file.inlined_deletes)


def _plan(like: ScanPlan, files: Sequence[ScanFile], rows: pa.Table | None) -> ScanPlan:
    return replace(
        like,
        files=tuple(files),
        inlined=InlinedRows(rows) if rows is not None and rows.num_rows else None,
    )


def _compare_inlined(before: InlinedRows | None, after: InlinedRows | None) -> tuple[pa.Table | None, pa.Table | None]:
    """Inlined rows only in the later state, and only in the earlier one: a row is known by id and snapshot."""
    if before is None or after is None:
        return (after.rows if after else None), (before.rows if before else None)
    old, new = _keys(before.rows), _keys(after.rows)
    return (
        after.rows.filter(pc.invert(pc.is_in(new, value_set=old))),
        before.rows.filter(pc.invert(pc.is_in(old, value_set=new))),
    )


def _keys(rows: pa.Table) -> pa.Array:
    pairs = zip(rows.column(ROW_ID).to_pylist(), rows.column(SNAPSHOT_ID).to_pylist(), strict=True)
    return pa.array([f"{row_id}/{snapshot_id}" for row_id, snapshot_id in pairs], pa.string())


def plan_feed(
    lake: Lake, connection: sa.Connection, state: CatalogState, table: Table, start: int, end: int
) -> ChangePlan:
    """Plans the change feed of a table for snapshots `start` to `end`, both inclusive.

    Rows come under the table's columns as of `state`; `_ducklake_snapshot_id` is the snapshot that made the change.
    """
    return _Feed(lake, connection, state, table, start, end).plan()


class _Feed:
    def __init__(
        self, lake: Lake, connection: sa.Connection, state: CatalogState, table: Table, start: int, end: int
    ) -> None:
        self._lake, self._connection, self._table = lake, connection, table
        self._start, self._end = start, end
        self._folder = lake.folder(state, table)
        self._rewrites, self._deletions = self._snapshots()

    def plan(self) -> ChangePlan:
        connection, table_id = self._connection, self._table.table_id
        f, d = t.data_file, t.delete_file
        data_files = {
            file.data_file_id: file for file in read_data_files(connection, table_id, f.c.begin_snapshot <= self._end)
        }
        delete_files: dict[int, list[DeleteFile]] = defaultdict(list)
        for delete in read_delete_files(connection, table_id, d.c.begin_snapshot <= self._end):
            delete_files[delete.data_file_id].append(delete)
        positions = inlined.read_deletes(connection, self._lake.database, table_id, self._end)
        inserted = [
            self._file(file, snapshot_id=file.begin_snapshot)
            for file in data_files.values()
            if self._in_range(file.begin_snapshot)
        ]
        removed, deleted = [], []
        for file_id, file in data_files.items():
            ended = file.end_snapshot
            if ended is not None and self._in_range(ended):
                removed.append(self._before_end(file, delete_files[file_id], positions.get(file_id, []), ended))
            deleted += self._deleted_by_files(file, delete_files[file_id], positions.get(file_id, []))
            deleted += self._deleted_by_rows(file, positions.get(file_id, []))
        begun = f"begin_snapshot BETWEEN {self._start:d} AND {self._end:d}"
        gone = f"end_snapshot BETWEEN {self._start:d} AND {self._end:d}"
        return ChangePlan(
            inserted=self._scan(inserted, self._rows(begun, "begin_snapshot")),
            removed=self._scan(removed, self._rows(gone, "end_snapshot")),
            deleted=tuple(deleted),
        )

    def _snapshots(self) -> tuple[set[int], list[int]]:
        """Snapshots that only rewrote files of the table, and those that deleted from them."""
        c = t.snapshot_changes
        query = sa.select(c.c.snapshot_id, c.c.changes_made).where(c.c.snapshot_id <= self._end)
        rewrites, deletions = set(), []
        mark = f":{self._table.table_id}"
        for snapshot_id, text in self._connection.execute(query.order_by(c.c.snapshot_id)):
            if mark not in (text or ""):
                continue
            kinds = {change.kind for change in parse_changes(text) if change.value == self._table.table_id}
            if kinds & {
                "merge_adjacent",
                "rewrite_delete",
                "compacted_table",
                "inline_flush",
                "flushed_inlined",
                "dropped_table",
            }:
                rewrites.add(snapshot_id)
            if "deleted_from_table" in kinds:
                deletions.append(snapshot_id)
        return rewrites, deletions

    def _in_range(self, snapshot_id: int) -> bool:
        return self._start <= snapshot_id <= self._end and snapshot_id not in self._rewrites

    def _file(self, file: DataFile, delete: DeleteFile | None = None, **fields: object) -> ScanFile:
        return ScanFile(
            data_file=file,
            path=paths.resolve(self._folder, file.path, file.path_is_relative),
            delete_file=delete,
            delete_path=paths.resolve(self._folder, delete.path, delete.path_is_relative) if delete else None,
            **fields,  # type: ignore[arg-type]
        )

    def _before_end(
        self, file: DataFile, deletes: Sequence[DeleteFile], positions: Sequence[tuple[int, int]], ended: int
    ) -> ScanFile:
        """The file with the rows it had just before it was dropped."""
        last = next((d for d in deletes if d.end_snapshot in (None, ended)), None)
        return self._file(
            file,
            last,
            inlined_deletes=tuple(position for position, snapshot_id in positions if snapshot_id < ended),
            deleted_up_to=ended - 1 if last is not None and last.partial_max is not None else None,
            snapshot_id=ended,
        )

    def _deleted_by_files(
        self, file: DataFile, deletes: Sequence[DeleteFile], positions: Sequence[tuple[int, int]]
    ) -> list[DeletedRows]:
        found = []
        for delete in deletes:
            # a delete file may repeat what catalog rows had deleted before it
            earlier = tuple(position for position, snapshot_id in positions if snapshot_id < delete.begin_snapshot)
            if delete.partial_max is None:
                if self._in_range(delete.begin_snapshot):
                    previous = next((d for d in deletes if d.end_snapshot == delete.begin_snapshot), None)
                    up_to = delete.begin_snapshot - 1 if previous is not None and previous.partial_max else None
                    before = self._file(file, previous, inlined_deletes=earlier, deleted_up_to=up_to)
                    found.append(DeletedRows(self._file(file, delete), before, delete.begin_snapshot))
                continue
            for snapshot_id in self._deletions:
                if delete.begin_snapshot <= snapshot_id <= delete.partial_max and self._in_range(snapshot_id):
                    after = self._file(file, delete, deleted_up_to=snapshot_id)
                    found.append(DeletedRows(after, replace(after, deleted_up_to=snapshot_id - 1), snapshot_id))
        return found

    def _deleted_by_rows(self, file: DataFile, positions: Sequence[tuple[int, int]]) -> list[DeletedRows]:
        by_snapshot: dict[int, list[int]] = defaultdict(list)
        for position, snapshot_id in positions:
            if self._in_range(snapshot_id):
                by_snapshot[snapshot_id].append(position)
        whole = self._file(file)
        return [
            DeletedRows(replace(whole, inlined_deletes=tuple(listed)), whole, snapshot_id)
            for snapshot_id, listed in by_snapshot.items()
        ]

    def _rows(self, condition: str, snapshot: inlined.SystemColumn) -> pa.Table | None:
        return inlined.read_rows(
            self._connection, self._lake.database, self._table.table_id, self._table.columns, condition, snapshot
        )

    def _scan(self, files: Sequence[ScanFile], rows: pa.Table | None) -> ScanPlan:
        size = sum(file.data_file.file_size_bytes for file in files)
        found = InlinedRows(rows) if rows is not None and rows.num_rows else None
        names = read_column_names(self._connection, self._table.table_id)
        reused = reused_names(self._table.columns, names)
        return ScanPlan(self._table, tuple(files), found, len(files), size, self._folder, reused)
