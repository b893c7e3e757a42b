"""Figures of a lake, by name: `session.plot.history()`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ducklake_lab.session.listings import History
from ducklake_lab.session.table import TableHandle


class Plots:
    """Makes plotly figures of the current lake. Only diffs with more rows than one process can hold start Spark."""

    def __init__(self, snapshots: Callable[[str | None], History], table: Callable[..., TableHandle]) -> None:
        self._snapshots = snapshots
        self._table = table

    def history(self, table: str | None = None) -> Any:
        """Plots the rows that each snapshot added and removed, in the lake or in one table."""
        return self._snapshots(table).plot()

    def files(self, table: str, at: int | datetime | None = None) -> Any:
        """Plots the sizes and deleted rows of a table's data files."""
        return self._table(table, at).files().plot()

    def diff(self, table: str, start: int | datetime, end: int | datetime | None = None) -> Any:
        """Plots the counts of changed rows, and values before and after."""
        return self._table(table).diff(start, end).plot()
