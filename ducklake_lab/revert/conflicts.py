"""The words of a revert, and its conflicts with later snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ducklake_lab.errors import RevertConflictError
from ducklake_lab.merging.conflicts import Conflict, Described, Reason, Unsettled, Words

#: Conflicts that the text of an error names.
_NAMED = 5
_REASONS = {
    Reason.CELL: "changed since",
    Reason.ROW_UPDATED: "updated, and deleted since",
    Reason.ROW_DELETED: "inserted, and changed since",
    Reason.COLUMN_DROPPED: "column added, and changed since",
    Reason.DEFINITION: "{0} changed since",
    Reason.TABLE_DROPPED: "table created, and changed since",
    Reason.TABLE_CHANGED: "table dropped since",
    Reason.SCHEMA_DROPPED: "schema created, and filled since",
    Reason.VIEW_CHANGED: "view changed since",
    Reason.VIEW_DROPPED: "view dropped since",
    Reason.VALUE_EXPIRED: "deleted, and its value has expired",
}


@dataclass(frozen=True, slots=True)
class RevertConflict(Described):
    """Something that a snapshot changed, and a later one changed again.

    Attributes:
        table: `schema.table` as it is today; the name of another entry for one.
        row_id: None for a conflict of a definition.
        column: of a cell, or of the definition of a column; None for a row, a table or another entry.
        base: the value before the snapshot.
        then: the value that the snapshot set.
        now: today's value. Of a row these are its cells by column, of a definition texts; None where there is none.
        reason: in words.
    """

    table: str
    row_id: int | None
    column: str | None
    base: object
    then: object
    now: object
    reason: str

    @property
    def versions(self) -> tuple[object, object, object]:
        return self.base, self.then, self.now


def words_of(snapshot_id: int) -> Words:
    """Return the words of the revert of a snapshot, which merges the state before it."""
    return Words(f"snapshot {snapshot_id}", "keep", "revert", "come back", _REASONS)


def conflict_error(snapshot_id: int, unsettled: Unsettled) -> RevertConflictError:
    """Return the error that lists conflicts."""
    noun = "conflict" if unsettled.total == 1 else "conflicts"
    return RevertConflictError(
        f"Snapshot {snapshot_id} is not reverted: {unsettled.total:,} {noun} with later snapshots: "
        f'{unsettled.named(_NAMED)}. Say on_conflict="keep" for today\'s values, or "revert" for the old ones.',
        _seen_from_the_snapshot(tuple(unsettled)),
        unsettled.total,
    )


def _seen_from_the_snapshot(conflicts: Sequence[Conflict]) -> tuple[RevertConflict, ...]:
    """Both sides began at the snapshot: its value is their base, and the one before it theirs."""
    return tuple(RevertConflict(c.table, c.row_id, c.column, c.theirs, c.base, c.ours, c.reason) for c in conflicts)
