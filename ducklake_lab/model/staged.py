"""Data that an open transaction has written and not committed, per table."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import WrittenDeletes, WrittenFile

ROW_ID = "_ducklake_row_id"
SNAPSHOT_ID = "_ducklake_snapshot_id"
FILE_ID = "_ducklake_file_id"
POSITION = "_ducklake_position"
#: The columns a scan offers beside the table's own, in this order.
VIRTUAL_COLUMNS = (FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A written data file; `row_id_start` is provisional until commit."""

    file: WrittenFile
    partition_id: int | None
    row_id_start: int


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows to inline.

    Attributes:
        columns: the table's columns when the rows were staged.
        rows: Arrow table: `_ducklake_row_id` int64, then those columns under their names of then.
        updated: the rows are new versions of existing ones and keep their row ids.
    """

    columns: tuple[Column, ...]
    rows: pa.Table
    updated: bool


@dataclass(slots=True)
class StagedData:
    """What a transaction does to the rows of one table.

    Attributes:
        files: by local file id.
        rows: to inline.
        deletes: rows deleted from files, by file id (committed or local).
        dropped_files: committed files none of whose rows are left.
        deleted_row_ids: committed inlined rows that are deleted.
        rows_used: row ids handed out so far, provisionally counted from the table's next row id.
    """

    files: dict[int, StagedFile] = field(default_factory=dict)
    rows: list[StagedRows] = field(default_factory=list)
    deletes: dict[int, WrittenDeletes] = field(default_factory=dict)
    dropped_files: set[int] = field(default_factory=set)
    deleted_row_ids: set[int] = field(default_factory=set)
    rows_used: int = 0

    @property
    def keeps_row_ids(self) -> bool:
        """Whether anything staged carries row ids that cannot be moved at commit."""
        return any(file.file.has_row_ids for file in self.files.values()) or any(rows.updated for rows in self.rows)

    def __bool__(self) -> bool:
        return bool(self.files or self.rows or self.deletes or self.dropped_files or self.deleted_row_ids)
