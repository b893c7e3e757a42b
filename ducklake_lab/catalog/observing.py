"""Reports the queries that go through a connection to a catalog."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa

_observed: WeakSet[sa.Connection] = WeakSet()


def observe(connection: sa.Connection, report: Callable[[str, float], None]) -> None:
    """From now on `report` is called after each query of a connection: with its text, and how long it took in seconds."""
    if connection in _observed:
        return
    _observed.add(connection)

    def before(_conn: Any, _cursor: Any, _sql: str, _parameters: Any, context: Any, _many: bool) -> None:
        context.started = time.perf_counter()

    def after(_conn: Any, _cursor: Any, sql: str, _parameters: Any, context: Any, _many: bool) -> None:
        report(sql, time.perf_counter() - context.started)

    listen: Callable[..., Any] = sa.event.listen
    listen(connection, "before_cursor_execute", before)
    listen(connection, "after_cursor_execute", after)
