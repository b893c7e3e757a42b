"""Open transaction: a snapshot to build on, and uncommitted changes on top of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.cache import CachedCatalog
from ducklake_lab.catalog.files import read_table_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import DataFileError, TransactionError
from ducklake_lab.file_paths import join
from ducklake_lab.model.commit_notes import Merged, Origin, Restored, StatementNote
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.files import WrittenDeletes, WrittenFile
from ducklake_lab.model.staged import ROW_ID, Compaction, FlushedFile, StagedData, StagedFile, StagedRows
from ducklake_lab.model.state import CatalogState
from ducklake_lab.storage import Storage, fault_of
from ducklake_lab.transaction.batches import StreamBatch
from ducklake_lab.transaction.entry_changes import EntryChanges
from ducklake_lab.transaction.reads import FindsChanges, Reads

#: Writes a delete file anew, given its folder, under another id of the snapshot that commits it.
Restamp = Callable[[WrittenDeletes, str, int], WrittenDeletes]
#: Checks the expectations of changed tables; may stage that rows are left out. Raises where one refuses the commit.
Checks = Callable[["Transaction"], None]


class Transaction(EntryChanges):
    """Collects changes to one lake. Nothing is in the catalog until it is committed.

    Attributes:
        author, message, extra_info: for the snapshot it becomes.
        statements: notes of those that wrote in it, by their numbers.
        batch: the micro-batch of a stream that it commits, if any.
        restored: ids of the tables that it restores, each with the snapshot that it is like now.
        reverted: ids of the snapshots whose changes it takes back.
        merged: the branch that it merges.
        expired: ids of the snapshots that it forgets, which makes no snapshot.
        drops_superseded: it flushes, and takes the empty inlined tables of earlier columns away.
        snapshot: the snapshot it became; None until it is committed, or where it changed nothing.
        is_one_statement: nobody sees new row ids before it is committed; they are counted from 0 until then.
        needed_rows: ids of committed tables whose rows its commit needs as they are here: expectations read them.
        outcomes: expectations that its rows violated without refusing the commit; see `expectations.outcomes`.
        left_out: numbers of rows that expectations left out of the commit, by table id.
        reads: what it has read; None where that is not noted.
        finds_changes: looks for changed rows that it has read.
    """

    def __init__(
        self,
        lake: Lake,
        base: Snapshot | None = None,
        restamp: Restamp | None = None,
        known: CachedCatalog | None = None,
        *,
        is_for_looking: bool = False,
        checks: Checks | None = None,
    ) -> None:
        super().__init__(lake, base, known, is_for_looking=is_for_looking)
        self.author: str | None = None
        self.message: str | None = None
        self.extra_info: str | None = None
        self.statements: dict[int, StatementNote] = {}
        self.batch: StreamBatch | None = None
        self.restored: dict[int, Restored] = {}
        self.reverted: list[int] = []
        self.merged: Merged | None = None
        self.expired: set[int] = set()
        self.drops_superseded = False
        self.snapshot: Snapshot | None = None
        self.is_one_statement = False
        self.is_rolled_back = False
        self.needed_rows: set[int] = set()
        self.outcomes: list[Any] = []
        self.left_out: dict[int, int] = {}
        self.reads: Reads | None = None
        self.finds_changes: FindsChanges | None = None
        self._checks = checks
        self._checked: tuple[CatalogState, object, object] | None = None
        self._restamp = restamp
        self._row_id_starts: dict[int, int] = {}
        self._discarded: list[str] = []

    @property
    def next_snapshot(self) -> int:
        """The id of the snapshot it becomes, if no other commit comes first."""
        return self.base.snapshot.snapshot_id + 1

    @property
    def origin(self) -> Origin:
        """Return the other states that its content comes from."""
        return Origin(self.restored, self.reverted, self.merged)

    @property
    def has_changes(self) -> bool:
        return self.state is not self.base or bool(self.new_tags) or any(self.data.values())

    @property
    def is_empty_by_expectations(self) -> bool:
        """Returns whether it made no snapshot, and expectations left rows out."""
        return self.snapshot is None and bool(self.left_out)

    def staged(self, table: Table) -> StagedData:
        return self.data.setdefault(table.table_id, StagedData())

    def peek(self, table: Table) -> StagedData | None:
        """Return the staged changes of the table, or None; makes nothing."""
        return self.data.get(table.table_id)

    def append_files(self, table: Table, files: Sequence[WrittenFile]) -> list[int]:
        """Stages written data files, and returns their local ids; row ids that a file carries are committed ones."""
        staged = self.staged(table)
        ids = [self.local_id() for _ in files]
        for local_id, file in zip(ids, files, strict=True):
            partition = table.partition.partition_id if table.partition is not None and table.partition.fields else None
            start = self._take_row_ids(table, file.record_count)
            staged.files[local_id] = StagedFile(file, partition, start)
        staged.has_new_rows |= not all(file.has_row_ids for file in files)
        return ids

    def append_rows(self, table: Table, rows: pa.Table, row_ids: pa.Array | None = None) -> None:
        """Stages rows (the table's columns, in order) to be inlined; with row ids for new versions of committed rows."""
        if rows.num_rows == 0:
            return
        if row_ids is None:
            start = self._take_row_ids(table, rows.num_rows)
            ids = pa.array(range(start, start + rows.num_rows), pa.int64())
            self.staged(table).has_new_rows = True
        else:
            ids = row_ids
        staged = StagedRows(table.columns, rows.add_column(0, ROW_ID, ids), updated=row_ids is not None)
        self.staged(table).rows.append(staged)

    def delete_from_files(self, table: Table, deletes: Sequence[WrittenDeletes], records: dict[int, int]) -> None:
        """Stages deletions from data files.

        Args:
            records: rows of each data file, by id: a file all of whose rows are deleted at once is dropped.
        """
        staged = self.staged(table)
        folder = self.lake.folder(self.state, table)
        for new in deletes:
            old = staged.deletes.get(new.data_file_id)
            if new.path is None:
                merged = sorted({*(old.positions if old is not None else ()), *new.positions})
                staged.deletes[new.data_file_id] = replace(old or new, positions=tuple(merged))
                continue
            if old is not None and old.path is not None:
                self._discarded.append(folder + old.path)
            if new.delete_count == records[new.data_file_id]:
                self._discarded.append(folder + new.path)
                self._drop_file(staged, new.data_file_id, folder)
            elif old is None:
                staged.deletes[new.data_file_id] = new
            else:
                both = replace(new, positions=old.positions, replaces=(*old.replaces, *new.replaces))
                staged.deletes[new.data_file_id] = both

    def _drop_file(self, staged: StagedData, file_id: int, folder: str) -> None:
        staged.deletes.pop(file_id, None)
        local = staged.files.pop(file_id, None)
        if local is not None:
            self._discarded += local.file.own_paths(folder)
        else:
            staged.dropped_files.add(file_id)

    def delete_inlined(self, table: Table, row_ids: Sequence[int]) -> None:
        """Stages the deletion of inlined rows, committed or not."""
        if not row_ids:
            return
        staged = self.staged(table)
        gone = pa.array(sorted(set(row_ids)), pa.int64())
        kept: list[StagedRows] = []
        staged_ids: set[int] = set()
        for batch in staged.rows:
            hit = pc.is_in(batch.rows.column(ROW_ID), gone)
            staged_ids.update(batch.rows.filter(hit).column(ROW_ID).to_pylist())
            rest = batch.rows.filter(pc.invert(hit))
            if rest.num_rows:
                kept.append(replace(batch, rows=rest))
        staged.rows = kept
        staged.deleted_row_ids.update(set(row_ids) - staged_ids)

    def truncate(self, table: Table, committed_files: Sequence[int], row_ids: Sequence[int]) -> None:
        """Stages the deletion of all rows: whole files, and inlined rows by id."""
        staged = self.staged(table)
        folder = self.lake.folder(self.state, table)
        for file_id in committed_files:
            self._drop_file(staged, file_id, folder)
        self.delete_inlined(table, row_ids)

    def flush(
        self,
        table: Table,
        files: Sequence[FlushedFile],
        tables: Mapping[str, int],
        deletes: Sequence[WrittenDeletes],
        deletes_up_to: int | None,
    ) -> None:
        """Stages that inlined rows and deletions are in files now.

        Args:
            tables: inlined data tables, and the snapshot up to which their rows are in `files`.
            deletes: delete files that hold the inlined deletions up to a snapshot.
        """
        staged = self.staged(table)
        for file in files:
            staged.flushed[self.local_id()] = file
        staged.flushed_tables.update(tables)
        if deletes_up_to is not None:
            staged.deletes.update({written.data_file_id: written for written in deletes})
            staged.flushed_deletes = deletes_up_to

    def compact(self, table: Table, compactions: Sequence[Compaction]) -> None:
        """Stage files that replace others."""
        staged = self.staged(table)
        for compaction in compactions:
            staged.compactions[self.local_id()] = compaction

    def restore_files(
        self,
        table: Table,
        gone: Sequence[int],
        files: Sequence[tuple[WrittenFile, int | None, int | None, WrittenDeletes | None]],
    ) -> None:
        """Stages that some data files end, and that others come with the row ids their rows have had before.

        Args:
            files: each with its partition id, first row id, and delete file.
        """
        staged = self.staged(table)
        staged.dropped_files.update(gone)
        for file, partition_id, row_id_start, deletes in files:
            local_id = self.local_id()
            staged.files[local_id] = StagedFile(file, partition_id, row_id_start, is_final=True)
            if deletes is not None:
                staged.deletes[local_id] = replace(deletes, data_file_id=local_id)

    def expire(self, snapshot_ids: Iterable[int]) -> None:
        """Stages that snapshots are forgotten.

        Raises:
            TransactionError: the lake is read-only.
        """
        self.expired.update(snapshot_ids)
        if self.expired:
            self.lake.check_writable()

    def drop_superseded(self) -> None:
        """Stages that the empty inlined tables of earlier columns go, those of all tables.

        Raises:
            TransactionError: the lake is read-only.
        """
        self.lake.check_writable()
        self.drops_superseded = True

    def restamp(self, table: Table, deletes: WrittenDeletes, snapshot_id: int) -> WrittenDeletes:
        """The delete file with another id of the snapshot that commits it.

        Raises:
            TransactionError: nobody can write it anew.
            DataFileError: it is not there with its size.
        """
        if self._restamp is None:
            raise TransactionError("Another transaction committed first; run this one again.")
        folder = self.lake.folder(self.state, table)
        written = self._restamp(deletes, folder, snapshot_id)
        _check({join(folder, written.path): written.file_size_bytes} if written.path is not None else {})
        return written

    def _take_row_ids(self, table: Table, count: int) -> int:
        staged = self.staged(table)
        start = self.row_id_base(table) + staged.rows_used
        staged.rows_used += count
        return start

    def first_own_row_id(self, table: Table) -> int | None:
        """The first of the provisional row ids that its statements see; None where it inserted no rows."""
        staged = self.peek(table)
        sees_any = staged is not None and staged.has_new_rows and not self.is_one_statement
        return self.row_id_base(table) if sees_any else None

    def row_id_base(self, table: Table) -> int:
        """The row id that those of this transaction count from: the table's next one when it first wrote to it."""
        next_id = self._row_id_starts.get(table.table_id)
        if next_id is None:
            next_id = 0
            if self.is_committed(table) and not self.is_one_statement:
                with self.lake.connect() as connection:
                    stats = read_table_stats(connection, [table.table_id]).get(table.table_id)
                    next_id = stats.next_row_id if stats is not None else 0
            self._row_id_starts[table.table_id] = next_id
        return next_id

    # End

    def check_expectations(self) -> None:
        """Check the expectations of the tables it changes, unless these changes were checked.

        Rows may be left out, or set aside in another table: they are staged so.

        Raises:
            ExpectationError: an expectation refuses the commit.
            TransactionError: this client cannot check them.
        """
        if not self.base.tables.expecting() and not self.state.tables.expecting():
            return
        if self._is_checked():
            return
        if self._checks is None:
            raise TransactionError("A table of the lake has expectations, which this client cannot check.")
        self._checks(self)
        # with the objects themselves, as other ones may get their ids
        held = [batch.rows for staged in self.data.values() for batch in staged.rows]
        self._checked = self.state, self._marks(), held

    def _is_checked(self) -> bool:
        """Return whether nothing was staged since the last check."""
        return self._checked is not None and self._checked[0] is self.state and self._checked[1] == self._marks()

    def _marks(self) -> object:
        return {table_id: staged.marks() for table_id, staged in self.data.items()}

    def check_files(self) -> None:
        """Check that each file that the commit names exists with its size.

        Raises:
            DataFileError: one is not.
        """
        _check({path: size for staged, folder in self._staged() for path, size in staged.named_files(folder).items()})

    def written_paths(self) -> list[str]:
        """Absolute paths of every file this transaction wrote and still holds."""
        files = list(self._discarded)
        for staged, folder in self._staged():
            files += staged.written_paths(folder)
        return files

    def _staged(self) -> Iterator[tuple[StagedData, str]]:
        """Yield the staged changes of each table, with the table's folder."""
        for table_id, staged in self.data.items():
            table = self.state.tables.get(table_id) or self.base.tables.get(table_id)
            if table is not None:
                state = self.state if table.schema_id in self.state.schemas else self.base
                yield staged, self.lake.folder(state, table)

    def savepoint(self) -> Savepoint:
        """Return what `return_to` takes."""
        return Savepoint({name: _copied(value) for name, value in vars(self).items()}, frozenset(self.written_paths()))

    def return_to(self, savepoint: Savepoint) -> None:
        """Forgets what was staged since, and removes the files that were written."""
        written = set(self.written_paths()) - savepoint.paths
        # an id is given once, as some caches know what it stands for
        vars(self).update(savepoint.held, _next_local_id=self._next_local_id)
        Storage().discard(sorted(written))

    def rollback(self) -> None:
        """Forgets everything and removes the files that were written."""
        self.is_rolled_back = True
        Storage().discard(self.written_paths())
        self.data.clear()
        self.new_tags.clear()
        self.outcomes.clear()
        self.expired.clear()
        self.drops_superseded = False
        self._discarded.clear()
        self.state = self.base

    def committed(self) -> None:
        """Remove written files that the commit does not use."""
        Storage().discard(self._discarded)
        self._discarded.clear()


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A transaction as it was.

    Attributes:
        held: copies of its attributes.
        paths: the files that it had written.
    """

    held: Mapping[str, Any]
    paths: frozenset[str]


def _copied(value: Any) -> Any:
    """Return a copy of what a transaction changes in place; the rest is never changed."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [*map(_copied, value)]
    if isinstance(value, set):
        return set(value)
    if isinstance(value, StagedData):
        return replace(value, **{one.name: _copied(getattr(value, one.name)) for one in fields(value)})
    return value


def _check(files: Mapping[str, int]) -> None:
    fault = fault_of(files, Storage().sizes(files))
    if fault is not None:
        raise DataFileError(f"The commit would name {fault}; nothing was committed. Run the statement again.")
