"""The Diff that users hold: counts, schema, columns, rows and files of a change."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from ducklake_lab.diff import distributions, segments
from ducklake_lab.diff.as_sql import rows_sql
from ducklake_lab.diff.diff_states import Sides
from ducklake_lab.diff.model import (
    ColumnChange,
    ColumnDiff,
    DiffSummary,
    FileDiff,
    Pattern,
    RowChange,
    RowChoice,
    RowKind,
)
from ducklake_lab.diff.pairs import RowCounts
from ducklake_lab.diff.patch import Patch, Reading
from ducklake_lab.diff.rows import ALL, ChangedRows, places_of
from ducklake_lab.errors import UsageError
from ducklake_lab.hooks import hook
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.model.reads import EntryRead

#: Changed rows that are drawn at most.
SHOWN = 50
#: A column, or columns, each with whether it descends.
Sort = str | Sequence[str | tuple[str, bool]]


class Diff:
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
        sides: Sides,
        readings: tuple[Reading, Reading],
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
        self.choice = ALL
        self.limit = SHOWN
        self._counts = counts
        self._changed = changed
        self._sides = sides
        self._readings = readings
        self._renamed = renamed or {}

    @cached_property
    def columns(self) -> tuple[ColumnDiff, ...]:
        """Per column of the later schema: cells changed, values before and after."""
        return tuple(distributions.columns(self._changed, self._counts, self._renamed))

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Conditions that most of the changed rows share."""
        return tuple(segments.patterns(self._changed, self._counts))

    @property
    def sampled(self) -> int | None:
        """Number of changed rows in the sample for columns' values, patterns and rows; None where it has all."""
        changed = self._changed
        return None if changed.total is None else int(changed.tables["pairs"].num_rows)

    @property
    def reads(self) -> Sequence[EntryRead]:
        """The table, or both tables, in the states that are compared."""
        return self._sides.reads()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the later schema, then those only the earlier one has."""
        return tuple(column.name for column in self._changed.all_columns)

    @property
    def is_empty(self) -> bool:
        """Return whether the two states have the same rows and columns."""
        return not self.summary.changed and not self.schema

    def rows(
        self,
        limit: int = 50,
        *,
        offset: int = 0,
        kind: RowKind | None = None,
        changed: str | None = None,
        sort: Sort = (),
        as_shown: bool = False,
    ) -> list[RowChange]:
        """Some changed rows of those looked at: at most `limit`, after the first `offset`.

        Args:
            kind: rows that were `inserted`, `deleted` or `updated`.
            changed: updated rows in which the cell of this column differs.
            sort: a column, or (column, descending) pairs, by the value a row has last; by row id or key without it.
            as_shown: whether values other than numbers, texts and bytes are DuckDB's texts of them.

        Raises:
            UsageError: a number is negative, or the kind is none.
            EntryNotFoundError: there is no such column.
        """
        return self.page(limit, offset, RowChoice(kind, changed, _keys(sort)), as_shown=as_shown)

    def page(self, limit: int, offset: int, choice: RowChoice, *, as_shown: bool = False) -> list[RowChange]:
        """Return rows as `rows` does, for a choice."""
        if limit < 0 or offset < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {min(limit, offset)}.")
        return self._changed.page(limit, offset, choice, as_shown=as_shown)

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
        return self.statement(RowChoice(kind, changed, _keys(sort)), limit, offset)

    def statement(self, choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
        """Return SQL as `sql` does, for a choice."""
        if offset < 0 or (limit or 0) < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {min(limit or 0, offset)}.")
        return rows_sql(self._sides, self.key, self._changed.named(choice), limit, offset)

    def count(self, choice: RowChoice) -> int:
        """Count the changed rows that are chosen; exact, where the rows are a sample too."""
        if choice.changed is not None:
            return self._counts.cells[places_of(self._changed.columns, [choice.changed])[0]]
        return self.summary.changed if choice.kind is None else int(getattr(self.summary, choice.kind))

    def passing(self, choice: RowChoice) -> int:
        """Count the chosen rows among the sampled ones: so many can be paged through."""
        return self.count(choice) if self.sampled is None else self._changed.passing(choice)

    def showing(
        self, kind: RowKind | None = None, changed: str | None = None, sort: Sort = (), limit: int = SHOWN
    ) -> Diff:
        """Return a copy of the diff that draws these rows; see `rows`.

        Raises:
            UsageError, EntryNotFoundError: as of `rows`.
        """
        if limit < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {limit}.")
        found = copy(self)
        found.choice, found.limit = self._changed.named(RowChoice(kind, changed, _keys(sort))), limit
        return found

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
        plain: dict[str, object] = _plain(found)
        return plain

    def to_json(self, rows: int = 50) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(rows), ensure_ascii=False, indent=2)

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

    def to_html(self, path: str | Path | None = None) -> str:
        """The diff as one self-contained page that needs no network; also written to a file if one is given.

        Raises:
            UsageError: the file cannot be written.
        """
        return page("diff.page", self, path)

    def save(self, path: str | Path) -> None:
        """Writes the diff to a file: a page to `.html`, data to `.json`, a patch to `.sql`.

        Raises:
            UsageError: the name ends otherwise, or the file cannot be written.
        """
        save(path, {".html": self.to_html, ".json": self.to_json, ".sql": self.patch}, "A diff")

    def plot(self) -> Any:
        """The diff as a plotly figure."""
        return hook("diff.plot")(self)

    def show(self) -> None:
        """Displays the diff in a notebook."""
        hook("display")(self)

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("diff.live")(self)

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


def save(path: str | Path, made: Mapping[str, Callable[[], str]], what: str) -> None:
    """Write the form that a file's ending names.

    Args:
        made: makes the text, by the end of the name; two or more.
        what: the saved thing, for messages.

    Raises:
        UsageError: the name ends otherwise, or the file cannot be written.
    """
    make = made.get(Path(path).suffix.casefold())
    if make is None:
        *others, last = made
        raise UsageError(f"{what} is saved as {', '.join(others)} or {last}, not {Path(path).name}.")
    write(path, make())


def page(name: str, diff: object, path: str | Path | None) -> str:
    """Return the page of a diff that a hook draws; write it to a file if one is given."""
    html: str = hook(name)(diff)
    if path is not None:
        write(path, html)
    return html


def write(path: str | Path, text: str) -> None:
    """Write the text of a diff with its own line ends.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"The diff cannot be written to {path}: {error.strerror}.") from error


def _keys(sort: Sort) -> tuple[tuple[str, bool], ...]:
    """(column, descending) pairs."""
    listed = [sort] if isinstance(sort, str) else sort
    return tuple((key, False) if isinstance(key, str) else key for key in listed)


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


def _plain(value: object) -> Any:
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
