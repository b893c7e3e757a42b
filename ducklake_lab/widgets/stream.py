"""A streaming query under the cell that started it: what it does now, and in the notebook what it did and when."""

from __future__ import annotations

import contextvars
import threading
import time as clock
from datetime import datetime
from typing import TYPE_CHECKING

import traitlets

from ducklake_lab.widgets.html import DOT, clip, count, counted, escape, time, view, visible
from ducklake_lab.widgets.mounted import Mounted, script, styles

if TYPE_CHECKING:
    from ducklake_lab.spark.streams import Stream, StreamState

#: Seconds between two looks.
INTERVAL = 1.0
#: Seconds between two saved outputs of the notebook while the query runs.
_KEPT = 10.0
_LONGEST = 400
_STYLE = ".dlk .dlk-st-error{color:var(--dlk-wrong);overflow-wrap:anywhere}"


def facts(state: StreamState) -> str:
    """`batch 7 · 1,200 rows · waiting for data to arrive`."""
    if state.batch is None:
        parts = ["no batch yet"]
    else:
        since = f" since batch {count(state.since)}" if state.since else ""
        parts = [f"batch {count(state.batch)}", counted(state.rows, "row") + since]
    return DOT.join([*parts, visible(clip(state.doing, 80))] if state.doing else parts)


class StreamView(Mounted):
    """The state of a streaming query, which a thread looks at until the query ends.

    Attributes:
        state: `running`, `stopped` or `failed`.
        facts: batches and rows, for people.
        error: the first line of the error that ended it.
    """

    _esm = script("stream")
    _css = styles("stream")

    name = traitlets.Unicode("").tag(sync=True)
    state = traitlets.Unicode("running").tag(sync=True)
    facts = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._looked = datetime.now().astimezone()
        super().__init__(name=visible(clip(stream.name, 80)))
        self.look()

    def look(self) -> None:
        """Looks once."""
        progress = self.stream.look()
        self._looked = datetime.now().astimezone()
        with self.hold_sync():
            self.facts = facts(progress)
            self.error = visible(clip(progress.error, _LONGEST))
            self.state = progress.state

    def _ipython_display_(self) -> None:
        self._display_to_rewrite()
        # the context carries which cell the output belongs to
        threading.Thread(target=contextvars.copy_context().run, args=(self._watch,), daemon=True).start()

    def _watch(self) -> None:
        kept = clock.monotonic()
        while self.state == "running":
            clock.sleep(INTERVAL)
            self.look()
            if self.state != "running" or clock.monotonic() - kept >= _KEPT:
                self.rewrite()
                kept = clock.monotonic()

    def still(self) -> str:
        when = f"{'as of' if self.state == 'running' else 'seen'} {time(self._looked, precise=True)} {self._looked:%Z}"
        error = f'<p class="dlk-st-error">{escape(self.error)}</p>' if self.error else ""
        return view(
            f'<p><b>Stream {escape(self.name)}</b> {self.state} <span class="dlk-soft">{escape(when)}{DOT}'
            f"{escape(self.facts)}</span></p>{error}",
            style=_STYLE,
            label="Stream",
        )

    def __repr__(self) -> str:
        return DOT.join(part for part in (f"Stream {self.name} {self.state}", self.facts, self.error) if part)
