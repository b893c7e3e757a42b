"""Changes of the tables of a live table since the snapshot that its rows stand at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_changes
from ducklake_lab.model.changes import FLUSHES, OF_ROWS, REWRITES, Change, parse_changes
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.state import CatalogState

#: Kinds of changes after which a change feed lacks rows of a table.
_OF_TABLES = frozenset(("dropped_table", "created_table"))


@dataclass(frozen=True, slots=True)
class SinceThen:
    """Changes of the snapshots after one, up to another one, by snapshot id.

    Attributes:
        first: the snapshot before them.
        last: the last of them.
    """

    first: int
    last: int
    changes: dict[int, list[Change]]

    def of_rows(self, table_id: int, without: Collection[int] = ()) -> list[int]:
        """Returns the snapshots that changed rows of a table."""
        wanted = (snapshot for snapshot in self.changes if snapshot not in without)
        return [i for i in wanted if any(c.value == table_id and c.kind in OF_ROWS for c in self.changes[i])]

    def may_flush(self, snapshot_id: int, table_id: int) -> bool:
        """Returns whether a snapshot that deleted rows of a table may only have written earlier deletions to files."""
        kinds = {change.kind for change in self.changes[snapshot_id] if change.value == table_id}
        return kinds <= {"deleted_from_table", *FLUSHES}

    def tables(self) -> set[int]:
        """Returns the ids of tables that were changed."""
        return {c.value for changes in self.changes.values() for c in changes if isinstance(c.value, int)}

    def unclear(self, table_id: int) -> int | None:
        """Returns the first snapshot whose changed rows the change feed lacks; None if it has all."""
        for snapshot_id, changes in self.changes.items():
            kinds = {change.kind for change in changes if change.value == table_id}
            if kinds & _OF_TABLES or (kinds & REWRITES and kinds & OF_ROWS):
                return snapshot_id
        return None


def since(lake: Lake, first: int, last: int) -> SinceThen | None:
    """Returns the changes after a snapshot; None if that snapshot, or a later one, has expired."""
    with lake.connect() as connection:
        history = read_changes(connection, (first, last))
    if len(history) != last - first + 1:
        return None
    return SinceThen(first, last, {i: parse_changes(text) for i, text in history if i > first})


def _shapes(table: Table) -> list[Column]:
    """Returns the columns of a table without their comments."""
    return [replace(column, comment=None) for column in table.columns]


def reason_to_recompute(history: SinceThen, before: CatalogState, now: CatalogState, table: Table) -> str | None:
    """Returns why the change feed of a source lacks its changes; None if it has them.

    Args:
        before: the entries at the snapshot that the rows stand at.
    """
    title = now.qualified_name(table)
    old = before.tables.get(table.table_id)
    if old is None or old.uuid != table.uuid:
        return f"{title} is another table than before"
    if _shapes(old) != _shapes(table):
        return f"the columns of {title} have changed"
    unclear = history.unclear(table.table_id)
    if unclear is not None:
        return f"snapshot {unclear} changed and rewrote {title}"
    return None
