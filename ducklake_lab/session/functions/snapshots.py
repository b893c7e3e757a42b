"""snapshots, current_snapshot, last_committed_snapshot."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.model.changes import parse_changes
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.quoting import quoted_if_needed
from ducklake_lab.model.types import DataType
from ducklake_lab.session.functions.registry import (
    BIGINT,
    TIMESTAMPTZ,
    UBIGINT,
    VARCHAR,
    Call,
    Columns,
    Function,
    rows_of,
)

_CHANGE_LIST = DataType("list", (("element", VARCHAR),))
SNAPSHOTS: Columns = (
    ("snapshot_id", BIGINT),
    ("snapshot_time", TIMESTAMPTZ),
    ("schema_version", BIGINT),
    ("changes", DataType("map", (("key", VARCHAR), ("value", _CHANGE_LIST)))),
    ("author", VARCHAR),
    ("commit_message", VARCHAR),
    ("commit_extra_info", VARCHAR),
)
_ID: Columns = (("id", UBIGINT),)

#: Kinds in `changes_made`, in the order and with the labels of snapshots().
_CHANGE_NAMES = {
    "created_schema": "schemas_created",
    "dropped_schema": "schemas_dropped",
    "created_table": "tables_created",
    "created_view": "views_created",
    "created_scalar_macro": "scalar_macros_created",
    "created_table_macro": "table_macros_created",
    "dropped_table": "tables_dropped",
    "altered_table": "tables_altered",
    "inserted_into_table": "tables_inserted_into",
    "deleted_from_table": "tables_deleted_from",
    "dropped_view": "views_dropped",
    "dropped_scalar_macro": "scalar_macros_dropped",
    "dropped_table_macro": "table_macros_dropped",
    "altered_view": "views_altered",
    "inlined_insert": "inlined_insert",
    "inlined_delete": "inlined_delete",
    "inline_flush": "flushed_inlined",
    "flushed_inlined": "flushed_inlined",
    "merge_adjacent": "merge_adjacent",
    "rewrite_delete": "rewrite_delete",
}


def _snapshots(call: Call) -> pa.Table:
    with call.lake.connect() as connection:
        newest = call.lake.snapshot(connection).snapshot_id
        history = [info for info in read_history(connection) if info.snapshot_id <= newest]
    transaction = call.lakes.transaction
    expired = transaction.expired if transaction is not None and transaction.lake is call.lake else ()
    return history_rows(info for info in history if info.snapshot_id not in expired)


def history_rows(history: Iterable[SnapshotInfo]) -> pa.Table:
    """Returns snapshots in the form of snapshots()."""
    rows = []
    for info in history:
        changes: dict[str, list[str]] = {}
        parsed = parse_changes(info.changes_made)
        for kind, label in _CHANGE_NAMES.items():
            for change in parsed:
                if change.kind == kind:
                    value = (
                        change.value if isinstance(change.value, int) else ".".join(map(quoted_if_needed, change.value))
                    )
                    changes.setdefault(label, []).append(str(value))
        rows.append(
            (
                info.snapshot_id,
                info.snapshot_time,
                info.schema_version,
                list(changes.items()),
                info.author,
                info.commit_message,
                info.commit_extra_info,
            )
        )
    return rows_of(SNAPSHOTS, rows)


def _current_snapshot(call: Call) -> pa.Table:
    return rows_of(_ID, [(call.lakes.state(call.lake).snapshot.snapshot_id,)])


def _last_committed_snapshot(call: Call) -> pa.Table:
    """Returns the newest snapshot that this attachment of the lake committed; NULL if there is none."""
    return rows_of(_ID, [(call.lake.last_committed,)])


FUNCTIONS = (
    Function("snapshots", SNAPSHOTS, _snapshots),
    Function("current_snapshot", _ID, _current_snapshot),
    Function("last_committed_snapshot", _ID, _last_committed_snapshot),
)
