"""The Diff that users hold: counts, schema, columns, rows and files of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ducklake_lab.diff.model import ColumnChange, ColumnDiff, DiffSummary, FileDiff, Pattern, RowChange
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.hooks import hook
from ducklake_lab.model.entries import SnapshotInfo


class Diff:
    """What differs in one table between two states; it stays as it was computed.

    Attributes:
        table: `schema.table`.
        start: the earlier snapshot.
        end: the later one; None for changes that are not committed.
        schema: changes of columns, by column id.
        summary: counts of rows.
        columns: per column of the later schema: cells changed, values before and after.
        files: data and delete files added and removed.
        patterns: what most of the changed rows have in common.
    """

    def __init__(
        self,
        table: str,
        start: SnapshotInfo,
        end: SnapshotInfo | None,
        schema: Sequence[ColumnChange],
        summary: DiffSummary,
        columns: Sequence[ColumnDiff],
        files: FileDiff,
        patterns: Sequence[Pattern],
        changed: ChangedRows,
    ) -> None:
        self.table = table
        self.start = start
        self.end = end
        self.schema = tuple(schema)
        self.summary = summary
        self.columns = tuple(columns)
        self.files = files
        self.patterns = tuple(patterns)
        self._changed = changed

    def rows(self, limit: int = 50) -> list[RowChange]:
        """The first changed rows by row id: at most `limit`."""
        return self._changed.first(limit)

    def to_dict(self, rows: int = 50) -> dict[str, Any]:
        """All of it as plain values, with the first `rows` changed rows."""
        return {
            "table": self.table,
            "start": self.start.snapshot_id,
            "end": self.end.snapshot_id if self.end is not None else None,
            "schema": [asdict(change) for change in self.schema],
            "summary": asdict(self.summary),
            "columns": [asdict(column) for column in self.columns],
            "files": asdict(self.files),
            "patterns": [asdict(pattern) for pattern in self.patterns],
            "rows": [asdict(row) for row in self.rows(rows)],
        }

    def plot(self) -> Any:
        """The diff as a plotly figure."""
        return hook("diff.plot")(self)

    def show(self) -> None:
        """Displays the diff in a notebook."""
        hook("display")(self)

    def _repr_html_(self) -> str:
        html: str = hook("diff.html")(self)
        return html

    def __repr__(self) -> str:
        s = self.summary
        end = self.end.snapshot_id if self.end is not None else "uncommitted"
        return (
            f"<Diff of {self.table}, {self.start.snapshot_id} to {end}: {s.deleted:,} deleted, "
            f"{s.inserted:,} inserted, {s.updated:,} updated, {s.unchanged:,} unchanged>"
        )
