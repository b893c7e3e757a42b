"""Cache of footers and delete files for the next statement: files never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class KeptReads(Generic[Key, Found]):
    """Cache of entries read from files, the ones used last; thread-safe.

    Args:
        limit: the sum of sizes up to which entries are kept.
        size: of an entry, in the unit of the limit.
    """

    def __init__(self, limit: int, size: Callable[[Found], int]) -> None:
        self._limit = limit
        self._size = size
        self._lock = threading.Lock()
        self._found: OrderedDict[Key, Found] = OrderedDict()
        self._sum = 0

    def read(self, key: Key, read: Callable[[], Found]) -> Found:
        """The entry of a key, read where it is not kept."""
        with self._lock:
            value = self._found.get(key)
            if value is not None:
                self._found.move_to_end(key)
                return value
        value = read()
        self.keep(key, value)
        return value

    def keep(self, key: Key, value: Found) -> None:
        with self._lock:
            if key not in self._found:
                self._found[key] = value
                self._sum += self._size(value)
            while self._sum > self._limit:
                self._sum -= self._size(self._found.popitem(last=False)[1])
