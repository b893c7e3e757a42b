"""Work on several files at a time, by threads that stay: starting them takes longer than most of the work."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_THREADS = 16

Item = TypeVar("Item")
Found = TypeVar("Found")


class _Pool:
    """The threads of this process; a forked one starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self._executor: ThreadPoolExecutor | None = None

    def map(self, function: Callable[[Item], Found], items: Mapping[str, Item]) -> dict[str, Found]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_THREADS, "ducklake-lab-files", initializer=self._mark)
            executor = self._executor
        found: dict[str, Found] = {}
        waiting = iter(list(items.items()))

        def work() -> None:
            for key, item in waiting:
                found[key] = function(item)

        # a task for each thread, not for each item: most items take less time than a task
        tasks = [executor.submit(work) for _ in range(min(_THREADS, len(items)))]
        try:
            for task in tasks:
                task.result()
        finally:
            deque(waiting, maxlen=0)  # after a failure, or an interrupt, no thread takes another
        return {key: found[key] for key in items}

    @property
    def is_mine(self) -> bool:
        """Whether this is one of the threads: if all waited for others, none would work."""
        return getattr(self._local, "marked", False)

    def _mark(self) -> None:
        self._local.marked = True


_pool = _Pool()


def _after_fork() -> None:
    global _pool
    _pool = _Pool()


os.register_at_fork(after_in_child=_after_fork)


def in_parallel(
    items: Mapping[str, Item], function: Callable[[Item], Found], is_quick: Callable[[Item], bool] = lambda item: False
) -> dict[str, Found]:
    """What a function finds for each item, several at a time.

    Args:
        is_quick: whether an item takes less time than handing it to a thread.
    """
    slow = {} if _pool.is_mine else {key: item for key, item in items.items() if not is_quick(item)}
    found = _pool.map(function, slow) if len(slow) > 1 else {}
    return {key: found[key] if key in found else function(item) for key, item in items.items()}
