"""Figures of a lake, by name: `session.plot.history()`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ducklake_lab.session.session import Session


class Plots:
    """Makes plotly figures of the session's current lake; diffs of more rows than fit this process start Spark, nothing else does."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def history(self, table: str | None = None) -> Any:
        """Rows added and removed by each snapshot, of the lake or of one table."""
        return self._session.snapshots(table).plot()

    def files(self, table: str, at: int | datetime | None = None) -> Any:
        """Sizes and deletions of a table's data files."""
        return self._session.table(table, at).files().plot()

    def diff(self, table: str, start: int | datetime, end: int | datetime | None = None) -> Any:
        """Counts of changed rows, and values before and after."""
        return self._session.table(table).diff(start, end).plot()
