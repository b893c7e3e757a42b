"""Notices commits of other processes while a page looks, so that the page need not ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ducklake_lab.errors import DuckLakeError

if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake

#: Seconds between two looks at the catalogs.
_PAUSE = 0.8
#: Longest time, in seconds, that a page may ask for at once.
_LONGEST = 120.0


class Watch:
    """A thread that looks at catalogs for as long as a page wants, and reports changes.

    It takes no turn of a session. A catalog file is not opened: its size and times change with a commit. A server is asked for the id of
    its newest snapshot.

    Args:
        report: called from the thread after a change.
        is_idle: whether no cell runs; a change during a cell is reported after it.
    """

    def __init__(self, report: Callable[[], None], is_idle: Callable[[], bool]) -> None:
        self._report = report
        self._is_idle = is_idle
        self._lock = threading.Lock()
        self._marks: dict[Lake, object] = {}
        self._until = 0.0
        self._thread: threading.Thread | None = None

    def follow(self, lakes: Iterable[Lake]) -> None:
        """Watches these lakes from now on, and no others."""
        if self._thread is None:
            return
        with self._lock:
            self._marks = {lake: self._marks[lake] if lake in self._marks else _mark(lake) for lake in lakes}

    def go_on(self, seconds: float, lakes: Iterable[Lake]) -> None:
        """Watches for some more seconds; without this, it ends."""
        with self._lock:
            self._until = time.monotonic() + min(max(seconds, 0.0), _LONGEST)
            if self._thread is None:
                self._marks = {}
                self._thread = threading.Thread(target=self._run, name="ducklake-lab watch", daemon=True)
                self._thread.start()
        self.follow(lakes)

    def _run(self) -> None:
        try:
            while self._is_wanted():
                time.sleep(_PAUSE)
                if self._is_idle() and self._has_changed():
                    self._report()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _is_wanted(self) -> bool:
        """Whether the time that the page asked for is not over; else another thread takes the next request."""
        with self._lock:
            if time.monotonic() > self._until:
                self._thread = None
            return self._thread is threading.current_thread()

    def _has_changed(self) -> bool:
        with self._lock:
            known = dict(self._marks)
        marks = {lake: _mark(lake) for lake in known}
        with self._lock:
            changed = {lake: mark for lake, mark in marks.items() if mark != known[lake] and lake in self._marks}
            self._marks |= changed
        return bool(changed)


def _mark(lake: Lake) -> object:
    """Returns the lake's mark; an error is a state like another, which the page shows when it asks."""
    from ducklake_lab.catalog.identity import change_mark

    try:
        return change_mark(lake)
    except (DuckLakeError, OSError) as error:
        return str(error)
