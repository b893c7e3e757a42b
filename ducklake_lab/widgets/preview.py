"""An uncommitted change: its diffs, with buttons to commit it and to roll it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import traitlets

from ducklake_lab.widgets import diff as diff_view
from ducklake_lab.widgets.html import counted, escape, view
from ducklake_lab.widgets.mounted import Mounted, script, styles

if TYPE_CHECKING:
    from ducklake_lab.session.transactions import Preview

#: Tables whose diff is drawn; more are named.
LIMIT = 8


class PreviewView(Mounted):
    """The diffs of a Preview under a bar with Commit and Roll back.

    Attributes:
        preview: what is shown; `view.preview.commit()` does what the button does.
        state: `open`, `committed` or `rolled back`.
        snapshot: id of the snapshot it became, or None.
        message: the commit message that the statement came with; the box begins with it.
    """

    _esm = script("kit.js", "preview.js")
    _css = styles("preview.css")

    state = traitlets.Unicode("open").tag(sync=True)
    snapshot = traitlets.Int(None, allow_none=True).tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)

    def __init__(self, preview: Preview) -> None:
        self.preview = preview
        super().__init__(state=preview.state, message=preview.message or "")

    def commit(self, message: str | None = None, author: str | None = None) -> None:
        """Makes the change a snapshot."""
        try:
            self.preview.commit(message, author)
        finally:
            self._follow()

    def rollback(self) -> None:
        """Undoes the change."""
        try:
            self.preview.rollback()
        finally:
            self._follow()

    def answer_commit(self, content: dict[str, object]) -> None:
        """Commits, with the message that was typed."""
        self.commit(str(content.get("message") or "").strip())

    def answer_rollback(self, _content: dict[str, object]) -> None:
        self.rollback()

    def _follow(self) -> None:
        if self.preview.snapshot is not None:
            self.snapshot = self.preview.snapshot.snapshot_id
        self.state = self.preview.state

    def still(self) -> str:
        diffs = self.preview.diffs
        message = {
            "open": "Not committed: nothing is in the lake yet. Run COMMIT or ROLLBACK to end it.",
            "committed": "Committed.",
            "rolled back": "Rolled back: the lake is as it was.",
        }[self.preview.state]
        more = ""
        if len(diffs) > LIMIT:
            names = ", ".join(escape(diff.table) for diff in diffs[LIMIT:])
            more = view(f"<p>{counted(len(diffs) - LIMIT, 'more table')}: {names}</p>", label="More tables")
        head = view(f'<p class="dlk-pv-told"><b>Preview</b> {message}</p>', label="Preview")
        drawn = "".join(diff_view.render(diff) for diff in diffs[:LIMIT])
        return head + drawn.replace(diff_view.NOT_COMMITTED, self._became()) + more

    def _became(self) -> str:
        """The later state of the diffs."""
        if self.preview.state == "open":
            return diff_view.NOT_COMMITTED
        snapshot = self.preview.snapshot
        return self.preview.state if snapshot is None else str(snapshot.snapshot_id)

    def __repr__(self) -> str:
        return repr(self.preview)
