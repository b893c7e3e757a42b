"""Interface of a diff that can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ducklake_lab.diff.model import (
    ColumnChange,
    ColumnDiff,
    ColumnSteps,
    DiffSummary,
    FileDiff,
    Pattern,
    RowChange,
    RowChoice,
)
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.history import HistoryEntry


class DiffSource(Protocol):
    """A diff of one table, or of two answers, which have no files; `end` is None for a change that is not committed yet.

    `choice` and `limit` define the rows that are drawn, and their largest number.
    """

    @property
    def table(self) -> str: ...
    @property
    def start(self) -> SnapshotInfo: ...
    @property
    def end(self) -> SnapshotInfo | None: ...
    @property
    def schema(self) -> Sequence[ColumnChange]: ...
    @property
    def summary(self) -> DiffSummary: ...
    @property
    def columns(self) -> Sequence[ColumnDiff]: ...
    @property
    def files(self) -> FileDiff | None: ...
    @property
    def patterns(self) -> Sequence[Pattern]: ...
    @property
    def group_steps(self) -> Sequence[ColumnSteps]: ...
    @property
    def history(self) -> Sequence[HistoryEntry]: ...
    @property
    def sampled(self) -> int | None: ...
    @property
    def key(self) -> Sequence[str]: ...
    @property
    def other(self) -> str | None: ...

    @property
    def choice(self) -> RowChoice: ...
    @property
    def limit(self) -> int: ...

    def page(self, limit: int, offset: int, choice: RowChoice, *, as_shown: bool = False) -> Sequence[RowChange]:
        """Return at most `limit` chosen rows after `offset`; `as_shown` with DuckDB's texts of nested values."""

    def count(self, choice: RowChoice) -> int:
        """Count the chosen rows."""

    def statement(self, choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
        """SQL that gives the chosen rows.

        Raises:
            UnsupportedFeatureError: SQL cannot compare a column.
        """
