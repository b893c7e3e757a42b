"""Hits that SQL over the catalog cannot find: files in storages, few delete files, tables of inlined rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.context import NEVER, Context
from ducklake_lab.doctor.deletion_files import delete_of, deletions_of
from ducklake_lab.doctor.path_mending import plain_path
from ducklake_lab.doctor.plan import metadata_table
from ducklake_lab.errors import DataFileError
from ducklake_lab.maintenance.delete_orphaned_files import delete_orphaned_files
from ducklake_lab.model.files import DeleteFile
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.parallel import in_parallel

#: Data files with deletions in two places whose delete files are read without `deep`.
_READ = 2_000
_KINDS = (
    ("data file", "ducklake_data_file", "data_file_id"),
    ("delete file", "ducklake_delete_file", "delete_file_id"),
)
_TYPES = "SELECT table_id, column_id, column_name, column_type, begin_snapshot, end_snapshot FROM ducklake_column"
#: Names of columns of tables of inlined rows.
_COLUMNS = {
    "sqlite": "SELECT m.name, p.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p "
    "WHERE m.name LIKE 'ducklake_inlined_data_%'",
    "duckdb": "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = current_database() "
    "AND schema_name = current_schema() AND table_name LIKE 'ducklake_inlined_data_%'",
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() "
    "AND table_name LIKE 'ducklake_inlined_data_%'",
    "mysql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE() "
    "AND table_name LIKE 'ducklake_inlined_data_%'",
}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data or delete file that a snapshot sees.

    Attributes:
        path: as the catalog has it.
        place: its absolute path.
        bytes: those of the catalog.
        found: those in the storage; None where it has no such file.
        is_listed: the storage lists it under this path.
    """

    kind: str
    id: int
    table_id: int
    path: str
    place: str
    bytes: int
    begin: int
    end: int | None
    found: int | None
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """Files of a lake or table, and the bytes of those in its folder, by their paths as the storage lists them."""

    files: list[StoredFile]
    listed: Mapping[str, int]


def stored(context: Context) -> Stored:
    """Look for the files of a lake or table by a list of all files in its folder, and for others by name."""
    rows = []
    for kind, table, key in _KINDS:
        where = "" if context.table_id is None else f" WHERE table_id = {context.table_id:d}"
        query = f"SELECT {key}, table_id, path, path_is_relative, file_size_bytes, begin_snapshot, end_snapshot FROM {table}{where}"
        for file_id, table_id, path, relative, size, begin, end in context.tuples(query):
            first = context.first_from(begin)
            if path is not None and first is not None and (end is None or first < end):
                rows.append((kind, file_id, table_id, path, context.place(table_id, path, relative), size, begin, end))
    folder = context.lake.data_path
    if context.table_id is not None:
        folder = context.folders.get(context.table_id, folder)
    listed = context.storage.listed_sizes(folder)
    asked = [row[4] for row in rows if row[4] not in listed]
    sizes = context.storage.sizes(asked, folder)
    files = [StoredFile(*row, listed.get(row[4], sizes.get(row[4])), row[4] in listed) for row in rows]
    return Stored(files, listed)


def _row(file: StoredFile, context: Context) -> dict[str, object]:
    table, key = next((table, key) for kind, table, key in _KINDS if kind == file.kind)
    return {
        "table_id": file.table_id,
        "kind": file.kind,
        "id": file.id,
        "path": file.place,
        "file_size_bytes": file.bytes,
        "found": file.found,
        "since": file.begin,
        "until": file.end,
        "evidence": f"SELECT {key}, path, path_is_relative, file_size_bytes FROM {table} WHERE {key} = {file.id:d}",
    }


def _missing(context: Context, kind: str) -> Iterator[Row]:
    return (_row(file, context) for file in context.once(stored).files if file.kind == kind and file.found is None)


def _other_size(context: Context, kind: str) -> Iterator[Row]:
    for file in context.once(stored).files:
        if file.kind == kind and file.found is not None and file.found != file.bytes:
            yield _row(file, context)


def missing_data_files(context: Context) -> Iterator[Row]:
    return _missing(context, "data file")


def missing_delete_files(context: Context) -> Iterator[Row]:
    return _missing(context, "delete file")


def data_file_sizes(context: Context) -> Iterator[Row]:
    return _other_size(context, "data file")


def delete_file_sizes(context: Context) -> Iterator[Row]:
    return _other_size(context, "delete file")


def spelled_otherwise(context: Context) -> Iterator[Row]:
    in_storage = context.once(stored)
    for file in in_storage.files:
        # where the folder above is spelled oddly, another check finds that
        if file.found is None or file.is_listed or plain_path(file.path) == file.path:
            continue
        plain = plain_path(file.place)
        if plain != file.place and plain in in_storage.listed:
            yield {**_row(file, context), "path": file.path, "listed": plain}


def orphans(context: Context) -> Iterator[Row]:
    if context.table_id is not None:
        return
    paths = delete_orphaned_files(context.lake, None, dry_run=True)
    if paths:
        evidence = "SELECT path FROM ducklake_data_file UNION ALL SELECT path FROM ducklake_delete_file"
        yield {
            "table_id": None,
            "files": len(paths),
            "path": paths[0],
            "since": None,
            "until": None,
            "evidence": evidence,
        }


# Deletions in two places


def doubled_deletions(context: Context) -> Iterator[Row]:
    for table_id, name in sorted(context.delete_tables.items()):
        if context.table_id in (None, table_id):
            yield from _doubled(context, table_id, name)


def _doubled(context: Context, table_id: int, name: str) -> Iterator[Row]:
    marks: dict[int, dict[int, int]] = defaultdict(dict)
    both = (
        f"SELECT m.file_id, m.row_id, m.begin_snapshot FROM {quote_identifier(name)} AS m WHERE m.file_id IN "
        f"(SELECT data_file_id FROM ducklake_delete_file WHERE table_id = {table_id:d})"
    )
    for file_id, position, begin in context.tuples(both):
        if None not in (file_id, position, begin):
            marks[file_id][position] = min(begin, marks[file_id].get(position, NEVER))
    if not marks:
        return
    files = metadata_table(context, "ducklake_delete_file")
    columns = ", ".join(column.name for column in files.c)
    deletes: dict[int, list[DeleteFile]] = defaultdict(list)
    for record in context.rows(f"SELECT {columns} FROM ducklake_delete_file WHERE table_id = {table_id:d}"):
        delete = delete_of(record)
        if delete.data_file_id in marks:
            deletes[delete.data_file_id].append(delete)
    query = f"SELECT data_file_id, end_snapshot FROM ducklake_data_file WHERE table_id = {table_id:d}"
    ends: dict[int, int | None] = {row[0]: row[1] for row in context.tuples(query)}
    _ = context.folders  # threads are not to read the catalog
    chosen = [
        (file_id, delete) for file_id in sorted(marks)[: None if context.deep else _READ] for delete in deletes[file_id]
    ]

    def doubled(pair: tuple[int, DeleteFile]) -> list[int]:
        file_id, delete = pair
        try:
            positions, starts = deletions_of(context, delete, table_id)
        except DataFileError:
            return []  # another check finds it
        end = NEVER if delete.end_snapshot is None else delete.end_snapshot
        end = min(end, ends.get(file_id) or NEVER)
        own = marks[file_id]
        since = (
            max(start, delete.begin_snapshot, own[position])
            for position, start in zip(positions.tolist(), starts.tolist(), strict=True)
            if position in own
        )
        return [one for one in since if one < end]

    by_file: dict[int, list[int]] = defaultdict(list)
    for (file_id, _), since in zip(chosen, in_parallel(chosen, doubled), strict=True):
        by_file[file_id] += since
    for file_id, since in by_file.items():
        if since:
            yield {
                "table_id": table_id,
                "id": file_id,
                "doubled": len(since),
                "since": min(since),
                "until": ends.get(file_id),
                "evidence": f"SELECT m.row_id, m.begin_snapshot, d.path, d.delete_count FROM {name} AS m "
                f"JOIN ducklake_delete_file AS d ON d.data_file_id = m.file_id WHERE m.file_id = {file_id:d}",
            }


# Tables of inlined rows


def _first_of_table(context: Context) -> dict[int, int]:
    query = "SELECT table_id, min(begin_snapshot) FROM ducklake_table GROUP BY table_id"
    return {row[0]: row[1] for row in context.tuples(query)}


def _named(context: Context, table_id: int) -> bool:
    return table_id in context.names and context.table_id in (None, table_id)


def missing_inlined_tables(context: Context) -> Iterator[Row]:
    first = _first_of_table(context)
    for table_id, name, _ in context.registered:
        if _named(context, table_id) and name not in context.data_tables:
            if context.lake.database.has_table(context.connection, name):
                continue
            yield {
                "table_id": table_id,
                "name": name,
                "since": first.get(table_id),
                "until": None,
                "evidence": f"SELECT * FROM ducklake_inlined_data_tables WHERE table_id = {table_id:d}",
            }


def unnamed_inlined_tables(context: Context) -> Iterator[Row]:
    named = {name for _, name, _ in context.registered}
    _, begin, _ = context.inlined_columns
    for name, (table_id, _) in sorted(context.data_tables.items()):
        if name in named or not _named(context, table_id):
            continue
        (counted,) = context.rows(f"SELECT count(*) AS n, min({begin}) AS since FROM {quote_identifier(name)}")
        if counted["n"]:
            evidence = f"SELECT * FROM {name}"
            yield {"table_id": table_id, "name": name, **counted, "until": None, "evidence": evidence}


def differing_inlined_columns(context: Context) -> Iterator[Row]:
    there: dict[str, set[str]] = defaultdict(set)
    for name, column in context.tuples(_COLUMNS[context.dialect]):
        there[name].add(column)
    begins: dict[tuple[int, int], int] = {}
    for table_id, version, begin in context.tuples(
        "SELECT v.table_id, v.schema_version, max(v.begin_snapshot) FROM ducklake_schema_versions AS v "
        "JOIN ducklake_inlined_data_tables AS i ON i.table_id = v.table_id AND i.schema_version = v.schema_version "
        "GROUP BY v.table_id, v.schema_version",
    ):
        begins[table_id, version] = begin
    columns: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    if begins:
        for table_id, column, begin, end in context.tuples(
            "SELECT table_id, column_name, begin_snapshot, end_snapshot FROM ducklake_column WHERE parent_column IS NULL "
            "AND table_id IN (SELECT table_id FROM ducklake_inlined_data_tables)",
        ):
            columns[table_id].append((column, begin, NEVER if end is None else end))
    for table_id, name, version in context.registered:
        at = begins.get((table_id, version))
        if at is None or name not in there or not _named(context, table_id):
            continue
        for column, begin, end in columns[table_id]:
            if begin <= at < end and column not in there[name]:
                yield {
                    "table_id": table_id,
                    "name": name,
                    "column": column,
                    "since": at,
                    "until": None,
                    "evidence": f"SELECT column_name FROM ducklake_column WHERE table_id = {table_id:d} "
                    f"AND begin_snapshot <= {at:d} AND (end_snapshot IS NULL OR end_snapshot > {at:d})",
                }


def unknown_types(context: Context) -> Iterator[Row]:
    """Columns whose type nobody knows."""
    is_known: dict[str, bool] = {}
    for column in context.rows(_TYPES):
        text = str(column["column_type"])
        if text not in is_known:
            is_known[text] = DataType(text).is_known
        if not is_known[text]:
            yield {
                "table_id": column["table_id"],
                "id": column["column_id"],
                "name": column["column_name"],
                "type": text,
                "since": column["begin_snapshot"],
                "until": column["end_snapshot"],
                "evidence": f"{_TYPES} WHERE table_id = {column['table_id']} AND column_id = {column['column_id']}",
            }
