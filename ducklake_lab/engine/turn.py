"""The turn of a session: one thread at a time works with it, and others wait (ADR 0071)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.errors import SessionBusyError

#: Seconds for which a thread waits while another one is in a `with session.transaction()` block.
BLOCK_SECONDS = 60.0
#: Seconds for which somebody who looks on, such as a view in a notebook, waits for a statement of another thread.
LOOK_SECONDS = 2.0
#: Seconds after which a thread that waits looks again: locks of Windows hold interrupts back.
_LOOK = 0.1

_local = threading.local()


@contextmanager
def looking() -> Iterator[None]:
    """Around questions of a view: in this thread, a session that another thread works with is waited for only a moment."""
    before = getattr(_local, "looks", False)
    _local.looks = True
    try:
        yield
    finally:
        _local.looks = before


class Turn:
    """A re-entrant lock that an interrupt cannot leave locked, and that says why somebody waits for too long."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._owner: int | None = None
        self._depth = 0
        self._block_since: float | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around work with the session; another thread's is waited for.

        Raises:
            SessionBusyError: another thread has been in a transaction block for too long; or it works, and this one only looks.
        """
        me = threading.get_ident()
        depth = self._depth if self._owner == me else 0
        try:
            self._take(me, depth)
            yield
        finally:
            # not by how often it was taken: an interrupt may come after the lock was taken and before that is known
            if self._owner == me:
                self._give_back(depth)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Hold the turn around many operations of one thread, such as those of a transaction."""
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
