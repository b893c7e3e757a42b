"""Statements that stop when the user interrupts them, whatever DuckDB computes."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import duckdb

#: Seconds after which a thread that waits sees an interrupt that no signal announced.
_SEEN = 0.1

Found = TypeVar("Found")


class Stoppable:
    """Runs statements beside the main thread, which alone is interrupted.

    A thread that works for DuckDB looks for signals between two of its tasks, and one task may be a whole join.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    def run(
        self,
        connection: duckdb.DuckDBPyConnection,
        work: Callable[[], Found],
        tell: Callable[[float], None] | None = None,
    ) -> Found:
        """Return the result of the work on a connection.

        Args:
            tell: called now and then with the share that is done, where DuckDB knows it.

        Raises:
            KeyboardInterrupt: the user stopped it; the connection works on nothing any more.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "ducklake-lab-statement")
        running: Future[Found] = self._thread.submit(work)
        try:
            while not wait([running], _SEEN).done:
                if tell is not None and (percent := connection.query_progress()) > 0:
                    tell(min(percent, 100.0) / 100)
        except BaseException:
            connection.interrupt()
            wait([running])
            raise
        try:
            return running.result()
        finally:
            del running  # an error would hold it by this frame, and it the error


@contextmanager
def on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Call a function as soon as the user interrupts the block, before the interrupted work has ended."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    heard = before

    def handle(number: int, frame: FrameType | None) -> None:
        act()
        heard(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


#: The error of DuckDB's scan of Arrow rows whose Python code was interrupted.
_IN_READER = re.compile(
    r"Invalid Input Error: arrow_scan: get_next failed\(\):.*^KeyboardInterrupt$", re.DOTALL | re.MULTILINE
)


def is_interrupt(error: BaseException) -> bool:
    """Returns whether an error says that the user stopped a statement; since DuckDB 2.0 without its cause.

    Where the interrupt meets Python code that DuckDB calls, such as a reader of Arrow rows, the error names it.
    """
    cause, text = error.__cause__, str(error)
    is_said = text == "Query interrupted" or text.startswith("KeyboardInterrupt:") or _IN_READER.match(text) is not None
    return isinstance(cause, KeyboardInterrupt) or (cause is None and is_said)
