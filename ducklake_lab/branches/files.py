"""Gives a branch its files: further names of its lake's files, copies, or in an object store the files themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from ducklake_lab.branches.copying import Source
from ducklake_lab.catalog import paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.errors import CatalogError, DataFileError, TransactionConflictError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_below, is_same_store
from ducklake_lab.storage import Storage, fault_of

_storage = Storage()


@dataclass(frozen=True, slots=True)
class Folders:
    """The folder of a table in the lake, and in the branch."""

    source: str
    target: str


#: Names of files in a folder of the branch, each with its name in the source's folder; by both folders, without `/` at the end.
Taken = dict[tuple[str, str], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Named:
    """Statements that write relative paths into a branch's catalog, in place of absolute ones of the lake's."""

    statements: list[sa.Update] = field(default_factory=list)

    def name(self, table: sa.Table, key: sa.Column[Any], number: int, path: str) -> None:
        self.statements.append(table.update().where(key == number).values(path=path, path_is_relative=True))

    def write(self, writes: Writes) -> None:
        """Hold the statements, as changes of the branch's catalog."""
        for statement in self.statements:
            writes.write_to_earlier(statement)


def files_to_take(source: Source, folders: Mapping[int, Folders], target_path: str, named: Named) -> Taken:
    """Return all files that a branch's catalog names, by their folders in the lake and below the branch's data path.

    Paths in the catalog stay as they are if they are relative; absolute ones become relative. Delete files that have later
    deletions are left out, as `trim_deletions` writes them anew.

    Args:
        folders: of the tables, from `take_over_folders`.
        target_path: the branch's data path.
        named: takes the paths that become relative.

    Raises:
        CatalogError: a path leads out of the data path.
        UnsupportedFeatureError: a file is in another store.
    """
    taken: Taken = {}
    # names of files directly in the folders of tables, which most are
    plain = {
        table_id: taken.setdefault((folder.source[:-1], folder.target[:-1]), {})
        for table_id, folder in folders.items()
        if folder.source.endswith("/") and folder.target.endswith("/")
    }
    untrimmed = f"(partial_max IS NULL OR partial_max <= {source.snapshot.snapshot_id:d})"
    for table, key, condition in (
        (t.data_file, t.data_file.c.data_file_id, "1 = 1"),
        (t.delete_file, t.delete_file.c.delete_file_id, untrimmed),
    ):
        columns = (key.name, "table_id", "path", "path_is_relative")
        for file_id, table_id, path, is_relative in source.rows(table, columns, condition):
            if is_relative and table_id in plain and "/" not in path:
                plain[table_id][path] = path
                continue
            folder = folders[table_id]
            # several deletion vectors share one file
            name = path if is_relative else _own_name(file_id, path)
            above, _, file = (folder.target + name).rpartition("/")
            origin, _, old = paths.resolve(folder.source, path, is_relative).rpartition("/")
            names = taken.get((origin, above))
            if names is None:
                names = taken[origin, above] = {}
            names[file] = old
            if not is_relative:
                named.name(table, key, file_id, name)
    taken = {places: names for places, names in taken.items() if names}
    _check_places(taken, target_path)
    return taken


def name_files(writes: Writes, folders: Mapping[int, Folders], own: Collection[int]) -> None:
    """Makes a branch's catalog name the files of its lake, by their absolute paths.

    Args:
        writes: hold changes of the branch's catalog, whose paths still are those of the lake.
        folders: of the tables, from `take_over_folders`.
        own: ids of delete files that are the branch's.
    """
    for table, kept in ((t.data_file, ()), (t.delete_file, own)):
        is_relative = sa.or_(table.c.path_is_relative == sa.true(), table.c.path_is_relative.is_(None))
        if kept:
            is_relative = sa.and_(is_relative, table.c.delete_file_id.not_in(kept))
        for table_id in writes.connection.scalars(sa.select(table.c.table_id).where(is_relative).distinct()).all():
            path = sa.literal(folders[table_id].source, sa.String) + table.c.path
            named = table.update().where(table.c.table_id == table_id, is_relative)
            writes.write_to_earlier(named.values(path=path, path_is_relative=False))


def check_still_named(lake: Lake, branch: Lake) -> None:
    """Check that a lake still names the files that a branch made of it shares.

    Raises:
        TransactionConflictError: it does not, as snapshots expired meanwhile.
    """
    for table, key in ((t.data_file, "data_file_id"), (t.delete_file, "delete_file_id")):
        with branch.connect() as connection:
            elsewhere = sa.select(table.c[key]).where(table.c.path_is_relative == sa.false())
            shared = {number for (number,) in _tuples(connection, elsewhere)}
        with lake.connect(fresh=True) as connection:
            known = {number for (number,) in _tuples(connection, sa.select(table.c[key]))}
        if not shared <= known:
            raise TransactionConflictError("Snapshots expired while the branch was made; branch again.")


def _tuples(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[Any]:
    """Return rows as the driver gives them: a catalog may have a hundred thousand."""
    result = connection.execute(query)
    assert result.cursor is not None
    rows = result.cursor.fetchall()
    result.close()
    return rows


def take_over_files(files: Taken, *, copy: bool) -> None:
    """Gives a branch files of its own: further names of the files of its lake, or copies.

    Args:
        files: from `files_to_take`.
        copy: copy bytes, even where a file could have a second name.

    Raises:
        DataFileError: a file is not there.
    """
    _storage.duplicate_folders(files, link=not copy)
    if copy:
        sources = {
            f"{above}/{new}": f"{source}/{old}"
            for (source, above), names in files.items()
            for new, old in names.items()
        }
        sizes = _storage.sizes(sources.values())
        fault = fault_of({path: sizes[source] for path, source in sources.items()}, _storage.sizes(sources))
        if fault is not None:
            raise DataFileError(f"A copy is not as it was written: {fault}; branch again.")


def _check_places(files: Taken, target_path: str) -> None:
    """Check that files come from the same store, and go below the branch's data path; many of them share folders."""
    for (source, folder), names in files.items():
        if not is_same_store(f"{source}/file", target_path):
            raise UnsupportedFeatureError(
                f"A branch of a lake with a file elsewhere is not supported: {source}/{next(iter(names.values()))} is not in "
                "the same store as its data."
            )
        # a name that is no folder above, nor the folder itself, is below if its folder is
        if not is_below(f"{folder}/file", target_path, real=str):
            raise CatalogError(
                f"The catalog names files in {folder}, outside of the data path; a branch cannot take them."
            )
        if wrong := names.keys() & {"", ".", ".."}:
            raise CatalogError(
                f"The catalog names the file {folder}/{min(wrong)}, which is a folder; a branch cannot take it."
            )


def _own_name(file_id: int, path: str) -> str:
    """Return a relative path for a file elsewhere; folders such as `day=1` stay, as readers take values from them."""
    *folders, name = path.split("/")
    kept = [folder for folder in folders if "=" in folder]
    return "/".join((f"file_{file_id}", *kept, name))


def take_over_folders(source: Source, target_path: str, named: Named) -> dict[int, Folders]:
    """Return the folders of each table; absolute paths of schemas and tables become relative in the branch's catalog.

    Args:
        target_path: the branch's data path.
        named: takes the paths that become relative.

    Raises:
        CatalogError: a path leads out of the data path.
    """
    s, tab = t.schema, t.table
    schemas: dict[int, Folders] = {}
    for schema_id, path, is_relative in source.rows(s, ("schema_id", "path", "path_is_relative")):
        own = path if is_relative else f"schema_{schema_id}/"
        schemas[schema_id] = Folders(
            paths.resolve(source.lake.data_path, path, is_relative), _below(target_path + own, target_path)
        )
        if not is_relative:
            named.name(s, s.c.schema_id, schema_id, own)
    tables: dict[int, Folders] = {}
    columns = ("begin_snapshot", "table_id", "schema_id", "path", "path_is_relative")
    for _, table_id, schema_id, path, is_relative in sorted(source.rows(tab, columns), key=itemgetter(0)):
        above = schemas[schema_id]
        own = path if is_relative else f"table_{table_id}/"
        target_folder = _below(above.target + own, target_path)
        tables[table_id] = Folders(paths.resolve(above.source, path, is_relative), target_folder)
        if not is_relative:
            named.name(tab, tab.c.table_id, table_id, own)
    return tables


def _below(folder: str, target_path: str) -> str:
    """Return a folder; raises CatalogError where it is not below the branch's data path."""
    if not is_below(f"{folder}file", target_path, real=str):
        raise CatalogError(f"The catalog names the folder {folder}, outside of the data path; a branch cannot have it.")
    return folder
