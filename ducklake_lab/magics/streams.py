"""Streaming queries of Spark under the cells that start or name them."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

#: Seconds between two looks for queries that a running cell has started.
_INTERVAL = 1.0
#: Where PySpark has the class of a query: in this process, and over Spark Connect.
_MODULES = ("pyspark.sql.streaming.query", "pyspark.sql.connect.streaming.query")


class StreamCells:
    """Shows a query where a cell's value is one, and below a cell that started one, while the cell still runs.

    Args:
        sessions: gives the Spark sessions, beside the active one, whose queries are looked for.
    """

    def __init__(self, shell: InteractiveShell, sessions: Callable[[], Iterable[SparkSession | None]]) -> None:
        self._sessions = sessions
        self._seen = {str(query.runId) for query in self._active()}
        assert shell.display_formatter is not None
        for module in _MODULES:
            shell.display_formatter.ipython_display_formatter.for_type_by_name(
                module, "StreamingQuery", self._show_value
            )
        self._lock = threading.Lock()
        #: Runs that the running cell has below it.
        self._here: set[str] = set()
        # of the running cell and the cells that it runs itself
        self._running: list[threading.Event] = []
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)

    def _active(self) -> list[Any]:
        if "pyspark.sql" not in sys.modules:
            return []
        from ducklake_lab.spark.streams import active_queries

        return active_queries(self._sessions())

    def _before_cell(self, *_: object) -> None:
        if not self._running:
            self._here.clear()
        done = threading.Event()
        self._running.append(done)
        # the context carries which cell the output belongs to
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._watch, done), daemon=True).start()

    def _watch(self, done: threading.Event) -> None:
        """Show the streams of a cell while it runs: it may wait for its query without end."""
        while not done.wait(_INTERVAL):
            self._show_new()

    def _after_cell(self, *_: object) -> None:
        if self._running:
            self._running.pop().set()
        self._show_new()

    def _show_new(self) -> None:
        for query in self._active():
            with self._lock:
                is_new = str(query.runId) not in self._seen
                self._seen.add(str(query.runId))
                if is_new:
                    self._here.add(str(query.runId))
            if is_new:
                self._show(query)

    def _show_value(self, query: Any) -> None:
        """Show the value of a cell, unless the cell has it below it: it was seen while the cell still ran."""
        with self._lock:
            is_here = str(query.runId) in self._here
            self._seen.add(str(query.runId))
            self._here.add(str(query.runId))
        if not is_here:
            self._show(query)

    def _show(self, query: Any) -> None:
        from ducklake_lab.spark.streams import Stream
        from ducklake_lab.widgets.stream import StreamView

        display(StreamView(Stream(query)))
