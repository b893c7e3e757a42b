"""The Diff that users hold: counts, schema, columns, rows and files of a change."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from ducklake_lab.diff import distributions, segments
from ducklake_lab.diff.model import ColumnChange, ColumnDiff, DiffSummary, FileDiff, Pattern, RowChange
from ducklake_lab.diff.pairs import RowCounts
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.errors import UsageError
from ducklake_lab.hooks import hook
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.history import HistoryEntry


class Diff:
    """What differs in one table between two states, or in two tables; it stays as it was computed.

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
    """

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
        *,
        renamed: Mapping[str, str] | None = None,
        history: Sequence[HistoryEntry] = (),
        key: tuple[str, ...] = (),
        other: str | None = None,
    ) -> None:
        self.table = table
        self.start = start
        self.end = end
        self.schema = tuple(schema)
        self.summary = summary
        self.files = files
        self.history = tuple(history)
        self.key = key
        self.other = other
        self._counts = counts
        self._changed = changed
        self._renamed = renamed or {}

    @cached_property
    def columns(self) -> tuple[ColumnDiff, ...]:
        """Per column of the later schema: cells changed, values before and after."""
        return tuple(distributions.columns(self._changed, self._counts, self._renamed))

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """What most of the changed rows have in common."""
        return tuple(segments.patterns(self._changed, self._counts))

    @property
    def sampled(self) -> int | None:
        """How many changed rows were looked at for columns' values, patterns and rows; None where it was all."""
        changed = self._changed
        return None if changed.total is None else int(changed.tables["pairs"].num_rows)

    @property
    def is_empty(self) -> bool:
        """Whether the two states have the same rows and columns."""
        return not self.summary.changed and not self.schema

    def rows(self, limit: int = 50, *, as_shown: bool = False) -> list[RowChange]:
        """The first changed rows by row id or key, of those looked at: at most `limit`.

        Args:
            as_shown: whether values other than numbers, texts and bytes are DuckDB's texts of them.
        """
        if limit < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {limit}.")
        return self._changed.first(limit, as_shown=as_shown)

    def to_dict(self, rows: int = 50) -> dict[str, Any]:
        """All of it as values that JSON has, with the first `rows` changed rows; times are ISO texts."""
        found = {
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
        plain: dict[str, Any] = _plain(found)
        return plain

    def to_json(self, rows: int = 50) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(rows), ensure_ascii=False, indent=2)

    def to_html(self, path: str | Path | None = None) -> str:
        """The diff as one self-contained page that needs no network; also written to a file if one is given.

        Raises:
            UsageError: the file cannot be written.
        """
        html: str = hook("diff.page")(self)
        if path is not None:
            try:
                Path(path).write_text(html, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"The diff cannot be written to {path}: {error.strerror}.") from error
        return html

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


def _entry(entry: HistoryEntry) -> dict[str, Any]:
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
    }


def _plain(value: Any) -> Any:
    """A value in JSON's types; numbers that JSON lacks become text, bytes hexadecimal digits."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return str(value)
