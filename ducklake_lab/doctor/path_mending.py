"""Repairs of paths."""

from __future__ import annotations

import os.path

from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.plan import (
    NoRepairError,
    Plan,
    Record,
    number,
    only,
    read,
    table_of_hit,
    update,
)
from ducklake_lab.file_paths import is_local

_FILES = {
    "data file": ("ducklake_data_file", "data_file_id"),
    "delete file": ("ducklake_delete_file", "delete_file_id"),
}


def _file(context: Context, row: Row) -> tuple[str, Record]:
    table, key = _FILES[str(row["kind"])]
    return table, only(read(context, table, **{key: row["id"]}), f"{row['kind']} {row['id']}")


def straighten(context: Context, row: Row) -> Plan:
    table, record = _file(context, row)
    old = context.place(table_of_hit(row), str(record["path"]), record["path_is_relative"])
    new = plain_path(old)
    if not context.storage.exists(old):
        raise NoRepairError(f"there is no file {old}")
    if is_local(old) and os.path.realpath(old) != os.path.realpath(new):
        raise NoRepairError("symbolic links on its way lead elsewhere")
    folder = context.folders.get(table_of_hit(row) or -1, context.lake.data_path)
    inside = new.startswith(folder)
    change = update(table, record, path=new[len(folder) :] if inside else new, path_is_relative=inside)
    if change.old == change.new:
        raise NoRepairError("the folder above it is spelled so, not the file")
    return Plan([change], table_of_hit(row))


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
    path = context.place(table_of_hit(row), str(record["path"]), relative)
    size = context.storage.sizes([path])[path]
    if size is None or size != record["file_size_bytes"]:
        raise NoRepairError(f"there is no file {path} of {record['file_size_bytes']} bytes")
    return Plan([update(table, record, path_is_relative=relative)], table_of_hit(row))


def add_slash(context: Context, row: Row) -> Plan:
    table = f"ducklake_{row['kind']}"
    records = read(context, table, **{f"{row['kind']}_id": row["id"]})
    if row["kind"] != "table":
        raise NoRepairError("tables below it may lie in either folder")
    files = read(context, "ducklake_data_file", table_id=row["id"], path_is_relative=True)
    folder = context.folders[number(row["id"])]
    without = context.storage.sizes(folder + str(file["path"]) for file in files)
    inside = context.storage.sizes(f"{folder}/{file['path']}" for file in files)
    if any(size is not None for size in without.values()) or any(size is None for size in inside.values()):
        raise NoRepairError(f"not all files are in {folder}/")
    changes = [update(table, one, path=f"{one['path']}/") for one in records if one["path"] == row["path"]]
    return Plan(changes, number(row["id"]))


def straighten_data_path(context: Context, row: Row) -> Plan:
    old = str(row["path"])
    new = plain_path(old)
    if not is_local(old):
        raise NoRepairError(
            "keys of object stores may hold these signs; move the files, and attach with override_data_path"
        )
    if os.path.realpath(old) != os.path.realpath(new):
        raise NoRepairError("symbolic links on its way lead elsewhere")
    records = read(context, "ducklake_metadata", key="data_path", scope=None)
    return Plan([update("ducklake_metadata", only(records, "data_path"), value=new)])
