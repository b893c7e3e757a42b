"""Tables that snapshots may have changed: by `changes_made`, or by begins and ends of rows where some expired."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import inlined
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history
from ducklake_lab.model.changes import parse_changes

#: Changes after which a table has the same rows and columns.
_MAINTENANCE = frozenset(("inline_flush", "flushed_inlined", "compacted_table", "merge_adjacent", "rewrite_delete"))
#: Rows that say which files, columns and keys a table has, and since when.
_VERSIONED = (t.data_file, t.delete_file, t.table, t.column, t.partition_info, t.sort_info, t.column_tag)


def touched_tables(lake: Lake, connection: sa.Connection, start: int, end: int) -> set[int]:
    """Return the ids of tables that snapshots after `start`, up to `end`, may have changed; not of tables they made.

    Where some of these snapshots have expired, it is every table of which files, columns or keys are younger than
    `start` or ended since, and every table that has inlined rows.
    """
    history = read_history(connection, None, (start + 1, end))
    touched = {
        change.value
        for info in history
        for change in parse_changes(info.changes_made)
        if isinstance(change.value, int) and change.kind not in _MAINTENANCE
    }
    if len(history) == end - start:
        return touched
    for versioned in _VERSIONED:
        c = versioned.c
        in_between = sa.or_(c.begin_snapshot.between(start + 1, end), c.end_snapshot.between(start + 1, end))
        touched |= set(connection.execute(sa.select(c.table_id).where(in_between).distinct()).scalars())
    touched |= set(connection.execute(sa.select(t.inlined_data_tables.c.table_id).distinct()).scalars())
    return touched | set(inlined.delete_tables(connection, lake.database))
