"""Pauses of Python's cyclic garbage collector, which many new objects start needlessly."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Pause the collector in a block or function that makes objects of many rows.

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


@contextmanager
def importing() -> Iterator[None]:
    """Pause the collector around imports of many modules: their objects stay, and none is looked at."""
    with without_collecting():
        yield
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
