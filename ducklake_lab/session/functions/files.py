"""list_files: the data files of a table with their delete files."""

from __future__ import annotations

from datetime import date

import pyarrow as pa

from ducklake_lab.duckdb.zones import instant
from ducklake_lab.errors import UsageError
from ducklake_lab.scan.encryption import key_bytes
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.session.functions.registry import BLOB, NAMED_ZONE, UBIGINT, VARCHAR, Call, Columns, Function, rows_of

_LIST_FILES: Columns = tuple(
    (f"{file}{suffix}", kind)
    for file in ("data_file", "delete_file")
    for suffix, kind in (
        ("", VARCHAR),
        ("_size_bytes", UBIGINT),
        ("_footer_size", UBIGINT),
        ("_encryption_key", BLOB),
    )
)


def _list_files(call: Call) -> pa.Table:
    if call.named("snapshot_version") is not None and call.named("snapshot_time") is not None:
        raise UsageError("list_files takes snapshot_version or snapshot_time, not both.")
    at = call.named("snapshot_version", call.named("snapshot_time"))
    if isinstance(at, date | str):
        at = instant(at, NAMED_ZONE)
    state = call.lakes.state(call.lake, at)
    table = state.table_in_text(str(call.named("schema", call.schema)), str(call.args[0]))
    with call.lake.connect() as connection:
        plan = plan_scan(call.lake, connection, state, table)
    rows = []
    for file in plan.files:
        delete = file.delete_file
        rows.append(
            (
                file.path,
                file.data_file.file_size_bytes,
                file.data_file.footer_size,
                _key(file.data_file.encryption_key, file.path),
                file.delete_path,
                delete.file_size_bytes if delete is not None else None,
                delete.footer_size if delete is not None else None,
                _key(delete.encryption_key, file.path) if delete is not None else None,
            )
        )
    return rows_of(_LIST_FILES, rows)


def _key(key: str | None, path: str) -> bytes | None:
    return key_bytes(key, path) if key else None


FUNCTIONS = (
    Function(
        "list_files",
        _LIST_FILES,
        _list_files,
        arguments=(1, 1),
        named=("schema", "snapshot_version", "snapshot_time"),
    ),
)
