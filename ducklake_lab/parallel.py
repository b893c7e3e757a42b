"""Work on several files at a time, by threads that stay: starting them takes longer than most of the work."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

_THREADS = 16
#: Seconds between two looks at how fast items go by.
_LOOK = 0.002
#: Items that go by between two looks without help: threads would only wait for Python's lock in turns.
_QUICK = 10

Item = TypeVar("Item")
Found = TypeVar("Found")


class _Pool:
    """The threads of this process; a forked one starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, task: Callable[[], None]) -> Future[None]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_THREADS, "ducklake-lab-files", initializer=self._mark)
            return self._executor.submit(task)

    @property
    def is_mine(self) -> bool:
        """Returns whether this is one of the threads: if all waited for others, none would work."""
        return getattr(self._local, "marked", False)

    def _mark(self) -> None:
        self._local.marked = True


_pool = _Pool()


def _after_fork() -> None:
    global _pool
    _pool = _Pool()


os.register_at_fork(after_in_child=_after_fork)


def in_parallel(items: Iterable[Item], function: Callable[[Item], Found]) -> list[Found]:
    """Call a function on each item, and return the results in order; threads help with slow items.

    After a failure, or an interrupt, no further item is begun, and those that were have ended.
    """
    items = list(items)
    if len(items) < 2 or _pool.is_mine:
        return [function(item) for item in items]
    results: dict[int, Found] = {}
    waiting = enumerate(items)
    lock, done = threading.Lock(), threading.Event()
    helpers: list[Future[None]] = []

    def work() -> None:
        try:
            for at, item in waiting:
                results[at] = function(item)
        finally:
            deque(waiting, maxlen=0)

    def watch() -> None:
        seen = 0
        while not done.wait(_LOOK) and len(results) - seen >= _QUICK:
            seen = len(results)
        with lock:
            if not done.is_set():
                helpers.extend(_pool.submit(work) for _ in range(min(_THREADS, len(items) - len(results)) - 1))

    _pool.submit(watch)
    try:
        work()
    finally:
        with lock:
            done.set()
        wait(helpers)
    for helper in helpers:
        helper.result()
    return [results[at] for at in range(len(items))]
