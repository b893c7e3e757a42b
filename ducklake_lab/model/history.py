"""Entries of a history, one for each snapshot, and of a files listing, one for each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ducklake_lab.model.commit_notes import CommitNote, read
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.files import ColumnStats, DataFile

#: Main kind of a snapshot's changes, which gives its colour.
ChangeKind = Literal["insert", "update", "delete", "restore", "schema", "maintenance", "none"]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One snapshot of a lake.

    Attributes:
        kind: insert (rows only added), delete (only removed), update (both), restore, schema, maintenance, none.
        changes: readable, in order, e.g. `created table main.flights`, `inserted into main.flights`.
        tables: `schema.table` of every table it touched, quoted where SQL needs it.
        rows_added: rows inserted by it, inlined ones included; updated rows count here and in `rows_removed`.
        rows_removed: rows deleted by it, those of dropped tables included. Rows that were only rewritten count nowhere.
            None where it deleted some and the snapshot before it expired: the catalog has lost what was there before.
        bytes_added: size of the data and delete files it added.
        bytes_removed: size of those that are no longer part of the lake since; None likewise.
        tags: its names, in order.
        at_most: rows moved that may be the same as before: `rows_added` and `rows_removed` are upper bounds.
    """

    info: SnapshotInfo
    kind: ChangeKind
    changes: tuple[str, ...]
    tables: tuple[str, ...]
    rows_added: int
    rows_removed: int | None
    bytes_added: int
    bytes_removed: int | None = 0
    tags: tuple[str, ...] = ()
    at_most: bool = False

    @property
    def message(self) -> str:
        """Its tags, in brackets, and its commit message."""
        return " ".join((*(f"[{tag}]" for tag in self.tags), self.info.commit_message or "")).rstrip()

    @property
    def note(self) -> CommitNote | None:
        """Note about the statements of the snapshot; None where it has none that can be read."""
        return read(self.info.commit_extra_info)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One data file of a table at a snapshot, with its statistics.

    Attributes:
        path: absolute.
        rows: in it at the snapshot, those deleted since they were written included.
        deleted: how many of these are deleted, by delete file or inlined.
        delete_path: absolute path of its delete file, or None.
        partition: (key, value) pairs, e.g. ("month(time_hour)", "3").
        stats: by leaf column name, dotted for nested ones.
    """

    data_file: DataFile
    path: str
    rows: int
    deleted: int
    delete_path: str | None
    delete_bytes: int
    partition: tuple[tuple[str, str | None], ...]
    stats: Mapping[str, ColumnStats]
