"""The table functions of a lake: `FROM lake.snapshots()` and `FROM ducklake_snapshots('lake')`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history
from ducklake_lab.errors import EntryNotFoundError, UsageError, did_you_mean
from ducklake_lab.model.changes import parse_changes
from ducklake_lab.model.entries import Table
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.session.lakes import Lakes

Columns = tuple[tuple[str, DataType], ...]

_BIGINT, _UBIGINT, _VARCHAR = DataType("int64"), DataType("uint64"), DataType("varchar")
_CHANGE_LIST = DataType("list", (("element", _VARCHAR),))

_SNAPSHOTS: Columns = (
    ("snapshot_id", _BIGINT),
    ("snapshot_time", DataType("timestamptz")),
    ("schema_version", _BIGINT),
    ("changes", DataType("map", (("key", _VARCHAR), ("value", _CHANGE_LIST)))),
    ("author", _VARCHAR),
    ("commit_message", _VARCHAR),
    ("commit_extra_info", _VARCHAR),
)
_LIST_FILES: Columns = tuple(
    (f"{file}{suffix}", kind)
    for file in ("data_file", "delete_file")
    for suffix, kind in (
        ("", _VARCHAR),
        ("_size_bytes", _UBIGINT),
        ("_footer_size", _UBIGINT),
        ("_encryption_key", DataType("blob")),
    )
)
_CHANGES: Columns = (("snapshot_id", _BIGINT), ("rowid", _BIGINT))

#: Kinds of `changes_made` in the order and under the names in which snapshots() lists them.
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


@dataclass(frozen=True, slots=True)
class FeedCall:
    """A call of table_changes, table_insertions or table_deletions: rows of a table, so Spark's to read."""

    name: str
    lake: Lake
    schema: str
    table: str
    start: At
    end: At


At = int | datetime


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    lake: Lake
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def only(self, *names: str) -> None:
        """Raises UsageError for a named argument that the function does not have."""
        for name in self.kwargs:
            if name not in names:
                raise UsageError(f"{self.name} has no argument {name}.{did_you_mean(name, names)}")

    def count(self, low: int, high: int) -> None:
        if not low <= len(self.args) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise UsageError(f"{self.name} takes {wanted} arguments; it was given {len(self.args)}.")


class Functions:
    """Finds and evaluates the table functions of the attached lakes."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes
        self._metadata: dict[str, tuple[Columns, Callable[[_Call], pa.Table]]] = {
            "snapshots": (_SNAPSHOTS, self._snapshots),
            "current_snapshot": ((("id", _UBIGINT),), self._current_snapshot),
            "last_committed_snapshot": ((("id", _UBIGINT),), self._current_snapshot),
            "list_files": (_LIST_FILES, self._list_files),
        }
        self._feeds = ("table_changes", "table_insertions", "table_deletions")

    def columns(
        self, catalog: str | None, schema: str | None, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Columns | None:
        """The columns of a function's result; None where it is no function of a lake."""
        call = self._call(catalog, schema, name, args, kwargs)
        if call is None:
            return None
        if call.name in self._metadata:
            return self._metadata[call.name][0]
        feed = self._feed(call)
        table = self._feed_table(feed)
        kind: Columns = (("change_type", _VARCHAR),) if feed.name == "table_changes" else ()
        return (*_CHANGES, *kind, *((column.name, column.data_type) for column in table.columns))

    def evaluate(
        self, catalog: str | None, schema: str | None, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> pa.Table | FeedCall:
        """The result of a metadata function, or what to read for a change feed."""
        call = self._call(catalog, schema, name, args, kwargs)
        if call is None:
            raise EntryNotFoundError(f"There is no table function {name}.")
        if call.name in self._metadata:
            return self._metadata[call.name][1](call)
        return self._feed(call)

    def _call(
        self, catalog: str | None, schema: str | None, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> _Call | None:
        known = [*self._metadata, *self._feeds]
        alias = catalog or schema
        short = name.casefold()
        if alias is None:
            short = short.removeprefix("ducklake_")
            if short == name.casefold() or short not in known:
                return None
            if not args or not isinstance(args[0], str):
                raise UsageError(f"The first argument of {name} is the name of a lake, e.g. {name}('lake').")
            return _Call(short, self._lakes.get(args[0]), tuple(args[1:]), kwargs)
        lake = self._lakes.find(alias)
        if lake is None:
            return None
        if short not in known:
            raise EntryNotFoundError(f"The lake {lake.alias} has no function {name}.{did_you_mean(short, known)}")
        return _Call(short, lake, tuple(args), kwargs)

    def _snapshots(self, call: _Call) -> pa.Table:
        call.only()
        call.count(0, 0)
        with call.lake.connect() as connection:
            newest = call.lake.snapshot(connection).snapshot_id
            history = [info for info in read_history(connection) if info.snapshot_id <= newest]
        rows = []
        for info in history:
            changes: dict[str, list[str]] = {}
            parsed = parse_changes(info.changes_made)
            for kind, label in _CHANGE_NAMES.items():
                for change in parsed:
                    if change.kind == kind:
                        value = change.value if isinstance(change.value, int) else ".".join(change.value)
                        changes.setdefault(label, []).append(str(value))
            rows.append(
                {
                    "snapshot_id": info.snapshot_id,
                    "snapshot_time": info.snapshot_time,
                    "schema_version": info.schema_version,
                    "changes": list(changes.items()),
                    "author": info.author,
                    "commit_message": info.commit_message,
                    "commit_extra_info": info.commit_extra_info,
                }
            )
        return pa.Table.from_pylist(rows, arrow_schema(_SNAPSHOTS))

    def _current_snapshot(self, call: _Call) -> pa.Table:
        call.only()
        call.count(0, 0)
        state = self._lakes.state(call.lake)
        return pa.table({"id": pa.array([state.snapshot.snapshot_id], pa.uint64())})

    def _list_files(self, call: _Call) -> pa.Table:
        call.only("schema", "snapshot_version", "snapshot_time")
        call.count(1, 1)
        at = call.kwargs.get("snapshot_version", call.kwargs.get("snapshot_time"))
        state = self._lakes.state(call.lake, at)
        table = state.table(str(call.kwargs.get("schema", "main")), str(call.args[0]))
        with call.lake.connect() as connection:
            plan = plan_scan(call.lake, connection, state, table)
        rows = [
            {
                "data_file": file.path,
                "data_file_size_bytes": file.data_file.file_size_bytes,
                "data_file_footer_size": file.data_file.footer_size,
                "delete_file": file.delete_path,
                "delete_file_size_bytes": file.delete_file.file_size_bytes if file.delete_file else None,
                "delete_file_footer_size": file.delete_file.footer_size if file.delete_file else None,
            }
            for file in plan.files
        ]
        return pa.Table.from_pylist(rows, arrow_schema(_LIST_FILES))

    def _feed(self, call: _Call) -> FeedCall:
        call.only("schema")
        call.count(3, 4)
        # the function form names the schema before the table
        schema, table, start, end = call.args if len(call.args) == 4 else ("main", *call.args)
        schema = str(call.kwargs.get("schema", schema))
        for bound in (start, end):
            if not isinstance(bound, int | datetime) or isinstance(bound, bool):
                raise UsageError(f"{call.name} takes snapshot ids or timestamps as bounds, not {bound!r}.")
        return FeedCall(call.name, call.lake, schema, str(table), start, end)

    def _feed_table(self, feed: FeedCall) -> Table:
        return self._lakes.state(feed.lake, feed.end).table(feed.schema, feed.table)


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([pa.field(name, data_type.arrow()) for name, data_type in columns])
