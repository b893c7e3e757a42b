"""The turn of a session: one thread at a time uses it, and others wait (ADR 0071)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.errors import SessionBusyError

#: Seconds that a thread waits for another thread's `with session.transaction()` block.
BLOCK_SECONDS = 60.0
#: Seconds that a view in a notebook waits for another thread's statement.
LOOK_SECONDS = 2.0
#: Seconds between checks of a waiting thread: locks on Windows delay interrupts.
_LOOK = 0.1

_local = threading.local()


@contextmanager
def looking() -> Iterator[None]:
    """Shortens the wait for a busy session in the block to a moment, for requests of views."""
    before = getattr(_local, "looks", False)
    _local.looks = True
    try:
        yield
    finally:
        _local.looks = before


@contextmanager
def acting_for(thread: int | None) -> Iterator[None]:
    """Lets this thread use the turns of another one, which waits for the block's end; None for its own."""
    before = getattr(_local, "acts_for", None)
    _local.acts_for = before if thread is None else thread
    try:
        yield
    finally:
        _local.acts_for = before


def _me(owner: int | None) -> int:
    """Returns the thread whose turn this thread may use: the one it acts for, if that is the owner, else itself."""
    other = getattr(_local, "acts_for", None)
    return other if other is not None and other == owner else threading.get_ident()


class Turn:
    """A re-entrant lock that an interrupt cannot leave locked; too long a wait raises an error with the reason."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._owner: int | None = None
        self._depth = 0
        self._block_since: float | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Holds the turn for work in the block; waits for other threads.

        Raises:
            SessionBusyError: another thread's transaction block takes too long; or it works, and this one only views.
        """
        me = _me(self._owner)
        depth = self._depth if self._owner == me else 0
        try:
            self._take(me, depth)
            yield
        finally:
            # by depth, not by a count: an interrupt may come directly after the lock was taken, before that is noted
            if self._owner == me:
                self._give_back(depth)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Holds the turn for many operations of one thread, such as those of a transaction."""
        with self.taken():
            before, self._block_since = self._block_since, self._block_since or time.monotonic()
            try:
                yield
            finally:
                self._block_since = before

    def _take(self, me: int, depth: int) -> None:
        with self._changed:
            began = time.monotonic()
            while self._owner not in (None, me):
                self._check_patience(time.monotonic() - began)
                self._changed.wait(_LOOK)
            self._owner, self._depth = me, depth + 1

    def _give_back(self, depth: int) -> None:
        with self._changed:
            self._depth = depth
            if depth == 0:
                self._owner = None
                self._changed.notify()

    def _check_patience(self, waited: float) -> None:
        since = self._block_since
        if since is not None and waited > BLOCK_SECONDS:
            raise SessionBusyError(
                f"Another thread has had a transaction of this session open for {time.monotonic() - since:.0f} s; end it "
                "there, or give each thread a session of its own."
            )
        if getattr(_local, "looks", False) and waited > LOOK_SECONDS:
            raise SessionBusyError("Another thread works with this session; ask again when it is done.")
