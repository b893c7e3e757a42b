"""Files that no snapshot needs: those the catalog has on its list, and those it has never heard of."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from ducklake_lab.catalog import paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.tables import one_of


def read_scheduled(lake: Lake, older_than: datetime | None) -> list[tuple[int, str]]:
    """(id, absolute path) of the files scheduled for deletion, before a time if one is given."""
    s = t.files_scheduled_for_deletion
    query = sa.select(s.c.data_file_id, s.c.path, s.c.path_is_relative).order_by(s.c.data_file_id)
    if older_than is not None:
        query = query.where(s.c.schedule_start < older_than)
    with lake.connect() as connection:
        return [
            (file_id, paths.resolve(lake.data_path, path, relative is not False))
            for file_id, path, relative in connection.execute(query)
        ]


def remove_scheduled(lake: Lake, files: Collection[tuple[int, str]]) -> None:
    """Takes files off the list, after they were deleted."""
    s = t.files_scheduled_for_deletion
    with lake.connect(fresh=True) as connection:
        lock_for_commit(connection)
        connection.execute(s.delete().where(one_of(connection, s.c.data_file_id, [file_id for file_id, _ in files])))
        connection.commit()


def read_known_files(lake: Lake) -> set[str]:
    """Absolute paths of all data and delete files that the catalog knows, of any snapshot."""
    table, schema = t.table, t.schema
    with lake.connect() as connection:
        folders: dict[int, set[str]] = {}
        entries = sa.select(
            table.c.table_id, table.c.path, table.c.path_is_relative, schema.c.path, schema.c.path_is_relative
        ).join(schema, schema.c.schema_id == table.c.schema_id)
        for table_id, path, relative, schema_path, schema_relative in connection.execute(entries):
            base = paths.resolve(lake.data_path, schema_path or "", schema_relative is not False)
            folders.setdefault(table_id, set()).add(paths.resolve(base, path or "", relative is not False))
        known = set()
        for files in (t.data_file, t.delete_file):
            query = sa.select(files.c.table_id, files.c.path, files.c.path_is_relative)
            for table_id, path, relative in connection.execute(query):
                for folder in folders.get(table_id, {lake.data_path}):
                    known.add(paths.resolve(folder, path, relative is not False))
    return known
