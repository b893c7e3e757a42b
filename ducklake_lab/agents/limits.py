"""Limits of an answer: seconds, rows and characters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ducklake_lab.errors import UsageError

#: Seconds between two interrupts: one between two statements of DuckDB is lost.
_AGAIN = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request.

    Attributes:
        rows: rows of an answer.
        seconds: a statement may run.
        characters: of all values of an answer.
        cell: characters of one value.
        memory: of DuckDB, as its setting `memory_limit` takes it.
    """

    rows: int = 500
    seconds: float = 30.0
    characters: int = 100_000
    cell: int = 4_000
    memory: str = "2GB"


@contextmanager
def time_limit(seconds: float, interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt the block after some seconds.

    Raises:
        UsageError: the time is over.
    """
    ended = threading.Event()
    over = threading.Event()

    def watch() -> None:
        if ended.wait(seconds):
            return
        over.set()
        while not ended.wait(_AGAIN):
            interrupt()

    watcher = threading.Thread(target=watch, name="ducklake-lab-time-limit", daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        if over.is_set():
            raise UsageError(f"The statement was stopped after {seconds:g} seconds; ask for less.") from None
        raise
    finally:
        ended.set()
        watcher.join()


def cut(text: str, limit: int) -> str:
    """Return a text with a note in place of what exceeds a number of characters."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"
