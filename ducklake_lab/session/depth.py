"""Deeply nested statements: how deep Python may go for them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.errors import UnsupportedFeatureError

#: Enough for DuckDB's own limit, 1,000 levels of an expression; a level takes up to 25 calls, and 80 bytes of C's stack each.
_DEPTH = 30_000
_lock = threading.Lock()
_inside = 0
_usual = 0


@contextmanager
def room_for_depth() -> Iterator[None]:
    """Around the work on one text: Python's limit is raised, in all threads, as long as somebody needs it.

    Raises:
        UnsupportedFeatureError: that was not enough.
    """
    global _inside, _usual
    with _lock:
        if _inside == 0:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, _DEPTH))
        _inside += 1
    try:
        yield
    except RecursionError:
        raise UnsupportedFeatureError("The statement is nested too deeply; split it into several.") from None
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_usual)
