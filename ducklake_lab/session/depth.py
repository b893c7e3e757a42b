"""Deeply nested statements: the recursion limit for them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.errors import UnsupportedFeatureError

#: Enough for DuckDB's own limit of 1,000 expression levels. A level takes up to 25 calls of 80 bytes of C stack each.
_DEPTH = 30_000
_lock = threading.Lock()
_inside = 0
_usual = 0


@contextmanager
def room_for_depth() -> Iterator[None]:
    """Raises Python's recursion limit while one text is processed; the limit holds for all threads.

    Raises:
        UnsupportedFeatureError: the text is nested deeper than that limit allows.
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
