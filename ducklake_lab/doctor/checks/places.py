"""Paths of files and folders, and encryption."""

from __future__ import annotations

from ducklake_lab.doctor import path_mending, probes
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import Context
from ducklake_lab.model.quoting import quote_text

_KINDS = (
    ("data file", "ducklake_data_file", "data_file_id"),
    ("delete file", "ducklake_delete_file", "delete_file_id"),
)


def _files(condition: str) -> str:
    return " UNION ALL ".join(
        f"SELECT f.table_id AS table_id, '{kind}' AS kind, f.{key} AS id, f.path AS path, f.begin_snapshot AS since, "
        f"f.end_snapshot AS until FROM {table} AS f WHERE {condition}"
        for kind, table, key in _KINDS
    )


def _absolute(context: Context) -> str:
    return f"(f.path LIKE '/%' OR {context.contains('f.path', '://')})"


def _climbs(context: Context) -> str:
    parts = (context.contains("f.path", "/../"), "f.path LIKE '../%'", "f.path LIKE '%/..'")
    return _files(f"({' OR '.join(parts)})")


def _marked_relative(context: Context) -> str:
    return _files(f"f.path_is_relative AND {_absolute(context)}")


def _marked_absolute(context: Context) -> str:
    # a letter and a colon begin a path of Windows
    return _files(f"NOT f.path_is_relative AND NOT {_absolute(context)} AND f.path NOT LIKE '_:%'")


def _no_path(_: Context) -> str:
    return _files("f.path IS NULL OR f.path = ''")


def _outside(context: Context) -> str:
    start = quote_text(context.lake.data_path)
    length = len(context.lake.data_path)
    return (
        "SELECT f.table_id AS table_id, count(*) AS files, min(f.path) AS path, NULL AS since, NULL AS until "
        "FROM ducklake_data_file AS f WHERE NOT f.path_is_relative AND f.end_snapshot IS NULL "
        f"AND substr(f.path, 1, {length:d}) <> {start} GROUP BY f.table_id"
    )


def _no_slash(_: Context) -> str:
    return " UNION ALL ".join(
        f"SELECT {of} AS table_id, '{kind}' AS kind, x.{kind}_id AS id, x.path AS path, x.begin_snapshot AS since, "
        f"x.end_snapshot AS until FROM ducklake_{kind} AS x WHERE x.path <> '' AND x.path NOT LIKE '%/'"
        for kind, of in (("table", "x.table_id"), ("schema", "NULL"))
    )


def _odd_data_path(context: Context) -> str:
    value = 'm."value"'
    odd = [context.contains(value, part) for part in ("/./", "/../")]
    # the first two slashes of a URL are no fault
    rest = f"replace({value}, '://', ':')"
    odd.append(f"{rest} LIKE '%//%'")
    return (
        f"SELECT NULL AS table_id, {value} AS path, NULL AS since, NULL AS until FROM ducklake_metadata AS m "
        f"WHERE m.\"key\" = 'data_path' AND m.scope IS NULL AND ({' OR '.join(odd)})"
    )


def _plain_files(context: Context) -> str | None:
    if not context.is_encrypted:
        return None
    return (
        "SELECT f.table_id AS table_id, count(*) AS files, min(f.data_file_id) AS id, NULL AS since, NULL AS until "
        "FROM ducklake_data_file AS f WHERE f.encryption_key IS NULL GROUP BY f.table_id"
    )


def _plain_vectors(context: Context) -> str | None:
    if not context.is_encrypted:
        return None
    return (
        "SELECT d.table_id AS table_id, count(*) AS files, min(d.delete_file_id) AS id, NULL AS since, NULL AS until "
        "FROM ducklake_delete_file AS d WHERE lower(d.format) = 'puffin' GROUP BY d.table_id"
    )


CHECKS = (
    Check(
        "path_climbs", "paths", "warning", "later", "{kind} {id}",
        'Its path "{path}" leaves its folder by "..": clean-ups may take it for a file of nobody.',
        query=_climbs, key=("table_id", "kind", "id"),
        repair=Repair("write the path in full, without ..", path_mending.straighten),
    ),
    Check(
        "path_marked_relative", "paths", "error", "fails", "{kind} {id}",
        'Its path "{path}" is absolute, and the catalog says that it is relative.',
        query=_marked_relative, key=("table_id", "kind", "id"),
        repair=Repair("say that it is absolute, if the file is there", path_mending.mark_absolute),
    ),
    Check(
        "path_marked_absolute", "paths", "error", "fails", "{kind} {id}",
        'Its path "{path}" is relative, and the catalog says that it is absolute.',
        query=_marked_absolute, key=("table_id", "kind", "id"),
        repair=Repair("say that it is relative, if the file is there", path_mending.mark_relative),
    ),
    Check(
        "path_missing", "paths", "error", "fails", "{kind} {id}", "It has no path.",
        query=_no_path, key=("table_id", "kind", "id"), reason="which file it was is not known",
    ),
    Check(
        "files_outside", "paths", "info", "none", "files",
        "{files} data files are outside of the lake's data path, {path} among them; others may move or delete them.",
        query=_outside, key=("table_id",), reason="they were added so, or a branch shares them with its lake; CREATE TABLE … AS copies their rows",
    ),
    Check(
        "folder_without_slash", "paths", "error", "fails", "{kind} {id}",
        'Its folder "{path}" does not end in "/", so that names of files are joined to it.',
        query=_no_slash, key=("table_id", "kind", "id"),
        repair=Repair("add the slash, if files are there then and not now", path_mending.add_slash),
    ),
    Check(
        "data_path_odd", "paths", "warning", "later", "data path",
        'The data path "{path}" is spelled in another way than storages list it: clean-ups may delete files that are read.',
        query=_odd_data_path, key=(),
        repair=Repair("spell it plainly", path_mending.straighten_data_path),
    ),
    Check(
        "live_file_looks_orphaned", "paths", "warning", "later", "{kind} {id}",
        'The catalog spells it "{path}", the storage lists it as {listed}: clean-ups may delete it, and its rows are read.',
        probe=probes.spelled_otherwise, key=("table_id", "kind", "id"), depth="storage",
        repair=Repair("spell it as the storage does", path_mending.straighten),
    ),
    Check(
        "plain_files_in_encrypted_lake", "encryption", "warning", "none", "data files",
        "The lake is encrypted, and {files} data files of this table are not, file {id} among them.",
        query=_plain_files, key=("table_id",),
        reason="files are never changed; UPDATE writes their rows again, and expire_snapshots lets go of the old ones",
    ),
    Check(
        "plain_deletion_vectors", "encryption", "warning", "none", "deletion vectors",
        "The lake is encrypted, and {files} deletion vectors are not: anybody with the files sees which rows are deleted.",
        query=_plain_vectors, key=("table_id",),
        reason="clients write Puffin files plain; set write_deletion_vectors to false, then run rewrite_data_files",
    ),
)  # fmt: skip
