"""Plans of scans and changes: the data that a reader needs to read a table at a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import DataFile, DeleteFile
from ducklake_lab.model.staged import FILE_NAME, LOCAL_ROWS


@dataclass(frozen=True, slots=True)
class ScanFile:
    """Data file to read, with its deletions.

    Attributes:
        path: absolute path or URL of the data file.
        delete_file: the delete file that applies at the snapshot, or None.
        delete_path: its absolute path or URL, or None.
        inlined_deletes: 0-based positions deleted by catalog rows, ascending.
        deleted_up_to: where the delete file has the snapshot ids of its deletions, those after this snapshot do not
            apply; None where all do.
        rows_from, rows_up_to: where the data file has the snapshot ids of its rows, those before and after these
            snapshots are not read; None for no bound.
        rows_except: rows of these snapshots are not read.
        snapshot_id: what `_ducklake_snapshot_id` shows for its rows; where it is the file's begin, and the file has
            the snapshot ids of its rows, it shows those. None for rows not committed yet.
    """

    data_file: DataFile
    path: str
    delete_file: DeleteFile | None = None
    delete_path: str | None = None
    inlined_deletes: tuple[int, ...] = ()
    deleted_up_to: int | None = None
    rows_from: int | None = None
    rows_up_to: int | None = None
    rows_except: tuple[int, ...] = ()
    snapshot_id: int | None = None

    @property
    def shows_own_snapshots(self) -> bool:
        """Return whether `_ducklake_snapshot_id` shows the snapshot ids that the file itself has, if it has any.

        Catalogs of merged files that the reference migrated do not say that these have them.
        """
        return self.snapshot_id is not None and self.snapshot_id == self.data_file.begin_snapshot

    @property
    def is_bounded(self) -> bool:
        """Return whether the rows of some snapshots in the file are not read."""
        return self.rows_from is not None or self.rows_up_to is not None or bool(self.rows_except)

    @property
    def has_deletes(self) -> bool:
        return self.delete_file is not None or bool(self.inlined_deletes)


@dataclass(frozen=True, slots=True)
class InlinedRows:
    """Rows kept in the catalog.

    Attributes:
        rows: Arrow table: `_ducklake_row_id` int64, `_ducklake_snapshot_id` int64 (the snapshot that
            inserted the row; NULL where this transaction did), then the table's columns in order,
            under their current names and Arrow types, then `_ducklake_file_name`.
    """

    rows: pa.Table

    def places(self, first: int) -> pa.Array:
        """Return each row's place in a scan (uint64): the tables of the catalog follow `first` files."""
        names = self.rows.column(FILE_NAME).combine_chunks()
        # by the schema version in their names; rows inlined by the transaction come last
        tables = sorted(
            pc.unique(names).to_pylist(),
            key=lambda name: (name == LOCAL_ROWS, int(name.rpartition("_")[2]) if name != LOCAL_ROWS else 0),
        )
        return pc.add(pc.index_in(names, pa.array(tables, pa.string())), first).cast(pa.uint64())


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Plan of a scan: the files and inlined rows to read.

    Attributes:
        table: the table as of the snapshot.
        files: those left after pruning.
        inlined: rows from the catalog, or None where there are none.
        files_total: files before pruning.
        bytes_total: their size.
        data_path: absolute path or URL of the table's folder, ending in `/`.
        reused_names: ids of the columns, at any depth, under whose name files may hold another column's values
            (see scan/column_history.py); None where that is not known. Readers must not filter by name on those.
        time_zone: in which times without a zone are read where the table's column has one.
        retyped: ids of the columns, at any depth, that ever had another type; None where that is not known.
    """

    table: Table
    files: tuple[ScanFile, ...]
    inlined: InlinedRows | None
    files_total: int
    bytes_total: int
    data_path: str
    reused_names: frozenset[int] | None = None
    time_zone: str = "UTC"
    retyped: frozenset[int] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.columns

    @property
    def bytes_read(self) -> int:
        return sum(file.data_file.file_size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of one data file that were deleted between two states: those in `after` and not in `before`.

    Attributes:
        after: the file with its deletes as of the later state.
        before: the file with its deletes as of the earlier state.
        snapshot_id: the snapshot that deleted them, shown as `_ducklake_snapshot_id`.
    """

    after: ScanFile
    before: ScanFile
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The rows two states of a table do not share; reading it costs the changed files only.

    Attributes:
        inserted: files and inlined rows that are only in the later state.
        removed: files and inlined rows that are only in the earlier state.
        deleted: rows newly deleted from files that both states have.
    """

    inserted: ScanPlan
    removed: ScanPlan
    deleted: tuple[DeletedRows, ...]

    @property
    def files(self) -> tuple[ScanFile, ...]:
        """The data files to read."""
        return (*self.inserted.files, *self.removed.files, *(rows.after for rows in self.deleted))
