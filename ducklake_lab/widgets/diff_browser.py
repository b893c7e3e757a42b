"""A diff with rows to filter, sort and page through; a static view in a notebook without a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import traitlets

from ducklake_lab.diff.answers import AnswerDiff
from ducklake_lab.diff.model import RowChoice, RowKind
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.widgets import changed_rows, diff_rows
from ducklake_lab.widgets import diff as diff_view
from ducklake_lab.widgets.html import counted
from ducklake_lab.widgets.lives import has_lives, life_of_change
from ducklake_lab.widgets.mounted import Mounted, script, styles
from ducklake_lab.widgets.recorded import bundle, metadata

if TYPE_CHECKING:
    from ducklake_lab.diff.row_diff import RowDiff

#: Kinds of rows, in the order of the static view.
_KINDS: tuple[RowKind, ...] = ("deleted", "inserted", "updated")


class DiffBrowser(Mounted):
    """The static view of a diff, whose rows are a grid.

    Attributes:
        diff: the displayed diff.
        kind: the kind of displayed rows; "" for all.
        changed: show only updated rows with a change in this column; "" for all.
        sort: [column, descending] pairs, most significant first. A new value sorts in the notebook.
        every: show all columns, up to 400; otherwise changed ones, and some to identify a row.
    """

    _esm = script("diff")
    _css = styles("diff")

    kind = traitlets.Unicode("").tag(sync=True)
    changed = traitlets.Unicode("").tag(sync=True)
    sort: traitlets.List[list[object]] = traitlets.List().tag(sync=True)
    every = traitlets.Bool(False).tag(sync=True)
    wide = traitlets.Int(0).tag(sync=True)
    kinds: traitlets.List[object] = traitlets.List().tag(sync=True)
    cells: traitlets.List[object] = traitlets.List().tag(sync=True)
    columns: traitlets.List[list[object]] = traitlets.List().tag(sync=True)
    passing = traitlets.Int(0).tag(sync=True)
    look = traitlets.Int(0).tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
    can_copy = traitlets.Bool(False).tag(sync=True)
    has_row_ids = traitlets.Bool(True).tag(sync=True)
    has_lives = traitlets.Bool(False).tag(sync=True)
    has_sources = traitlets.Bool(False).tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)

    def __init__(self, diff: RowDiff) -> None:
        self.diff = diff
        self._choice = diff.choice
        updated = {column.name: column.updated for column in diff.columns}
        super().__init__(
            kind=diff.choice.kind or "",
            changed=diff.choice.changed or "",
            sort=[list(key) for key in diff.choice.sort],
            kinds=[[kind, number] for kind in _KINDS if (number := diff.count(RowChoice(kind)))],
            can_copy=diff.end is not None and diff.files is not None,
            has_row_ids=diff_rows.has_row_ids(diff),
            has_lives=has_lives(diff),
            has_sources=isinstance(diff, AnswerDiff) and diff.has_sources,
            cells=[[name, updated[name]] for name in diff_rows.most_changed(diff.columns)],
            wide=len(diff.names),
            **self._seen(diff.choice),
        )
        self.observe(self._look, ["kind", "changed", "sort", "every"])

    def _seen(self, choice: RowChoice) -> dict[str, Any]:
        """Returns the facts about the chosen rows for the page."""
        return changed_rows.facts(self.diff, choice, every=self.every)

    def _look(self, _change: Any) -> None:
        try:
            keys = tuple((str(name), bool(down)) for name, down in self.sort)
            choice = RowChoice(cast("RowKind | None", self.kind or None), self.changed or None, keys)
            seen = self._seen(choice)
        except DuckLakeError as error:
            self.problem = str(error)
            return
        self._choice = choice
        with self.hold_sync():
            self.problem = ""
            for name, value in seen.items():
                setattr(self, name, value)
            self.look += 1

    def answer_page(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns a range of the chosen rows, both values of each cell as text; NULL is null."""
        rows = self.diff.page(int(content["count"]), int(content["start"]), self._choice, as_shown=True)
        names = [str(name) for name, _, _ in self.columns]
        return {}, [changed_rows.packed(rows, names)]

    def answer_life(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns who set a cell, as of the later state that is committed and has it, and what changed its row."""
        (row,) = self.diff.page(1, int(content["row"]), self._choice, as_shown=True)
        column = str(self.columns[int(content["column"])][0])
        return life_of_change(self.diff, row, column, is_open=self.diff.end is None)

    def answer_sources(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static diff of the rows behind a row of an answer, or behind a bar of a chart."""
        assert isinstance(self.diff, AnswerDiff)
        if "bar" in content:
            behind = self.diff.sources(self.diff.group_steps[int(content["chart"])].groups[int(content["bar"])])
        else:
            (row,) = self.diff.page(1, int(content["row"]), self._choice, as_shown=True)
            behind = self.diff.sources(row)
        summary = behind.summary
        states = f"at snapshots {behind.start.snapshot_id} and {behind.end.snapshot_id if behind.end else ''}"
        if not summary.changed:
            return {
                "html": "",
                "sentence": f"The rows behind it, {counted(summary.unchanged, 'row')}, are the same {states}.",
            }
        return {"html": behind._repr_html_(), "sentence": f"Rows behind it that differ {states}:"}

    def answer_sql(self, _content: dict[str, Any]) -> dict[str, Any]:
        """Returns the statement for the displayed rows, in order."""
        return {"sql": self.diff.statement(self._choice)}

    def still(self) -> str:
        return diff_view.render(self.diff)

    def record(self) -> dict[str, Any]:
        return metadata(self.diff.reads)

    def __repr__(self) -> str:
        return repr(self.diff)


def live(diff: RowDiff) -> Any:
    """Returns a notebook's output for a diff; the static view if no row changed."""
    return DiffBrowser(diff)._repr_mimebundle_() if diff.summary.changed else bundle(diff)
