"""Data that an open transaction has written and not committed, per table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import DataFile, WrittenDeletes, WrittenFile
from ducklake_lab.model.types import DataType

ROW_ID = "_ducklake_row_id"
SNAPSHOT_ID = "_ducklake_snapshot_id"
FILE_ID = "_ducklake_file_id"
POSITION = "_ducklake_position"
#: The columns a scan offers beside the table's own, in this order, with their types.
VIRTUAL_COLUMNS = dict.fromkeys((FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID), DataType("int64"))
FILE_NAME = "_ducklake_file_name"
FILE_INDEX = "_ducklake_file_index"
#: The path of a row's file, or the name of its inlined data table, and its number among those that a scan reads.
LOCATION_COLUMNS = {FILE_NAME: DataType("varchar"), FILE_INDEX: DataType("uint64")}
#: Such a name for rows that the open transaction inlines.
LOCAL_ROWS = "__ducklake_inlined_transaction_local_data"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A written data file.

    Attributes:
        row_id_start: provisional until commit; None for a file that has row ids.
        is_final: `row_id_start` is not provisional: its rows had their ids before.
    """

    file: WrittenFile
    partition_id: int | None
    row_id_start: int | None
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows to inline.

    Attributes:
        columns: the table's columns when the rows were staged.
        rows: Arrow table: `_ducklake_row_id` int64, then those columns under their names of then.
        updated: the rows are new versions of committed ones and keep their row ids.
    """

    columns: tuple[Column, ...]
    rows: pa.Table
    updated: bool


@dataclass(frozen=True, slots=True)
class FlushedFile:
    """A data file of rows that were inlined by earlier snapshots; it has their row ids and snapshot ids.

    Attributes:
        begin_snapshot, partial_max: the first and the last of these snapshots.
        row_id_start: the smallest row id in it.
        deletes: those of its rows that were deleted since, with the snapshots that did; None for none.
    """

    file: WrittenFile
    partition_id: int | None
    begin_snapshot: int
    partial_max: int
    row_id_start: int
    deletes: WrittenDeletes | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """Data files that one file replaces.

    Attributes:
        kind: `merge_adjacent`: the sources leave the catalog, as the new file holds the snapshot ids of its rows;
            `rewrite_delete`: they end, as it holds only the rows that are left.
        file: None where no row is left.
        begin_snapshot: None for the snapshot that commits it.
        partial_max: the last snapshot of its rows, if it has their snapshot ids.
        row_id_start: None where it has row ids.
    """

    kind: Literal["merge_adjacent", "rewrite_delete"]
    sources: tuple[DataFile, ...]
    file: WrittenFile | None
    partition_id: int | None = None
    begin_snapshot: int | None = None
    partial_max: int | None = None
    row_id_start: int | None = None


@dataclass(slots=True)
class StagedData:
    """Staged changes of a transaction to the rows of one table.

    Attributes:
        files: by local file id.
        rows: to inline.
        deletes: rows deleted from files, by file id (committed or local).
        dropped_files: committed files none of whose rows are left.
        deleted_row_ids: committed inlined rows that are deleted.
        rows_used: row ids handed out so far, provisionally counted from the table's next row id.
        has_new_rows: rows with such ids were staged, be they still there or not.
        flushed: by local file id.
        flushed_tables: inlined data tables whose rows up to a snapshot are in `flushed`.
        flushed_deletes: the snapshot up to which inlined deletions are in `deletes` now; None where they stay.
        compactions: by local file id.
    """

    files: dict[int, StagedFile] = field(default_factory=dict)
    rows: list[StagedRows] = field(default_factory=list)
    deletes: dict[int, WrittenDeletes] = field(default_factory=dict)
    dropped_files: set[int] = field(default_factory=set)
    deleted_row_ids: set[int] = field(default_factory=set)
    rows_used: int = 0
    has_new_rows: bool = False
    flushed: dict[int, FlushedFile] = field(default_factory=dict)
    flushed_tables: dict[str, int] = field(default_factory=dict)
    flushed_deletes: int | None = None
    compactions: dict[int, Compaction] = field(default_factory=dict)

    @property
    def keeps_row_ids(self) -> bool:
        """Returns whether anything staged carries row ids that its rows had before."""
        return any(file.file.has_row_ids for file in self.files.values()) or any(rows.updated for rows in self.rows)

    @property
    def changes_rows(self) -> bool:
        """Returns whether rows are added or deleted, rather than only kept elsewhere."""
        return bool(self.files or self.rows or self.deletes or self.dropped_files or self.deleted_row_ids)

    def marks(self) -> object:
        """Return marks of the changes, which differ after any other change."""
        rows = [id(batch.rows) for batch in self.rows]
        return [*self.files], rows, dict(self.deletes), set(self.dropped_files), set(self.deleted_row_ids)

    def written_paths(self, folder: str) -> list[str]:
        """Paths of all files that were written, data and delete files.

        Args:
            folder: of the table, ending in `/`.
        """
        added = {staged.file.path for staged in self.files.values() if not staged.file.is_own}
        return [path for path in self.named_files(folder) if path not in added]

    def named_files(self, folder: str) -> dict[str, int]:
        """The bytes of each file that the catalog gets to know, data and delete files, by path.

        Args:
            folder: of the table, ending in `/`.
        """
        files = [staged.file for staged in self.files.values()]
        files += [flushed.file for flushed in self.flushed.values()]
        files += [compaction.file for compaction in self.compactions.values() if compaction.file is not None]
        sizes = {file.place(folder): file.file_size_bytes for file in files}
        for written in (*self.deletes.values(), *(flushed.deletes for flushed in self.flushed.values())):
            if written is not None and written.path is not None:
                sizes[folder + written.path] = written.file_size_bytes
        return sizes

    def __bool__(self) -> bool:
        return self.changes_rows or bool(self.flushed or self.compactions)
