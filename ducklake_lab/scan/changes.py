"""Plans the rows that two states do not share, and the rows each snapshot of a range changed.

Both read changed files only: files that both sides have, with equal deletions, are never read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import among, read_data_files, read_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.model.changes import Change, parse_changes, rewritten_tables
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DataFile, DeleteFile
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.column_history import check_encrypted, history_of
from ducklake_lab.scan.endings import Endings, InlinedDeletes, first_rows
from ducklake_lab.scan.plan import ChangePlan, DeletedRows, InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.planner import matching_files, rows_up_to


def compare(before: ScanPlan, after: ScanPlan) -> ChangePlan:
    """Compare two states of one table; both plans must read it under the same columns."""
    old = {file.data_file.data_file_id: file for file in before.files}
    new = {file.data_file.data_file_id: file for file in after.files}
    both = sorted(old.keys() & new.keys())
    deleted = [
        # rows that only the later state has are not deleted, they were never there
        DeletedRows(after=replace(new[i], rows_up_to=old[i].rows_up_to), before=old[i], snapshot_id=-1)
        for i in both
        if _deletes(old[i]) != _deletes(new[i])
    ]
    inserted = [file for key, file in new.items() if key not in old]
    for file_id in both:
        last = old[file_id].rows_up_to
        if last != new[file_id].rows_up_to and last is not None:
            inserted.append(replace(new[file_id], rows_from=last + 1))
    inserted_rows, removed_rows = _compare_inlined(before.inlined, after.inlined)
    return ChangePlan(
        inserted=_plan(after, inserted, inserted_rows),
        removed=_plan(before, [file for key, file in old.items() if key not in new], removed_rows),
        deleted=tuple(deleted),
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
    lake: Lake,
    connection: sa.Connection,
    state: CatalogState,
    table: Table,
    start: int,
    end: int,
    predicate: Predicate | None = None,
) -> ChangePlan:
    """Plans the change feed of a table for snapshots `start` to `end`, both inclusive.

    Rows come under the table's columns as of `state`; `_ducklake_snapshot_id` is the snapshot that made the change.

    Args:
        predicate: data files that hold no row for which it is true may be left out, with their deletions.
    """
    return _Feed(lake, connection, state, table, start, end, predicate).plan()


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The files and inlined rows of a change feed.

    Attributes:
        inserted: files with new rows.
        removed: files that were dropped.
        deleted: rows that were deleted from files.
        inserted_rows, removed_rows: inlined ones; None for none.
    """

    inserted: Sequence[ScanFile]
    removed: Sequence[ScanFile]
    deleted: Sequence[DeletedRows]
    inserted_rows: pa.Table | None
    removed_rows: pa.Table | None


def read_changed(
    lake: Lake, connection: sa.Connection, state: CatalogState, table: Table, start: int, end: int
) -> ChangedRows:
    """Reads which rows the change feed of a table has; see `plan_feed`."""
    return _Feed(lake, connection, state, table, start, end, None).read()


class _Feed:
    def __init__(
        self,
        lake: Lake,
        connection: sa.Connection,
        state: CatalogState,
        table: Table,
        start: int,
        end: int,
        predicate: Predicate | None,
    ) -> None:
        self._lake, self._connection, self._table, self._predicate = lake, connection, table, predicate
        self._start, self._end = start, end
        self._folder = lake.folder(state, table)
        self._rewrites = self._rewriting_snapshots()

    def plan(self) -> ChangePlan:
        changes = self.read()
        return ChangePlan(
            inserted=self._scan(changes.inserted, changes.inserted_rows),
            removed=self._scan(changes.removed, changes.removed_rows),
            deleted=tuple(changes.deleted),
        )

    def read(self) -> ChangedRows:
        connection, table_id = self._connection, self._table.table_id
        positions = inlined_deletions.read(connection, self._lake.database, table_id, self._end)
        files = self._data_files(positions)
        deletes = self._delete_files(files) if files else {}
        removed, deleted = Endings(self._folder, self._in_range).of(files, deletes, positions)
        _, first, end = versions.of(connection).inlined_columns
        within = f"BETWEEN {self._start:d} AND {self._end:d}"
        return ChangedRows(
            inserted=[self._inserted(file, deletes, positions) for file in files if self._has_insertions(file)],
            removed=removed,
            deleted=deleted,
            inserted_rows=self._rows(f"{first} {within} AND ({end} IS NULL OR {end} > {first})"),
            removed_rows=self._rows(f"{end} {within} AND {end} > {first}", ended=True),
        )

    def _data_files(self, positions: Mapping[int, InlinedDeletes]) -> list[DataFile]:
        """The data files that the snapshots may have changed, but those that the predicate rules out."""
        changed = sa.and_(t.data_file.c.begin_snapshot <= self._end, self._may_have_changed(positions))
        if self._predicate is None:
            return read_data_files(self._connection, self._table.table_id, changed)
        versions_of = self._lake.column_versions(self._connection, self._table.table_id)
        history = history_of(self._table.columns, versions_of)
        return matching_files(self._lake, self._connection, self._table, self._predicate, changed, history)

    def _may_have_changed(self, positions: Mapping[int, InlinedDeletes]) -> sa.ColumnElement[bool]:
        """A condition on data files: they begin or end in the range, or rows were deleted from them."""
        f, d = t.data_file.c, t.delete_file.c
        deleted = sa.select(d.data_file_id).where(
            d.table_id == self._table.table_id,
            sa.or_(d.begin_snapshot.between(self._start, self._end), d.partial_max >= self._start),
        )
        conditions = [
            f.begin_snapshot >= self._start,
            # has rows of several snapshots, and delete files that name others than their own
            f.partial_max.is_not(None),
            f.end_snapshot.between(self._start, self._end),
            f.data_file_id.in_(deleted),
        ]
        ids = [file_id for file_id, deletions in positions.items() if any(self._is_within(one) for _, one in deletions)]
        return sa.or_(*conditions, *([one_of(self._connection, f.data_file_id, ids)] if ids else ()))

    def _delete_files(self, files: Sequence[DataFile]) -> Mapping[int, Sequence[DeleteFile]]:
        d = t.delete_file.c
        of_files = among(d.data_file_id, [file.data_file_id for file in files])
        by_file: dict[int, list[DeleteFile]] = defaultdict(list)
        condition = sa.and_(of_files, d.begin_snapshot <= self._end)
        for delete in read_delete_files(self._connection, self._table.table_id, condition):
            by_file[delete.data_file_id].append(delete)
        return by_file

    def _rewriting_snapshots(self) -> set[int]:
        """Snapshots that rewrote files of the table, which changed no row, or dropped it."""
        c, table_id = t.snapshot_changes.c, self._table.table_id
        named = sa.and_(c.snapshot_id <= self._end, c.changes_made.contains(f":{table_id}"))
        rewrites = set()
        for snapshot_id, text in self._connection.execute(sa.select(c.snapshot_id, c.changes_made).where(named)):
            changes = parse_changes(text)
            if table_id in rewritten_tables(changes) or Change("dropped_table", table_id) in changes:
                rewrites.add(snapshot_id)
        return rewrites

    def _has_insertions(self, file: DataFile) -> bool:
        if file.partial_max is not None:
            return file.partial_max >= self._start
        # a file without a first row id was rewritten from others, even if the snapshot that says so has expired
        return file.row_id_start is not None and self._in_range(file.begin_snapshot)

    def _inserted(
        self, file: DataFile, deletes: Mapping[int, Sequence[DeleteFile]], positions: Mapping[int, InlinedDeletes]
    ) -> ScanFile:
        partial = file.partial_max is not None
        return first_rows(
            self._folder,
            file,
            deletes.get(file.data_file_id, ()),
            positions.get(file.data_file_id, ()),
            rows_from=self._start if partial and file.begin_snapshot < self._start else None,
            rows_up_to=rows_up_to(file, self._end),
            rows_except=tuple(s for s in sorted(self._rewrites) if partial and s >= file.begin_snapshot),
            snapshot_id=file.begin_snapshot,
        )

    def _is_within(self, snapshot_id: int) -> bool:
        return self._start <= snapshot_id <= self._end

    def _in_range(self, snapshot_id: int) -> bool:
        return self._is_within(snapshot_id) and snapshot_id not in self._rewrites

    def _rows(self, condition: str, *, ended: bool = False) -> pa.Table | None:
        table = self._table
        return inlined.read_rows(
            self._connection,
            self._lake.database,
            table.table_id,
            table.columns,
            condition,
            ended=ended,
            time_zone=self._lake.session.time_zone(),
        )

    def _scan(self, files: Sequence[ScanFile], rows: pa.Table | None) -> ScanPlan:
        self._lake.check_data_path(file.path for file in files)
        size = sum(file.data_file.file_size_bytes for file in files)
        inlined_rows = InlinedRows(rows) if rows is not None and rows.num_rows else None
        history = history_of(self._table.columns, self._lake.column_versions(self._connection, self._table.table_id))
        check_encrypted(self._table.columns, files, history.reused)
        table = replace(self._table, columns=history.columns)
        return ScanPlan(
            table=table,
            files=tuple(files),
            inlined=inlined_rows,
            files_total=len(files),
            bytes_total=size,
            data_path=self._folder,
            reused_names=history.reused,
            time_zone=self._lake.session.time_zone(),
            retyped=history.retyped,
        )
