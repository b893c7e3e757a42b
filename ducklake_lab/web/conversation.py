"""Messages between one page and the widgets behind it.

The page sends JSON: `open` a view, `close` it, `head` for the heading of the page, `newest` to learn whether the
lake has moved on, and a widget's own messages. It names views, schemas and tables; it sends no SQL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ducklake_lab.errors import DuckLakeError, UsageError, did_you_mean
from ducklake_lab.model.quoting import path_parts, path_title, quote_identifier
from ducklake_lab.session import Session
from ducklake_lab.web.comms import PageComm, Post, packed
from ducklake_lab.widgets import browsers
from ducklake_lab.widgets.file_browser import FileBrowser
from ducklake_lab.widgets.mounted import Mounted
from ducklake_lab.widgets.schema_browser import SchemaBrowser
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.summary import of_session
from ducklake_lab.widgets.table_view import TableBrowser

#: The widgets of the page, by the names under which it loads their modules and styles.
WIDGETS: Mapping[str, type[Mounted]] = {
    "snapshots": SnapshotBrowser,
    "schema": SchemaBrowser,
    "rows": TableBrowser,
    "files": FileBrowser,
}
#: Those that show one table.
_OF_TABLES = ("rows", "files")
#: Traits that a page loads from addresses of their own.
_NOT_SENT = ("_esm", "_css", "layout")
#: Times that a view is read while others commit.
_TRIES = 3


def heading(session: Session) -> dict[str, Any]:
    """Return the facts about the lake above the page's views: name, sizes, snapshot, and its tables."""
    with session.reading():
        summary = of_session(session)
        state = session.state()
    tables = sorted((state.schemas[schema_id].name, name) for schema_id, name in state.tables.names.values())
    return {
        "name": summary.name,
        "facts": summary.facts(),
        "snapshot": summary.snapshot_id,
        "tables": [[schema, name, f"{path_title(schema)}.{name}"] for schema, name in tables],
    }


class Conversation:
    """One page's widgets.

    Args:
        session: has the lake in use, read-only.
        post: carries a message to the page.
    """

    def __init__(self, session: Session, post: Post) -> None:
        self._session = session
        self._post = post
        self._widgets: dict[str, tuple[Mounted, PageComm]] = {}
        self._answers: dict[str, Callable[[Mapping[str, object]], dict[str, object]]] = {
            "open": self._open,
            "close": self._close,
            "head": self._head,
            "newest": self._newest,
        }

    def receive(self, text: str | bytes) -> None:
        """Answer one message; the page gets an error of it in one line."""
        request: object = None
        try:
            message = _read(text)
            if message.get("type") == "comm_msg":
                self._hand_on(message)
                return
            request = message.get("request")
            kind = message.get("type")
            if kind not in self._answers:
                raise UsageError(f'A page sends no "{kind}".{did_you_mean(str(kind), self._answers)}')
            answer = self._answers[kind](message)
        except DuckLakeError as error:
            self._post(packed({"type": "failed", "request": request, "error": " ".join(str(error).split())}))
            return
        self._post(packed({"type": "answer", "request": request, **answer}))

    def end(self) -> None:
        """Closes all widgets: the page is gone."""
        for comm_id in list(self._widgets):
            self._discard(comm_id)

    def _hand_on(self, message: Mapping[str, object]) -> None:
        widget = self._widgets.get(str(message.get("comm")))
        data = message.get("data")
        # A page may still ask for something while its request to close the view is under way.
        if widget is not None and isinstance(data, dict):
            widget[1].receive(data)

    def _open(self, message: Mapping[str, object]) -> dict[str, Any]:
        """Makes a view and sends its state; gives the lake's heading of the same snapshot."""
        widget, head = self._settled(message)
        comm = _move(widget, self._post)
        self._widgets[comm.comm_id] = (widget, comm)
        widget.send_state([name for name in widget.keys if name not in _NOT_SENT])
        return {"comm": comm.comm_id, "head": head}

    def _settled(self, message: Mapping[str, object]) -> tuple[Mounted, dict[str, Any]]:
        """A view and a heading of one snapshot; of two where others commit faster than the view is read."""
        for _ in range(_TRIES):
            head = heading(self._session)
            widget = self._view(str(message.get("view")), message)
            if self._session.current_snapshot().snapshot_id == head["snapshot"]:
                break
        return widget, head

    def _view(self, view: str, message: Mapping[str, object]) -> Mounted:
        if view not in WIDGETS:
            raise UsageError(f'There is no view "{view}".{did_you_mean(view, WIDGETS)}')
        if view not in _OF_TABLES:
            return browsers.schema(self._session) if view == "schema" else browsers.snapshots(self._session)
        parts = (self._session.current_lake.alias, *path_parts(str(message.get("schema"))), str(message.get("table")))
        name = ".".join(map(quote_identifier, parts))
        return browsers.rows(self._session, name) if view == "rows" else browsers.files(self._session, name)

    def _close(self, message: Mapping[str, object]) -> dict[str, Any]:
        self._discard(str(message.get("comm")))
        return {}

    def _head(self, _message: Mapping[str, object]) -> dict[str, Any]:
        return {"head": heading(self._session)}

    def _newest(self, _message: Mapping[str, object]) -> dict[str, Any]:
        return {"snapshot": self._session.current_snapshot().snapshot_id}

    def _discard(self, comm_id: str) -> None:
        widget = self._widgets.pop(comm_id, None)
        if widget is not None:
            widget[0].close()


def _move(widget: Mounted, post: Post) -> PageComm:
    """Gives a widget a comm to the page, for the one that ipywidgets made, which leads nowhere; its id stays."""
    comm = PageComm(widget.model_id, post)
    widget.layout.close()
    widget.comm.close()
    widget.comm = comm
    return comm


def _read(text: str | bytes) -> dict[str, object]:
    try:
        message = json.loads(text)
    except ValueError as error:
        raise UsageError(f"A page sends JSON: {error}.") from None
    if not isinstance(message, dict):
        raise UsageError("A page sends JSON objects.")
    return message
