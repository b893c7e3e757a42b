"""Delete files of a branch at an earlier snapshot, without the deletions of later ones."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.files.deletes import Deletions, write_deletions
from ducklake_lab.files.options import delete_options
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.model.files import VECTOR_FORMAT
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.scan.positions import read_deletions
from ducklake_lab.storage import Storage


def trim_deletions(
    lake: Lake,
    connection: sa.Connection,
    writes: Writes,
    snapshot: Snapshot,
    folders: dict[int, str],
    *,
    is_shared: bool,
) -> set[int]:
    """Writes each delete file that has later deletions anew, without them, and returns the ids of these files.

    Args:
        lake: the lake that the branch is made of; `connection` leads to its catalog.
        writes: hold changes of the branch's catalog.
        folders: the branch's folder of each table, by table id.
        is_shared: data files stay where they are.
    """
    d = t.delete_file
    later = sa.select(d.c.delete_file_id, d.c.table_id).where(d.c.partial_max > snapshot.snapshot_id)
    trimmed = {int(file_id): int(table_id) for file_id, table_id in writes.connection.execute(later)}
    state = lake.state(connection, snapshot)
    options, storage = lake.options(connection), Storage()
    known = versions.tables(lake.version).tables[d.name].c
    for table_id in sorted(set(trimmed.values())):
        table = state.tables[table_id]
        for file in plan_scan(lake, connection, state, table).files:
            delete = file.delete_file
            if delete is None or delete.delete_file_id not in trimmed:
                continue
            row = d.c.delete_file_id == delete.delete_file_id
            positions, snapshots = read_deletions(replace(file, inlined_deletes=()), storage)
            if not len(positions):
                writes.write_to_earlier(d.delete().where(row))
                continue
            own = replace(
                delete_options(options, table, lake.version),
                vectors=delete.format.lower() == VECTOR_FORMAT,
                inline_limit=0,
            )
            folder = folders[table_id]
            data_file = file.path if is_shared else folder + file.data_file.path
            written = write_deletions(Deletions(positions, snapshots), data_file, folder, own, storage)
            values = {
                "path": written.path,
                "path_is_relative": True,
                "format": written.format,
                "delete_count": written.delete_count,
                "file_size_bytes": written.file_size_bytes,
                "footer_size": written.footer_size,
                "encryption_key": written.encryption_key,
                "begin_snapshot": written.begin_snapshot,
                "partial_max": written.partial_max,
                "row_group_count": written.row_group_count,
            }
            trimmed_file = d.update().where(row)
            writes.write_to_earlier(trimmed_file.values({key: v for key, v in values.items() if key in known}))
    return set(trimmed)
