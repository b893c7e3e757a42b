"""Repairs of metadata alone, and of counts that files prove. Each returns the changes, or says why there are none."""

from __future__ import annotations

import os.path
from typing import Any

from ducklake_lab.catalog import inlined, versions
from ducklake_lab.catalog.reader import read_columns
from ducklake_lab.doctor import footers
from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.context import NEWEST, Context, dead_condition
from ducklake_lab.doctor.plan import Change, NoRepairError, Plan, Record, Statement, only, read, replaced, update
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.storage import is_local

_FILES = {
    "data file": ("ducklake_data_file", "data_file_id"),
    "delete file": ("ducklake_delete_file", "delete_file_id"),
}


def _of(row: Row, name: str) -> Any:
    return row[name]


# Data files


def forget_doubled_file(context: Context, row: Row) -> Plan:
    one = only(read(context, "ducklake_data_file", data_file_id=row["id"]), f"data file {row['id']}")
    other = only(read(context, "ducklake_data_file", data_file_id=row["other"]), f"data file {row['other']}")
    if one["row_id_start"] is None or one["row_id_start"] != other["row_id_start"]:
        raise NoRepairError(
            "the rows have other ids, so that it may have been added twice on purpose; DELETE them by rowid"
        )
    if read(context, "ducklake_delete_file", data_file_id=row["other"]):
        raise NoRepairError(f"deletions name data file {row['other']}")
    if (one["begin_snapshot"], one["end_snapshot"]) != (other["begin_snapshot"], other["end_snapshot"]):
        raise NoRepairError("the two begin or end with other snapshots")
    plan = Plan(table_id=_of(row, "table_id"))
    for table in ("ducklake_data_file", "ducklake_file_column_stats", "ducklake_file_partition_value"):
        plan.changes += [Change(table, record, None) for record in read(context, table, data_file_id=row["other"])]
    return plan


def _data_file(context: Context, row: Row) -> tuple[Record, str]:
    record = only(read(context, "ducklake_data_file", data_file_id=row["id"]), f"data file {row['id']}")
    return record, context.place(_of(row, "table_id"), str(record["path"]), record["path_is_relative"])


def measure_data_file(context: Context, row: Row) -> Plan:
    record, path = _data_file(context, row)
    footer = footers.read_footer(context, path, record["encryption_key"])
    if record["record_count"] != footer.rows and record["file_size_bytes"] != footer.bytes:
        raise NoRepairError(f"the file has {footer.rows} rows in {footer.bytes} bytes; it may be another one")
    footers.check_whole(context, path, record["encryption_key"])
    change = update(
        "ducklake_data_file",
        record,
        record_count=footer.rows,
        file_size_bytes=footer.bytes,
        footer_size=footer.size,
        file_format="parquet",
    )
    return Plan([change], _of(row, "table_id"))


def recount_data_file(context: Context, row: Row) -> Plan:
    record, path = _data_file(context, row)
    footer = footers.read_footer(context, path, record["encryption_key"])
    if record["file_size_bytes"] != footer.bytes:
        raise NoRepairError(f"the file has {footer.bytes} bytes too, not those of the catalog; it may be another one")
    start, count = record["row_id_start"], record["record_count"]
    if start is not None and footer.rows > _number(count):
        ends = (
            f"row_id_start >= {_number(start) + _number(count):d} AND row_id_start < {_number(start) + footer.rows:d}"
        )
        query = f"SELECT 1 FROM ducklake_data_file WHERE table_id = {_number(row['table_id']):d} AND {ends}"
        if context.rows(query):
            raise NoRepairError("another file begins with the row ids that its further rows would have")
    return Plan([update("ducklake_data_file", record, record_count=footer.rows)], _of(row, "table_id"))


def unschedule(context: Context, row: Row) -> Plan:
    found = read(
        context, "ducklake_files_scheduled_for_deletion", path=row["scheduled"], data_file_id=row["scheduled_id"]
    )
    return Plan([Change("ducklake_files_scheduled_for_deletion", record, None) for record in _unique(found)])


def _unique(rows: list[Record]) -> list[Record]:
    return [dict(key) for key in dict.fromkeys(tuple(row.items()) for row in rows)]


def _number(value: object) -> int:
    return int(value)  # type: ignore[call-overload,no-any-return]


# Deletions


def move_delete_file(context: Context, row: Row) -> Plan:
    record = only(read(context, "ducklake_delete_file", delete_file_id=row["id"]), f"delete file {row['id']}")
    path = context.place(_of(row, "table_id"), str(record["path"]), record["path_is_relative"])
    if not context.storage.exists(path):
        raise NoRepairError(f"there is no file {path}, so that the data file's id may be the wrong one")
    return Plan([update("ducklake_delete_file", record, table_id=row["table_id"])], _of(row, "table_id"))


def _marks(context: Context, row: Row) -> tuple[str, list[Record]]:
    name = context.delete_tables[_of(row, "table_id")]
    return name, read(context, name, file_id=row["id"], row_id=row["position"])


def keep_first_mark(context: Context, row: Row) -> Plan:
    name, marks = _marks(context, row)
    first = min(marks, key=lambda mark: _number(mark["begin_snapshot"]))
    return Plan(replaced(name, marks, [first]), _of(row, "table_id"))


def drop_outside_mark(context: Context, row: Row) -> Plan:
    _, path = _data_file(context, row)
    record = only(read(context, "ducklake_data_file", data_file_id=row["id"]), f"data file {row['id']}")
    footer = footers.read_footer(context, path, record["encryption_key"])
    position = row["position"]
    if position is not None and 0 <= _number(position) < footer.rows:
        raise NoRepairError(f"the file has {footer.rows} rows, so that its count in the catalog is wrong")
    name, marks = _marks(context, row)
    return Plan([Change(name, mark, None) for mark in _unique(marks)], _of(row, "table_id"))


def drop_dangling_marks(context: Context, row: Row) -> Plan:
    name = context.delete_tables[_of(row, "table_id")]
    sql = (
        f"DELETE FROM {quote_identifier(name)} WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file AS f "
        f"WHERE f.data_file_id = {quote_identifier(name)}.file_id)"
    )
    statement = Statement(name, sql, f"remove {row['deletions']} deletions of files that have gone")
    return Plan(table_id=_of(row, "table_id"), statements=[statement])


# Row ids


def raise_next_row_id(context: Context, row: Row) -> Plan:
    return _next_row_id(context, row, _number(row["wanted"]))


def raise_next_row_id_to(context: Context, row: Row) -> Plan:
    return _next_row_id(context, row, _number(row["row_id"]) + 1)


def _next_row_id(context: Context, row: Row, wanted: int) -> Plan:
    record = only(read(context, "ducklake_table_stats", table_id=row["table_id"]), "the table's statistics")
    return Plan([update("ducklake_table_stats", record, next_row_id=wanted)], _of(row, "table_id"))


def make_table_stats(context: Context, row: Row) -> Plan:
    table_id = _number(row["table_id"])
    (files,) = context.rows(
        "SELECT sum(record_count) AS records, sum(file_size_bytes) AS bytes, max(row_id_start + record_count) AS next_row_id "
        f"FROM ducklake_data_file WHERE table_id = {table_id:d}"
    )
    if context.rows(
        f"SELECT 1 FROM ducklake_data_file WHERE table_id = {table_id:d} AND (row_id_start IS NULL OR partial_max IS NOT NULL)"
    ):
        raise NoRepairError("some files hold row ids of their own; the largest is known after they were read")
    next_row_id, records = _number(files["next_row_id"] or 0), _number(files["records"] or 0)
    row_id = context.inlined_columns[0]
    for of, name in context.readable:
        if of == table_id:
            (kept,) = context.rows(f"SELECT count(*) AS n, max({row_id}) AS last FROM {quote_identifier(name)}")
            next_row_id = max(next_row_id, _number(kept["last"]) + 1 if kept["last"] is not None else 0)
            records += _number(kept["n"])
    new: Record = {
        "table_id": table_id,
        "record_count": records,
        "next_row_id": next_row_id,
        "file_size_bytes": _number(files["bytes"] or 0),
    }
    return Plan([Change("ducklake_table_stats", None, new)], table_id)


def join_table_stats(context: Context, row: Row) -> Plan:
    found = read(context, "ducklake_table_stats", table_id=row["table_id"])
    kept: Record = {name: max(_number(one[name] or 0) for one in found) for name in found[0]}
    return Plan(replaced("ducklake_table_stats", found, [kept]), _of(row, "table_id"))


def drop_table_stats(context: Context, row: Row) -> Plan:
    found = _unique(read(context, "ducklake_table_stats", table_id=row["id"]))
    return Plan([Change("ducklake_table_stats", record, None) for record in found])


# Snapshots and ids


def keep_one_snapshot(context: Context, row: Row) -> Plan:
    found = read(context, "ducklake_snapshot", snapshot_id=row["id"])
    if len({(one["schema_version"]) for one in found}) > 1:
        raise NoRepairError("the rows have other schema versions")
    last = max(found, key=lambda one: (_number(one["next_file_id"]), _number(one["next_catalog_id"])))
    kept = {**last, "next_catalog_id": max(_number(one["next_catalog_id"]) for one in found)}
    return Plan(replaced("ducklake_snapshot", found, [kept]))


def _keep_equal(table: str, found: list[Record]) -> Plan:
    kept = _unique(found)
    if len(kept) > 1:
        raise NoRepairError("the rows differ, and which is right is not known")
    return Plan(replaced(table, found, kept))


def keep_one_change(context: Context, row: Row) -> Plan:
    return _keep_equal("ducklake_snapshot_changes", read(context, "ducklake_snapshot_changes", snapshot_id=row["id"]))


def keep_one_option(context: Context, row: Row) -> Plan:
    return _keep_equal("ducklake_metadata", read(context, "ducklake_metadata", key=row["id"], scope=None))


def add_changes(_: Context, row: Row) -> Plan:
    new: Record = {
        "snapshot_id": row["id"],
        "changes_made": "",
        "author": None,
        "commit_message": "The row of this snapshot was missing; what it changed is not known.",
        "commit_extra_info": None,
    }
    return Plan([Change("ducklake_snapshot_changes", None, new)])


def drop_changes(context: Context, row: Row) -> Plan:
    found = _unique(read(context, "ducklake_snapshot_changes", snapshot_id=row["id"]))
    return Plan([Change("ducklake_snapshot_changes", record, None) for record in found])


def count_on(context: Context, _: Row) -> Plan:
    (snapshots,) = context.rows(
        "SELECT max(next_file_id) AS files, max(next_catalog_id) AS entries FROM ducklake_snapshot"
    )
    (used,) = context.rows(
        "SELECT (SELECT max(data_file_id) FROM ducklake_data_file) AS d, (SELECT max(delete_file_id) FROM ducklake_delete_file) "
        "AS e, (SELECT max(schema_id) FROM ducklake_schema) AS s, (SELECT max(table_id) FROM ducklake_table) AS t, "
        "(SELECT max(view_id) FROM ducklake_view) AS v, (SELECT max(macro_id) FROM ducklake_macro) AS m, "
        "(SELECT max(partition_id) FROM ducklake_partition_info) AS p"
    )

    def beyond(*names: str) -> int:
        return max((_number(used[name]) + 1 for name in names if used[name] is not None), default=0)

    return Plan(
        next_file_id=max(_number(snapshots["files"]), beyond("d", "e")),
        next_catalog_id=max(_number(snapshots["entries"]), beyond("s", "t", "v", "m", "p")),
    )


def add_version(context: Context, row: Row) -> Plan:
    (found,) = context.rows(
        f"SELECT min(begin_snapshot) AS begin_snapshot FROM ducklake_table WHERE table_id = {_number(row['table_id']):d}"
    )
    return _version_row(context, row, _number(found["begin_snapshot"]))


def add_version_of_change(context: Context, row: Row) -> Plan:
    return _version_row(context, row, _number(row["id"]))


def _version_row(context: Context, row: Row, begin: int) -> Plan:
    found = context.rows(
        f"SELECT max(schema_version) AS schema_version FROM ducklake_snapshot WHERE snapshot_id = {begin:d}"
    )
    if found[0]["schema_version"] is None:
        raise NoRepairError(f"snapshot {begin} has expired, and with it the schema version that began then")
    new: Record = {
        "begin_snapshot": begin,
        "schema_version": found[0]["schema_version"],
        "table_id": row["table_id"],
    }
    return Plan([Change("ducklake_schema_versions", None, new)], _of(row, "table_id"))


def keep_first_version(context: Context, row: Row) -> Plan:
    found = read(context, "ducklake_schema_versions", table_id=row["table_id"], schema_version=row["id"])
    first = min(found, key=lambda one: _number(one["begin_snapshot"]))
    return Plan(replaced("ducklake_schema_versions", found, [first]), _of(row, "table_id"))


def drop_versions(context: Context, row: Row) -> Plan:
    found = _unique(read(context, "ducklake_schema_versions", table_id=row["id"]))
    return Plan([Change("ducklake_schema_versions", record, None) for record in found])


# Entries


def _versions(context: Context, row: Row) -> tuple[str, list[Record]]:
    table = str(row["of_table"])
    key = {
        "ducklake_data_file": "data_file_id",
        "ducklake_delete_file": "delete_file_id",
        "ducklake_partition_info": "partition_id",
        "ducklake_sort_info": "sort_id",
    }.get(table, f"{table.removeprefix('ducklake_')}_id")
    where: dict[str, object] = {key: row["id"]}
    if table == "ducklake_column":
        where["table_id"] = row["table_id"]
    return table, read(context, table, **where)


def end_never(context: Context, row: Row) -> Plan:
    table, found = _versions(context, row)
    wrong = [
        one for one in found if one["begin_snapshot"] == row["first_one"] and one["end_snapshot"] == row["last_one"]
    ]
    if any(_number(one["begin_snapshot"]) > _number(row["first_one"]) for one in found):
        raise NoRepairError("a later version of it begins, at which it may have to end")
    return Plan([update(table, one, end_snapshot=None) for one in _unique(wrong)], _touched(row))


def end_version(context: Context, row: Row) -> Plan:
    table, found = _versions(context, row)
    first = only([one for one in found if one["begin_snapshot"] == row["first_one"]], f"{row['kind']} {row['id']}")
    only([one for one in found if one["begin_snapshot"] == row["other"]], f"{row['kind']} {row['id']}")
    begins = [_number(one["begin_snapshot"]) for one in found]
    following = min(begin for begin in begins if begin > _number(row["first_one"]))
    return Plan([update(table, first, end_snapshot=following)], _touched(row))


def keep_one_version(context: Context, row: Row) -> Plan:
    table, found = _versions(context, row)
    same = [one for one in found if one["begin_snapshot"] == row["first_one"]]
    kept = _unique(same)
    if len(kept) > 1:
        raise NoRepairError("the rows differ, and which is right is not known")
    plan = Plan(replaced(table, same, kept), _touched(row))
    return plan


def end_partitioning(context: Context, row: Row) -> Plan:
    one = only(read(context, "ducklake_partition_info", partition_id=row["id"]), f"partitioning {row['id']}")
    other = only(read(context, "ducklake_partition_info", partition_id=row["other"]), f"partitioning {row['other']}")
    first, second = sorted((one, other), key=lambda found: _number(found["begin_snapshot"]))
    if first["begin_snapshot"] == second["begin_snapshot"]:
        raise NoRepairError("both begin with one snapshot")
    return Plan([update("ducklake_partition_info", first, end_snapshot=second["begin_snapshot"])], _touched(row))


def _touched(row: Row) -> int | None:
    return None if row["table_id"] is None else _number(row["table_id"])


# Inlined rows


def name_inlined_table(context: Context, row: Row) -> Plan:
    name, table_id = str(row["name"]), _number(row["table_id"])
    _, version = context.data_tables[name]
    columns = versioned_columns(context, table_id, version)
    there = set(versions.version.columns_of(context.connection, name))
    if columns is None or there != {*context.inlined_columns, *columns}:
        raise NoRepairError("its columns are not those that the table had at that schema version")
    row_id, begin, _ = context.inlined_columns
    used = context.rows(
        f"SELECT 1 FROM ducklake_data_file AS f WHERE f.partial_max IS NOT NULL AND f.table_id = {table_id:d}"
    )
    (ids,) = context.rows(
        f"SELECT min({row_id}) AS low, max({row_id}) AS high, max({begin}) AS last FROM {quote_identifier(name)}"
    )
    low, high = _number(ids["low"]), _number(ids["high"])
    ranged = context.rows(
        f"SELECT 1 FROM ducklake_data_file AS f WHERE f.table_id = {table_id:d} AND (f.row_id_start IS NULL "
        f"OR (f.row_id_start <= {high:d} AND f.row_id_start + f.record_count > {low:d}))"
    )
    if used or ranged:
        raise NoRepairError("files may hold its rows already, since a flush writes them there")
    if _number(ids["last"]) > context.newest:
        raise NoRepairError("some of its rows begin with a snapshot that is yet to come")
    new: Record = {"table_id": table_id, "table_name": name, "schema_version": version}
    return Plan([Change("ducklake_inlined_data_tables", None, new)], table_id)


def versioned_columns(context: Context, table_id: int, version: int) -> list[str] | None:
    """Return the names of the columns that inlined rows of a schema version have; None where the catalog does not say."""
    try:
        begin = inlined._begin_of_version(context.connection, table_id, version)
    except CatalogError:
        return None
    return [column.name for column in read_columns(context.connection, table_id, begin)]


def drop_inlined_name(context: Context, row: Row) -> Plan:
    name = str(row["name"])
    if name in context.data_tables and context.rows(f"SELECT 1 FROM {quote_identifier(name)} LIMIT 1"):
        raise NoRepairError("it holds rows, and may be the only copy")
    found = _unique(read(context, "ducklake_inlined_data_tables", table_id=row["id"], table_name=name))
    return Plan([Change("ducklake_inlined_data_tables", record, None) for record in found])


def name_once(context: Context, row: Row) -> Plan:
    found = read(context, "ducklake_inlined_data_tables", table_id=row["table_id"], table_name=row["name"])
    known = context.data_tables.get(str(row["name"]))
    kept = [one for one in _unique(found) if known is None or one["schema_version"] == known[1]]
    return Plan(replaced("ducklake_inlined_data_tables", found, kept[:1] or found[:1]), _of(row, "table_id"))


def inlined_end_never(context: Context, row: Row) -> Plan:
    name = str(row["name"])
    _, begin, end = context.inlined_columns
    sql = f"UPDATE {quote_identifier(name)} SET {end} = NULL WHERE {end} > {NEWEST} AND {begin} <= {NEWEST}"
    return Plan(table_id=_of(row, "table_id"), statements=[Statement(name, sql, f"let {row['n']} inlined rows go on")])


def drop_dead_rows(context: Context, row: Row) -> Plan:
    name = str(row["name"])
    _, begin, end = context.inlined_columns
    sql = f"DELETE FROM {quote_identifier(name)} WHERE {dead_condition(begin, end)}"
    statement = Statement(name, sql, f"remove {row['n']} rows that no snapshot sees")
    return Plan(table_id=_of(row, "table_id"), statements=[statement])


# Paths


def _file(context: Context, row: Row) -> tuple[str, Record]:
    table, key = _FILES[str(row["kind"])]
    return table, only(read(context, table, **{key: row["id"]}), f"{row['kind']} {row['id']}")


def straighten(context: Context, row: Row) -> Plan:
    table, record = _file(context, row)
    old = context.place(_touched(row), str(record["path"]), record["path_is_relative"])
    new = plain_path(old)
    if not context.storage.exists(old):
        raise NoRepairError(f"there is no file {old}")
    if is_local(old) and os.path.realpath(old) != os.path.realpath(new):
        raise NoRepairError("symbolic links on its way lead elsewhere")
    folder = context.folders.get(_touched(row) or -1, context.lake.data_path)
    inside = new.startswith(folder)
    change = update(table, record, path=new[len(folder) :] if inside else new, path_is_relative=inside)
    if change.old == change.new:
        raise NoRepairError("the folder above it is spelled so, not the file")
    return Plan([change], _touched(row))


def plain_path(path: str) -> str:
    """Return a path without `.`, `..` and doubled slashes."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return os.path.normpath(path) + ("/" if path.endswith("/") and os.path.normpath(path) != "/" else "")
    host, slash, key = rest.partition("/")
    plain = os.path.normpath("/" + key).lstrip("/") + ("/" if key.endswith("/") else "")
    return f"{scheme}://{host}{slash}{plain}"


def mark_absolute(context: Context, row: Row) -> Plan:
    return _marked(context, row, relative=False)


def mark_relative(context: Context, row: Row) -> Plan:
    return _marked(context, row, relative=True)


def _marked(context: Context, row: Row, *, relative: bool) -> Plan:
    table, record = _file(context, row)
    path = context.place(_touched(row), str(record["path"]), relative)
    found = context.storage.sizes([path])[path]
    if found is None or found != record["file_size_bytes"]:
        raise NoRepairError(f"there is no file {path} of {record['file_size_bytes']} bytes")
    return Plan([update(table, record, path_is_relative=relative)], _touched(row))


def add_slash(context: Context, row: Row) -> Plan:
    table = f"ducklake_{row['kind']}"
    found = read(context, table, **{f"{row['kind']}_id": row["id"]})
    if row["kind"] != "table":
        raise NoRepairError("tables below it may lie in either folder")
    files = read(context, "ducklake_data_file", table_id=row["id"], path_is_relative=True)
    folder = context.folders[_number(row["id"])]
    without = context.storage.sizes(folder + str(file["path"]) for file in files)
    inside = context.storage.sizes(f"{folder}/{file['path']}" for file in files)
    if any(size is not None for size in without.values()) or any(size is None for size in inside.values()):
        raise NoRepairError(f"not all files are in {folder}/")
    changes = [update(table, one, path=f"{one['path']}/") for one in found if one["path"] == row["path"]]
    return Plan(changes, _number(row["id"]))


def straighten_data_path(context: Context, row: Row) -> Plan:
    old = str(row["path"])
    new = plain_path(old)
    if not is_local(old):
        raise NoRepairError(
            "keys of object stores may hold these signs; move the files, and attach with override_data_path"
        )
    if os.path.realpath(old) != os.path.realpath(new):
        raise NoRepairError("symbolic links on its way lead elsewhere")
    found = read(context, "ducklake_metadata", key="data_path", scope=None)
    return Plan([update("ducklake_metadata", only(found, "data_path"), value=new)])
