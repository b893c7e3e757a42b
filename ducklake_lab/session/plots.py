"""Figures of a lake, by name: `session.plot.history()`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ducklake_lab.session.listings import History
from ducklake_lab.session.table import TableHandle


class Plots:
    """Makes plotly figures of the session's current lake; diffs of more rows than fit this process start Spark, nothing else does."""

    def __init__(self, snapshots: Callable[[str | None], History], table: Callable[..., TableHandle]) -> None:
        self._snapshots = snapshots
        self._table = table

    def history(self, table: str | None = None) -> Any:
        """Rows added and removed by each snapshot, of the lake or of one table."""
        return self._snapshots(table).plot()

    def files(self, table: str, at: int | datetime | None = None) -> Any:
        """Sizes and deletions of a table's data files."""
        return self._table(table, at).files().plot()

    def diff(self, table: str, start: int | datetime, end: int | datetime | None = None) -> Any:
        """Counts of changed rows, and values before and after."""
        return self._table(table).diff(start, end).plot()
