"""Inlined rows and inlined deletions of a table that could be in files."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import read_data_files, read_delete_files
from ducklake_lab.catalog.inlined import InlinedVersion
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.state import read_state
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DeleteFile
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ScanFile


@dataclass(frozen=True, slots=True)
class InlinedDeletions:
    """Catalog rows that delete from a data file.

    Attributes:
        files: the data file with each delete file that it has or had, oldest first; without one, where there is none.
        deletions: (position, snapshot that deleted it), ascending.
    """

    files: tuple[ScanFile, ...]
    deletions: tuple[tuple[int, int], ...]


def read_inlined(
    lake: Lake, connection: sa.Connection, state: CatalogState, table: Table
) -> list[tuple[Table, InlinedVersion]]:
    """The inlined rows of a table by the columns they have, oldest first, with the table as it was then."""
    at = state.snapshot.snapshot_id
    versions = []
    for version in inlined.read_versions(connection, lake.database, table.table_id, at):
        then = read_state(connection, replace(state.snapshot, snapshot_id=version.begin_snapshot), lake.connect)
        versions.append((then.tables[table.table_id], version))
    return versions


def read_inlined_deletions(
    lake: Lake, connection: sa.Connection, state: CatalogState, table: Table
) -> list[InlinedDeletions]:
    """The inlined deletions from the data files of a table, by file."""
    at, table_id = state.snapshot.snapshot_id, table.table_id
    positions = inlined_deletions.read(connection, lake.database, table_id, at)
    if not positions:
        return []
    folder = lake.folder(state, table)
    of_table = one_of(connection, t.data_file.c.data_file_id, positions)
    deletes: dict[int, list[DeleteFile]] = defaultdict(list)
    for delete in read_delete_files(connection, table_id, one_of(connection, t.delete_file.c.data_file_id, positions)):
        deletes[delete.data_file_id].append(delete)
    deletions = []
    for file in read_data_files(connection, table_id, of_table):
        path = paths.resolve(folder, file.path, file.path_is_relative)
        scan = ScanFile(data_file=file, path=path, snapshot_id=file.begin_snapshot)
        scans = [
            replace(scan, delete_file=d, delete_path=paths.resolve(folder, d.path, d.path_is_relative))
            for d in sorted(deletes[file.data_file_id], key=lambda d: (d.begin_snapshot, d.delete_file_id))
        ]
        deletions.append(InlinedDeletions(tuple(scans or [scan]), tuple(positions[file.data_file_id])))
    return deletions
