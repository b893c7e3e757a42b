"""The Diff that users hold: counts, schema, columns, rows and files of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.diff.as_sql import rows_sql
from ducklake_lab.diff.diff_states import Side, Sides
from ducklake_lab.diff.model import ColumnChange, DiffSummary, FileDiff, RowChoice, RowKind
from ducklake_lab.diff.pairs import RowCounts
from ducklake_lab.diff.patch import Patch, Reading
from ducklake_lab.diff.row_diff import RowDiff, Sort, in_json, keys_of, save, write
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Column, SnapshotInfo, Table
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.row_life import RowLife
from ducklake_lab.model.state import CatalogState

#: Reads what changed a row of a table, by its id, up to a committed state.
ReadLife = Callable[[Lake, CatalogState, Table, int], RowLife]


class Diff(RowDiff):
    """Difference of one table between two states, or of two tables; it stays as it was computed.

    Attributes:
        table: `schema.table`.
        start: the earlier snapshot.
        end: the later one; None for changes that are not committed.
        schema: changes of columns, by column id.
        summary: counts of rows; exact.
        files: data and delete files added and removed.
        history: the snapshots after `start`, up to `end`, that touched the table, oldest first.
        key: the columns by which rows were paired; () for row ids.
        other: the table of the later state where it is another one, else None.
        choice: the changed rows that are drawn first.
        limit: how many of them at most.
        lives: reads what changed a row; None without a session.
    """

    lives: ReadLife | None = None

    def __init__(
        self,
        table: str,
        start: SnapshotInfo,
        end: SnapshotInfo | None,
        schema: Sequence[ColumnChange],
        summary: DiffSummary,
        counts: RowCounts,
        files: FileDiff,
        changed: ChangedRows,
        sides: Sides,
        readings: tuple[Reading, Reading],
        *,
        renamed: Mapping[str, str] | None = None,
        history: Sequence[HistoryEntry] = (),
        key: tuple[str, ...] = (),
        other: str | None = None,
    ) -> None:
        super().__init__(table, start, end, schema, summary, counts, changed, renamed=renamed, key=key)
        self.files: FileDiff = files
        self.history = tuple(history)
        self.other = other
        self._sides = sides
        self._readings = readings

    @property
    def reads(self) -> Sequence[EntryRead]:
        """The table, or both tables, in the states that are compared."""
        return self._sides.reads()

    def sql(
        self,
        *,
        kind: RowKind | None = None,
        changed: str | None = None,
        sort: Sort = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> str:
        """A statement in DuckDB's SQL that gives the changed rows; DuckDB's `ducklake` extension runs it as well.

        It joins the two states of the table, which it reads as a whole: `change`, `row_id` (without a key), then
        `old_x` and `new_x` of each column x. Of a dropped column there is only `old_x`.

        Args:
            kind, changed, sort: which rows, in which order; see `rows`.
            limit: how many at most; None for all, where the diff looked at a sample too.

        Raises:
            UsageError: the changes are not committed.
            UnsupportedFeatureError: SQL cannot compare a column.
        """
        return self.statement(RowChoice(kind, changed, keys_of(sort)), limit, offset)

    def statement(self, choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
        """Return SQL as `sql` does, for a choice."""
        if offset < 0 or (limit or 0) < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {min(limit or 0, offset)}.")
        return rows_sql(self._sides, self.key, self._changed.named(choice), limit, offset)

    def to_dict(self, rows: int = 50) -> dict[str, Any]:
        """All of it as values that JSON has, with the first `rows` changed rows; times are ISO texts."""
        members = {
            "table": self.table,
            "other": self.other,
            "start": self.start.snapshot_id,
            "end": self.end.snapshot_id if self.end is not None else None,
            "key": list(self.key),
            "sampled": self.sampled,
            "schema": [asdict(change) for change in self.schema],
            "summary": asdict(self.summary),
            "columns": [asdict(column) for column in self.columns],
            "files": asdict(self.files),
            "patterns": [asdict(pattern) for pattern in self.patterns],
            "history": [_entry(entry) for entry in self.history],
            "rows": [asdict(row) for row in self.rows(rows)],
        }
        plain: dict[str, Any] = in_json(members)
        return plain

    def patch(self, *, revert: bool = False) -> str:
        """Write SQL of DuckDB that turns the earlier state into the later one, with a comment about its effect.

        Rows are found by row id, or by the key. No snapshot is created until the text is run.

        Args:
            revert: the way back: they make the earlier state of the later one.

        Raises:
            UsageError: more than 100,000 rows differ, the key is none, or the changes to revert are not committed.
            UnsupportedFeatureError: no ALTER TABLE makes one schema of the other.
        """
        reading = self._readings[1 if revert else 0]
        return Patch(self._sides, self.key, self._changed, self.summary, reading, revert=revert).text()

    def write_patch(self, path: str | Path, *, revert: bool = False) -> None:
        """Writes the patch to a file; see `patch`."""
        write(path, self.patch(revert=revert))

    def save(self, path: str | Path) -> None:
        """Writes the diff to a file: a page to `.html`, data to `.json`, a patch to `.sql`.

        Raises:
            UsageError: the name ends otherwise, or the file cannot be written.
        """
        save(path, {".html": self.to_html, ".json": self.to_json, ".sql": self.patch}, "A diff")

    def life(self, row_id: int, kind: RowKind, column: str) -> tuple[RowLife, str] | None:
        """Returns the life of a changed row up to a committed state that has it, and the column's name there.

        It is the later state, or else the earlier one: of deleted rows, of dropped columns, and of what is not committed.

        Returns:
            None where no committed state has the cell, or nothing reads lives.
        """
        matched = next((one for one in self._sides.matched() if one.name == column), None)
        if self.lives is None or self.key or matched is None:
            return None
        sides: list[tuple[Side, Column | None]] = []
        if kind != "deleted" and not self._sides.is_open:
            sides.append((self._sides.after, matched.after))
        if kind != "inserted":
            sides.append((self._sides.before, matched.before))
        for side, own in sides:
            if side.table is not None and own is not None:
                return self.lives(side.lake, side.state, side.table, row_id), own.name
        return None

    def __repr__(self) -> str:
        s = self.summary
        end = self.end.snapshot_id if self.end is not None else "uncommitted"
        return (
            f"<Diff of {self.table}, {self.start.snapshot_id} to {end}: {s.deleted:,} deleted, "
            f"{s.inserted:,} inserted, {s.updated:,} updated, {s.unchanged:,} unchanged>"
        )


def _entry(entry: HistoryEntry) -> dict[str, object]:
    info = entry.info
    return {
        "snapshot_id": info.snapshot_id,
        "snapshot_time": info.snapshot_time,
        "author": info.author,
        "message": info.commit_message,
        "kind": entry.kind,
        "changes": entry.changes,
        "rows_added": entry.rows_added,
        "rows_removed": entry.rows_removed,
        "at_most": entry.at_most,
    }
