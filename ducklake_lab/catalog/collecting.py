"""Python's cyclic garbage collector, and many rows at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Around, or on, what makes objects of many rows.

    Ten thousand new tuples make the collector look through all objects of the process, which are millions in a
    notebook; there is nothing to collect among rows.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
