"""Data files that maintenance may rewrite, with the facts that decide it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.columns import read_columns
from ducklake_lab.catalog.files import among, read_data_files, read_delete_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import DataFile, DeleteFile
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.planner import may_name_snapshots


@dataclass(frozen=True, slots=True)
class Candidate:
    """A data file that is visible at the newest snapshot.

    Attributes:
        schema_version: of the table when the file's first rows were written; files of one version have the same columns.
        delete_files: earlier and present ones, oldest first.
        inlined_deletes: positions deleted by catalog rows.
    """

    data_file: DataFile
    schema_version: int
    delete_files: tuple[DeleteFile, ...]
    inlined_deletes: tuple[int, ...]

    @property
    def live_delete_file(self) -> DeleteFile | None:
        return next((d for d in reversed(self.delete_files) if d.end_snapshot is None), None)

    @property
    def deleted_rows(self) -> int:
        live = self.live_delete_file
        return (live.delete_count if live is not None else 0) + len(self.inlined_deletes)


def read_candidates(
    lake: Lake,
    connection: sa.Connection,
    state: CatalogState,
    table: Table,
    only: Collection[int] | None = None,
) -> list[Candidate]:
    """The files of a table, in the order in which they are merged: by first snapshot, first row id, and id.

    Args:
        only: ids of the files to look at; all files by default.
    """
    table_id, at = table.table_id, state.snapshot.snapshot_id
    f, d = t.data_file, t.delete_file
    deletes: dict[int, list[DeleteFile]] = defaultdict(list)
    chosen = [] if only is None else [among(d.c.data_file_id, only)]
    for delete in read_delete_files(connection, table_id, sa.and_(d.c.begin_snapshot <= at, *chosen)):
        deletes[delete.data_file_id].append(delete)
    positions = inlined_deletions.read(connection, lake.database, table_id, at)
    versions = _schema_versions(connection, table_id)
    chosen = [] if only is None else [among(f.c.data_file_id, only)]
    is_live = sa.and_(f.c.end_snapshot.is_(None), f.c.begin_snapshot <= at, *chosen)
    files = read_data_files(connection, table_id, is_live)
    candidates = [
        Candidate(
            file,
            max((version for begin, version in versions if begin <= file.begin_snapshot), default=0),
            tuple(sorted(deletes[file.data_file_id], key=lambda delete: delete.begin_snapshot)),
            tuple(position for position, _ in positions.get(file.data_file_id, ())),
        )
        for file in files
    ]
    last = float("inf")
    return sorted(
        candidates,
        key=lambda c: (
            c.data_file.begin_snapshot,
            last if c.data_file.row_id_start is None else c.data_file.row_id_start,
            c.data_file.data_file_id,
        ),
    )


def _schema_versions(connection: sa.Connection, table_id: int) -> list[tuple[int, int]]:
    v = t.schema_versions
    query = sa.select(v.c.begin_snapshot, v.c.schema_version).where(v.c.table_id == table_id)
    return [(begin, version) for begin, version in connection.execute(query)]


def columns_of(connection: sa.Connection, table: Table, candidate: Candidate) -> tuple[Column, ...]:
    """The columns the table had when the file's first rows were written."""
    return read_columns(connection, table.table_id, candidate.data_file.begin_snapshot)


def scan_of(candidate: Candidate, folder: str) -> ScanFile:
    """Return the file to read, with its present deletions."""
    file, delete = candidate.data_file, candidate.live_delete_file
    return ScanFile(
        data_file=file,
        path=paths.resolve(folder, file.path, file.path_is_relative),
        delete_file=delete,
        delete_path=paths.resolve(folder, delete.path, delete.path_is_relative) if delete is not None else None,
        inlined_deletes=candidate.inlined_deletes,
        deleted_up_to=None if not may_name_snapshots(file, delete) else _EVER,
        snapshot_id=file.begin_snapshot,
    )


_EVER = 1 << 61
