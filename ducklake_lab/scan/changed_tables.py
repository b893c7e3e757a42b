"""Tables that snapshots may have changed: by `changes_made`, or by begins and ends of rows where some expired."""

from __future__ import annotations

from bisect import bisect_right

import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_changes
from ducklake_lab.model.changes import MAINTENANCE, parse_changes

#: Columns with the ids of tables, in rows that say which files, columns, keys and tags a table has, and since when.
_VERSIONED = (
    *(each.c.table_id for each in (t.data_file, t.delete_file, t.table, t.column)),
    *(t.partition_info.c.table_id, t.sort_info.c.table_id, t.column_tag.c.table_id, t.tag.c.object_id),
)


class ChangesAfter:
    """Snapshots after one, up to another, by the tables that they changed; those that rewrote files do not count."""

    def __init__(self, connection: sa.Connection, start: int, end: int) -> None:
        history = read_changes(connection, (start + 1, end)) if end > start else []
        self._end = end
        self._snapshots = [number for number, changes in history if changes is not None]
        self._of_tables: dict[int, list[int]] = {}
        self._kinds: dict[int, dict[int, set[str]]] = {}
        self._texts = {number: changes or "" for number, changes in history}
        for number, changes in history:
            for change in parse_changes(changes):
                if not isinstance(change.value, int):
                    continue
                self._kinds.setdefault(change.value, {}).setdefault(number, set()).add(change.kind)
                if change.kind not in MAINTENANCE:
                    snapshot_ids = self._of_tables.setdefault(change.value, [])
                    if snapshot_ids[-1:] != [number]:
                        snapshot_ids.append(number)

    def snapshots(self, since: int) -> list[int]:
        """Return all snapshots after one, ascending."""
        return self._snapshots[bisect_right(self._snapshots, since) :]

    def kinds(self, table_id: int, since: int) -> dict[int, set[str]]:
        """Return the kinds of changes of a table by snapshot, those that rewrote files included."""
        return {number: kinds for number, kinds in self._kinds.get(table_id, {}).items() if number > since}

    def texts(self, table_id: int, since: int) -> dict[int, str]:
        """Return the changes of the snapshots of `kinds` as the catalog has them."""
        return {number: self._texts[number] for number in self.kinds(table_id, since)}

    @property
    def tables(self) -> set[int]:
        """The ids of all tables that changed; those of other entries too."""
        return set(self._of_tables)

    def count(self, table_id: int, since: int) -> int:
        """Return the number of snapshots after `since` that changed a table."""
        snapshot_ids = self._of_tables.get(table_id, [])
        return len(snapshot_ids) - bisect_right(snapshot_ids, since)

    def is_whole(self, since: int) -> bool:
        """Whether the changes of all snapshots after `since` are there: none has expired."""
        return len(self._snapshots) - bisect_right(self._snapshots, since) == max(self._end - since, 0)


def touched_tables(lake: Lake, connection: sa.Connection, start: int, end: int) -> set[int]:
    """Return the ids of tables that snapshots after `start`, up to `end`, may have changed; not of tables they made.

    Expired snapshots do not say what they changed. Then tables count whose files, columns, keys or tags began or ended
    since `start`, and tables with inlined rows. The result may hold ids of other entries with such tags.
    """
    changes = ChangesAfter(connection, start, end)
    touched = changes.tables
    if changes.is_whole(start):
        return touched
    for table_id in _VERSIONED:
        c = table_id.table.c
        in_between = sa.or_(c.begin_snapshot.between(start + 1, end), c.end_snapshot.between(start + 1, end))
        touched |= set(connection.execute(sa.select(table_id).where(in_between).distinct()).scalars())
    touched |= set(connection.execute(sa.select(t.inlined_data_tables.c.table_id).distinct()).scalars())
    return touched | set(inlined_deletions.tables(connection, lake.database))
