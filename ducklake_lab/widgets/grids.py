"""Turns results into grids after the notebook has their rows as a table, while a kernel runs."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.widgets.html import mounted_at, new_mount
from ducklake_lab.widgets.recorded import record_of
from ducklake_lab.widgets.text import has_kernel

if TYPE_CHECKING:
    from ducklake_lab.session.rows.result import Result
    from ducklake_lab.widgets.table_view import ResultBrowser

#: Most grids at a time. The oldest becomes a table again, and its rows are freed.
MOST = 100

#: Whether results become grids by default.
by_default = True

_waiting: deque[tuple[Result, str]] = deque(maxlen=MOST)
_live: deque[ResultBrowser] = deque()


def bundle(result: Result) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Returns a notebook's output for a result, which may become a grid (see `Result.view`); None without a kernel."""
    loop = _loop()
    if loop is None:
        return None
    try:
        html = result._repr_html_()
    except DuckLakeError:
        # the table shows the error of its rows
        return None
    if _becomes_grid(result):
        mount = new_mount()
        html = mounted_at(mount, html)
        _waiting.append((result, mount))
        # the kernel runs it after it has answered the cell: the import of widgets takes half a second
        loop.call_later(0, _make)
    return {"text/plain": repr(result), "text/html": html}, record_of(result)


def _becomes_grid(result: Result) -> bool:
    if result.grid == "none" or not (result.grid or by_default):
        return False
    try:
        result.view()
    except DuckLakeError:
        return False
    return bool(result.head(1).num_rows)


def _loop() -> asyncio.AbstractEventLoop | None:
    """Returns the event loop of the current kernel; None without one, as in a terminal."""
    if not has_kernel():
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _make() -> None:
    """Makes the grid that has waited longest."""
    if not _waiting:
        return
    from ducklake_lab.widgets.table_view import OPEN, ResultBrowser

    result, mount = _waiting.popleft()
    _live.append(ResultBrowser(result, shows=OPEN if result.grid == "open" else (), mount=mount))
    if len(_live) > MOST:
        _live.popleft().close()
