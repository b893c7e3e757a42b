"""The part that all diffs have in common: counts, columns, patterns and changed rows, and how they are shown."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ducklake_lab.diff import distributions, segments
from ducklake_lab.diff.model import (
    ColumnChange,
    ColumnDiff,
    ColumnSteps,
    DiffSummary,
    FileDiff,
    Pattern,
    RowChange,
    RowChoice,
    RowKind,
)
from ducklake_lab.diff.pairs import RowCounts
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


class RowDiff(ABC):
    """Changed rows between two states, as a diff of a table and one of answers have them; it stays as it was computed.

    Attributes:
        table: what was compared, for people.
        start: the earlier snapshot.
        end: the later one; None for changes that are not committed.
        schema: changes of columns.
        summary: counts of rows; exact.
        files: data and delete files added and removed; None where rows are those of no table.
        history: the snapshots after `start`, up to `end`, that touched the table, oldest first.
        key: the columns by which rows were paired; ().
        other: the table of the later state where it is another one, else None.
        choice: the changed rows that are drawn first.
        limit: how many of them at most.
    """

    files: FileDiff | None = None
    history: tuple[HistoryEntry, ...] = ()
    other: str | None = None

    def __init__(
        self,
        table: str,
        start: SnapshotInfo,
        end: SnapshotInfo | None,
        schema: Sequence[ColumnChange],
        summary: DiffSummary,
        counts: RowCounts,
        changed: ChangedRows,
        *,
        renamed: Mapping[str, str] | None = None,
        key: tuple[str, ...] = (),
    ) -> None:
        self.table = table
        self.start = start
        self.end = end
        self.schema = tuple(schema)
        self.summary = summary
        self.key = key
        self.choice = ALL
        self.limit = SHOWN
        self._counts = counts
        self._changed = changed
        self._renamed = renamed or {}

    @cached_property
    def columns(self) -> tuple[ColumnDiff, ...]:
        """Per column of the later schema: cells changed, values before and after."""
        return tuple(distributions.columns(self._changed, self._counts, self._renamed))

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Conditions that most of the changed rows share."""
        return tuple(segments.patterns(self._changed, self._counts))

    @cached_property
    def group_steps(self) -> tuple[ColumnSteps, ...]:
        """Largest changes of numbers by group; () unless rows of two answers are paired by a key."""
        return ()

    @property
    def sampled(self) -> int | None:
        """Number of changed rows in the sample for columns' values, patterns and rows; None where it has all."""
        changed = self._changed
        return None if changed.total is None else int(changed.tables["pairs"].num_rows)

    @property
    def reads(self) -> Sequence[EntryRead]:
        """The entries that are compared, each in one state; none where the rows are those of no table."""
        return ()

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
        return self.page(limit, offset, RowChoice(kind, changed, keys_of(sort)), as_shown=as_shown)

    def page(self, limit: int, offset: int, choice: RowChoice, *, as_shown: bool = False) -> list[RowChange]:
        """Return rows as `rows` does, for a choice."""
        if limit < 0 or offset < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {min(limit, offset)}.")
        return self._changed.page(limit, offset, choice, as_shown=as_shown)

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
    ) -> Self:
        """Return a copy of the diff that draws these rows; see `rows`.

        Raises:
            UsageError, EntryNotFoundError: as of `rows`.
        """
        if limit < 0:
            raise UsageError(f"The number of rows to show is 0 or more, not {limit}.")
        copied = copy(self)
        copied.choice, copied.limit = self._changed.named(RowChoice(kind, changed, keys_of(sort))), limit
        return copied

    @abstractmethod
    def statement(self, choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
        """Return SQL that gives the chosen rows; "" where no one statement does."""

    @abstractmethod
    def to_dict(self, rows: int = 50) -> dict[str, Any]:
        """All of it as values that JSON has, with the first `rows` changed rows; times are ISO texts."""

    def to_json(self, rows: int = 50) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(rows), ensure_ascii=False, indent=2)

    def to_html(self, path: str | Path | None = None) -> str:
        """The diff as one self-contained page that needs no network; also written to a file if one is given.

        Raises:
            UsageError: the file cannot be written.
        """
        return page("diff.page", self, path)

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


def keys_of(sort: Sort) -> tuple[tuple[str, bool], ...]:
    """(column, descending) pairs."""
    listed = [sort] if isinstance(sort, str) else sort
    return tuple((key, False) if isinstance(key, str) else key for key in listed)


def in_json(value: object) -> Any:
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
        return {str(name): in_json(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [in_json(item) for item in value]
    return str(value)
