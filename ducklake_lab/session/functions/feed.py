"""table_changes, table_insertions, table_deletions: calls that an engine answers with rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import UsageError
from ducklake_lab.session.functions.registry import BIGINT, VARCHAR, Call, Columns, Function

At = int | datetime


@dataclass(frozen=True, slots=True)
class FeedCall:
    """A call of one of the three functions; both bounds are inclusive."""

    name: str
    lake: Lake
    schema: str
    table: str
    start: At
    end: At


def _feed(call: Call) -> FeedCall:
    # ducklake_table_changes takes the schema before the table
    schema, table, start, end = call.args if len(call.args) == 4 else (call.schema, *call.args)
    schema = str(call.named("schema", schema))
    start, end = (call.lake.instant(bound) if isinstance(bound, date) else bound for bound in (start, end))
    for bound in (start, end):
        if not isinstance(bound, int | datetime) or isinstance(bound, bool):
            raise UsageError(f"{call.name} takes snapshot ids or timestamps as bounds, not {bound!r}.")
    return FeedCall(call.name, call.lake, schema, str(table), start, end)


def _columns(call: Call) -> Columns:
    feed = _feed(call)
    table = call.lakes.state(feed.lake, feed.end).table_in_text(feed.schema, feed.table)
    own = tuple((column.name, column.data_type) for column in table.columns)
    if feed.name != "table_changes":
        return own  # the table functions also offer the virtual columns rowid and snapshot_id
    return (("snapshot_id", BIGINT), ("rowid", BIGINT), ("change_type", VARCHAR), *own)


FUNCTIONS = tuple(
    Function(name, _columns, _feed, arguments=(3, 4), named=("schema",))
    for name in ("table_changes", "table_insertions", "table_deletions")
)
