"""Files that no snapshot needs: those that the catalog lists for deletion, and those it does not name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
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
    return {place for table in read_known_tables(lake) for places, _ in table.files for place in places}


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table with its data and delete files, of any snapshot.

    Attributes:
        name: as `schema.table`, the newest.
        folders: absolute, ending in `/`; one as a rule.
        files: where each may be, one place for each folder, and its bytes if they are known.
    """

    name: str
    folders: tuple[str, ...]
    files: list[tuple[tuple[str, ...], int | None]]


def read_known_tables(lake: Lake) -> list[KnownTable]:
    """Read the tables that the catalog names, or that have files in it, of any snapshot."""
    table, schema = t.table, t.schema
    with lake.connect() as connection:
        tables: dict[int, KnownTable] = {}
        entries = (
            sa.select(
                table.c.table_id,
                table.c.table_name,
                schema.c.schema_name,
                *(table.c.path, table.c.path_is_relative, schema.c.path, schema.c.path_is_relative),
            )
            .join(schema, schema.c.schema_id == table.c.schema_id)
            .order_by(table.c.begin_snapshot)
        )
        for table_id, name, schema_name, path, relative, schema_path, schema_relative in connection.execute(entries):
            base = paths.resolve(lake.data_path, schema_path or "", schema_relative is not False)
            folder = paths.resolve(base, path or "", relative is not False)
            before = tables[table_id].folders if table_id in tables else ()
            folders = tuple(dict.fromkeys((*before, folder)))
            tables[table_id] = KnownTable(f"{schema_name}.{name}", folders, [])
        for files in (t.data_file, t.delete_file):
            query = sa.select(files.c.table_id, files.c.path, files.c.path_is_relative, files.c.file_size_bytes)
            for table_id, path, relative, size in connection.execute(query):
                if table_id not in tables:
                    tables[table_id] = KnownTable(f"table {table_id}", (lake.data_path,), [])
                owner = tables[table_id]
                places = (paths.resolve(folder, path, relative is not False) for folder in owner.folders)
                owner.files.append((tuple(dict.fromkeys(places)), size))
    return list(tables.values())
