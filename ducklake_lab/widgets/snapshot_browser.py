"""The history of a lake to click through; in a notebook without a kernel, the same as static HTML."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ducklake_lab.errors import DuckLakeError, UsageError
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.widgets import snapshots, timeline

_STATIC = Path(__file__).parent / "static"

#: (table, earlier snapshot, later snapshot) -> static HTML of the diff
DiffProvider = Callable[[str, int, int], str]


class SnapshotBrowser(anywidget.AnyWidget):
    """Timeline and list of snapshots.

    The output in the notebook is static HTML, and only that is saved: JupyterLab would show an error in place of a
    widget whose kernel is gone. The widget's model, which lives as long as the kernel, puts the interactive browser in
    the place of the static one. Inside another widget (a box, say) it is an ordinary widget.

    Attributes:
        selected: id of the selected snapshot, or None. Setting it selects in the notebook.
        compare: (earlier, later) ids of the two selected to compare, or ().
        query: the text filtered by.
        history: the snapshots shown.
    """

    _esm = _STATIC / "snapshots.js"
    _css = _STATIC / "snapshots.css"

    rows: Any = traitlets.List().tag(sync=True)
    selected: Any = traitlets.Int(None, allow_none=True).tag(sync=True)
    compare: Any = traitlets.List(traitlets.Int()).tag(sync=True)
    query: Any = traitlets.Unicode("").tag(sync=True)
    title: Any = traitlets.Unicode("Snapshots").tag(sync=True)
    mount: Any = traitlets.Unicode().tag(sync=True)
    can_diff: Any = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, history: Sequence[HistoryEntry], *, title: str = "Snapshots", diff: DiffProvider | None = None
    ) -> None:
        self.history = tuple(history)
        self._diff = diff
        super().__init__(
            rows=[_row(entry) for entry in self.history],
            title=title,
            mount=f"ducklake-{uuid.uuid4().hex[:12]}",
            can_diff=diff is not None,
        )
        self.on_msg(self._receive)

    @traitlets.validate("selected")
    def _known(self, proposal: Any) -> int | None:
        chosen: int | None = proposal["value"]
        if chosen is not None:
            self._require(chosen)
        return chosen

    @traitlets.validate("compare")
    def _pair(self, proposal: Any) -> list[int]:
        chosen = sorted(proposal["value"])
        if chosen and len(chosen) != 2:
            raise UsageError(f"compare takes two snapshot ids, or none; not {len(chosen)}.")
        for snapshot in chosen:
            self._require(snapshot)
        return chosen

    def _require(self, snapshot: int) -> None:
        if all(entry.info.snapshot_id != snapshot for entry in self.history):
            raise UsageError(f"There is no snapshot {snapshot} in this history.")

    def _receive(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Answers the browser's wish to see a diff."""
        if content.get("type") != "diff" or self._diff is None:
            return
        table, start, end = str(content["table"]), int(content["start"]), int(content["end"])
        answer = {"type": "diff", "key": f"{table}/{start}/{end}"}
        try:
            self.send({**answer, "html": self._diff(table, start, end)})
        except DuckLakeError as error:
            self.send({**answer, "error": str(error)})

    def _repr_html_(self) -> str:
        return f'<div id="{self.mount}">{snapshots.render(self.history, self.title)}</div>'

    def _repr_mimebundle_(self, **_options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # No widget-view type here: a frontend prefers it to HTML, and shows an error where there is no model.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}, {}

    def __repr__(self) -> str:
        newest = sorted(self.history, key=lambda entry: entry.info.snapshot_id, reverse=True)
        return "\n".join(timeline.describe(entry) for entry in newest[: snapshots.LIMIT]) or "No snapshots."


def _row(entry: HistoryEntry) -> list[Any]:
    info = entry.info
    return [
        info.snapshot_id,
        round(info.snapshot_time.timestamp() * 1000),
        entry.kind,
        info.author,
        info.commit_message,
        list(entry.changes),
        list(entry.tables),
        entry.rows_added,
        entry.rows_removed,
        entry.bytes_added,
    ]
