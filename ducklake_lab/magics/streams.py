"""Streaming queries of Spark under the cells that start or name them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

#: Where PySpark has the class of a query: in this process, and over Spark Connect.
_MODULES = ("pyspark.sql.streaming.query", "pyspark.sql.connect.streaming.query")


class StreamCells:
    """Shows a query where a cell's value is one, and below a cell that started one.

    Args:
        sessions: gives the Spark sessions, beside the active one, whose queries are looked for.
    """

    def __init__(self, shell: InteractiveShell, sessions: Callable[[], Iterable[SparkSession | None]]) -> None:
        self._sessions = sessions
        self._seen = {str(query.runId) for query in self._active()}
        assert shell.display_formatter is not None
        for module in _MODULES:
            shell.display_formatter.ipython_display_formatter.for_type_by_name(module, "StreamingQuery", self._show)
        shell.events.register("post_run_cell", self._after_cell)

    def _active(self) -> list[Any]:
        if "pyspark.sql" not in sys.modules:
            return []
        from ducklake_lab.spark.streams import active_queries

        return active_queries(self._sessions())

    def _after_cell(self, *_: object) -> None:
        for query in self._active():
            if str(query.runId) not in self._seen:
                self._show(query)

    def _show(self, query: Any) -> None:
        from ducklake_lab.spark.streams import Stream
        from ducklake_lab.widgets.stream import StreamView

        self._seen.add(str(query.runId))
        display(StreamView(Stream(query)))
