"""The progress line below a running cell, removed at the end; JupyterLab's sidebar shows it, too."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle, clear_output

from ducklake_lab.duckdb.stopping import on_interrupt
from ducklake_lab.widgets.html import DOT, clip, escape, percent, seconds, size, view

if TYPE_CHECKING:
    from ducklake_lab.spark.progress import Progress

#: Seconds before the line appears.
_PATIENCE = 0.4
_INTERVAL = 0.25
#: Most characters of a statement shown.
_BEGINNING = 120

_STYLE = """
.dlk .dlk-run{display:flex;align-items:center;gap:10px;color:var(--dlk-soft);font-size:12px}
.dlk .dlk-run span:first-child{width:140px;height:4px;border-radius:2px;background:var(--dlk-tint);overflow:hidden}
.dlk .dlk-run i{display:block;height:4px;background:var(--dlk-accent)}
"""


def describe(
    progress: Progress | float | None, elapsed: float, *, starting: bool = False, stopping: bool = False
) -> str:
    """Returns `Spark starting 4 s`, `stage 2/2 · 3 of 12 tasks · 31 MB read · 6 s`, `43% · 6 s` or `stopping… 2 s`.

    Args:
        progress: Spark's progress, or the finished share in process.
    """
    if stopping:
        return f"stopping… {seconds(elapsed)}"
    if starting:
        return f"Spark starting {seconds(elapsed)}"
    if progress is None:
        return f"running {seconds(elapsed)}"
    if isinstance(progress, float):
        return f"{percent(progress)}{DOT}{seconds(elapsed)}"
    stage = min(progress.stages_done + 1, progress.stages)
    parts = [f"stage {stage}/{progress.stages}", f"{progress.tasks_done} of {progress.tasks} tasks"]
    if progress.bytes_read:
        parts.append(f"{size(progress.bytes_read)} read")
    return DOT.join((*parts, seconds(elapsed)))


def beginning(sql: str) -> str:
    """Returns the first line of a statement for display; "" if it may hold a secret."""
    from ducklake_lab.redaction import hide
    from ducklake_lab.session.redacting import may_hold_secret

    lines = [line.strip() for line in hide(sql).splitlines() if line.strip() and not line.lstrip().startswith("--")]
    return "" if not lines or may_hold_secret(sql) else clip(lines[0], _BEGINNING)


class ProgressLine:
    """Shows a changing line during a `with` block in a notebook; nothing in a terminal.

    Args:
        starting: returns whether Spark is starting.
        whole_cell: the statement is the whole cell, so that its output may be cleared; otherwise the line is blanked.
        page: called from another thread with `text` and `share` (of finished tasks; None if unknown) after each
            change, and with None at the end.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        starting: Callable[[], bool],
        *,
        whole_cell: bool,
        page: Callable[[Mapping[str, object] | None], None] | None = None,
    ) -> None:
        self._visible = hasattr(shell, "kernel")
        self._starting = starting
        self._whole_cell = whole_cell
        self._page = page
        self._progress: Progress | float | None = None
        self._stopped: float | None = None
        self._woken = threading.Event()
        self._handler = ExitStack()
        self._done = threading.Event()
        self._handle: DisplayHandle | None = None
        self._thread: threading.Thread | None = None
        self._started = time.monotonic()

    def report(self, progress: Progress | float) -> None:
        """Takes the latest progress; any thread may call it."""
        self._progress = progress

    def stop(self) -> None:
        """Shows immediately that the statement is stopping, which may take a while."""
        self._stopped = time.monotonic()
        self._woken.set()

    def __enter__(self) -> Callable[[Progress | float], None]:
        self._started = time.monotonic()
        if self._visible:
            self._handler.enter_context(on_interrupt(self.stop))
            # the context knows the cell of the output
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)
            self._thread.start()
        return self.report

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._handler.close()
        self._done.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        if self._handle is None:
            return
        if self._page is not None:
            self._page(None)
        if self._whole_cell:
            clear_output()
        else:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _run(self) -> None:
        shown = ""
        wait = _PATIENCE
        while True:
            self._woken.wait(wait)
            if self._done.is_set():
                return
            self._woken.clear()
            wait = _INTERVAL
            stopped = self._stopped
            elapsed = time.monotonic() - (self._started if stopped is None else stopped)
            text = describe(self._progress, elapsed, starting=self._starting(), stopping=stopped is not None)
            if text == shown:
                continue
            shown = text
            bundle = {"text/html": _html(text, self._progress), "text/plain": text}
            if self._handle is None:
                self._handle = DisplayHandle()
                self._handle.display(bundle, raw=True)
            else:
                self._handle.update(bundle, raw=True)
            if self._page is not None:
                self._page({"text": text, "share": _share(self._progress)})


def _share(progress: Progress | float | None) -> float | None:
    """Returns the finished share of tasks, or of a statement in process; None if unknown."""
    if isinstance(progress, float):
        return progress
    return progress.tasks_done / progress.tasks if progress is not None and progress.tasks else None


def _html(text: str, progress: Progress | float | None) -> str:
    bar = f'<span aria-hidden="true"><i style="width:{_share(progress) or 0.0:.0%}"></i></span>'
    return view(
        f'<div class="dlk-run">{bar}<span role="status">{escape(text)}</span></div>', style=_STYLE, label="Progress"
    )
