"""An uncommitted change: its diffs, with buttons for commit and rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import traitlets

from ducklake_lab.widgets import diff as diff_view
from ducklake_lab.widgets import diff_rows
from ducklake_lab.widgets.html import counted, escape, view
from ducklake_lab.widgets.lives import life_of_change
from ducklake_lab.widgets.mounted import Mounted, script, styles
from ducklake_lab.widgets.recorded import metadata

if TYPE_CHECKING:
    from ducklake_lab.session.open_transaction import Preview

#: Most tables with their diffs; others are only named.
LIMIT = 8


class PreviewView(Mounted):
    """The diffs of a Preview under a bar with Commit and Roll back.

    Attributes:
        preview: the displayed preview; `view.preview.commit()` does the same as the button.
        state: `open`, `committed` or `rolled back`.
        snapshot: id of the committed snapshot, or None.
        message: the statement's commit message, the initial text of the box.
    """

    _esm = script("preview")
    _css = styles("preview")

    state = traitlets.Unicode("open").tag(sync=True)
    snapshot = traitlets.Int(None, allow_none=True).tag(sync=True)
    message = traitlets.Unicode("").tag(sync=True)

    def __init__(self, preview: Preview) -> None:
        self.preview = preview
        # staged rows are gone after the end
        self._drawn = "".join(diff_view.render(diff) for diff in preview.diffs[:LIMIT])
        super().__init__(state=preview.state, message=preview.message or "")

    def commit(self, message: str | None = None, author: str | None = None) -> None:
        """Commits the change as a snapshot."""
        try:
            self.preview.commit(message, author)
        finally:
            self.follow()

    def rollback(self) -> None:
        """Rolls the change back."""
        try:
            self.preview.rollback()
        finally:
            self.follow()

    def answer_commit(self, content: dict[str, object]) -> None:
        """Commits with the typed message."""
        self.commit(str(content.get("message") or "").strip())

    def answer_rollback(self, _content: dict[str, object]) -> None:
        self.rollback()

    def answer_life(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns who set a cell before this change, and what changed its row.

        Args:
            content: `table` counts the tables of rows, `row` and `cell` the rows and cells in it, marks and row ids too.
        """
        drawn = [diff for diff in self.preview.diffs[:LIMIT] if diff.summary.changed and diff.limit]
        diff = drawn[int(content["table"])]
        rows, _, names = diff_rows.drawn(diff)
        column = int(content["cell"]) - (2 if diff_rows.has_row_ids(diff) else 1)
        return life_of_change(
            diff, rows[int(content["row"])], names[max(0, column)], is_open=self.preview.state == "open"
        )

    def answer_still(self, _content: dict[str, object]) -> dict[str, object]:
        """Returns the static view, for a reloaded page."""
        return {"html": self._repr_html_()}

    def follow(self) -> None:
        """Shows the result of an ended change, here and in the notebook; any call may have ended it."""
        if self.preview.state == self.state:
            return
        with self.hold_sync():
            if self.preview.snapshot is not None:
                self.snapshot = self.preview.snapshot.snapshot_id
            self.state = self.preview.state
        self.rewrite()

    def _ipython_display_(self) -> None:
        self._display_to_rewrite()

    def still(self) -> str:
        diffs = self.preview.diffs
        more = ""
        if len(diffs) > LIMIT:
            names = ", ".join(escape(diff.table) for diff in diffs[LIMIT:])
            more = view(f"<p>{counted(len(diffs) - LIMIT, 'more table')}: {names}</p>", label="More tables")
        head = view(f'<p class="dlk-pv-told">{self._told()}</p>', label="Preview")
        return head + self._checks() + self._drawn.replace(diff_view.NOT_COMMITTED, self._became()) + more

    def _checks(self) -> str:
        """Returns what depends on what goes, and the expectations that the changes violate."""
        lines = [f"<li>{escape(text)}</li>" for text in self.preview.dependents[:LIMIT]]
        if not self.preview.checks and not lines:
            return ""
        for outcome in self.preview.checks:
            word = "refuses the commit" if outcome.expectation.on == "fail" else escape(outcome.did)
            first = outcome.first_text()
            rows = f"<br><small>{escape(first)}</small>" if first else ""
            lines.append(
                f"<li><b>{escape(outcome.expectation.name)}</b> {escape(outcome.shown)}: "
                f"{counted(outcome.count, 'row')}, {word}{rows}</li>"
            )
        return view(f'<ul class="dlk-pv-checks">{"".join(lines)}</ul>', label="Expectations")

    def record(self) -> dict[str, Any]:
        return metadata([read for diff in self.preview.diffs for read in diff.reads], wrote=True)

    def _told(self) -> str:
        """Returns the state as a sentence that is also true in a reopened notebook."""
        if self.preview.state == "committed":
            snapshot = self.preview.snapshot
            return "<b>Committed</b>" + (f" as snapshot {snapshot.snapshot_id}" if snapshot is not None else "")
        if self.preview.state == "rolled back":
            return "<b>Rolled back</b>: the lake is as it was"
        return "<b>Preview</b> Not committed: nothing is in the lake. COMMIT or ROLLBACK ends it; the end of the kernel rolls it back."

    def _became(self) -> str:
        """Returns the later state of the diffs."""
        if self.preview.state == "open":
            return diff_view.NOT_COMMITTED
        snapshot = self.preview.snapshot
        ended = self.preview.state if snapshot is None else str(snapshot.snapshot_id)
        return f'<span class="dlk-pv-state">{ended}</span>'

    def __repr__(self) -> str:
        return repr(self.preview)
