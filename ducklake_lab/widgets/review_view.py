"""A review to work with: tables of both sides, rows, conflicts, and remarks that are kept with the branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import traitlets

from ducklake_lab.branches.remarks import DEEDS
from ducklake_lab.diff.model import RowChoice, RowKind
from ducklake_lab.errors import EntryNotFoundError, UsageError
from ducklake_lab.widgets import changed_rows, conflict_rows, diff_rows, lake_diff
from ducklake_lab.widgets import diff as diff_view
from ducklake_lab.widgets import review as review_view
from ducklake_lab.widgets.html import clip, readable, time, visible, zone
from ducklake_lab.widgets.mounted import Mounted, script, styles
from ducklake_lab.widgets.recorded import metadata

if TYPE_CHECKING:
    from ducklake_lab.branches.remarks import Remark
    from ducklake_lab.branches.review import Review
    from ducklake_lab.diff.lake import TableDiff

#: Most tables and remarks that are listed.
_TABLES, _REMARKS = 500, 200
_KINDS: tuple[RowKind, ...] = ("deleted", "inserted", "updated")
_NAME = 160


class ReviewView(Mounted):
    """The review of a branch.

    Attributes:
        review: the displayed review; its methods `comment`, `approve` and `ask_for_changes` show here too after `follow`.
        tables: the names of the listed tables, which either side changed.
    """

    _esm = script("review")
    _css = styles("review")

    title = traitlets.Unicode().tag(sync=True)
    branch = traitlets.Unicode().tag(sync=True)
    facts = traitlets.Unicode().tag(sync=True)
    verdict = traitlets.Unicode("").tag(sync=True)
    listed: traitlets.List[dict[str, object]] = traitlets.List().tag(sync=True)
    more = traitlets.Int(0).tag(sync=True)
    commits: traitlets.List[list[object]] = traitlets.List().tag(sync=True)
    options: traitlets.List[str] = traitlets.List().tag(sync=True)
    checks: traitlets.List[str] = traitlets.List().tag(sync=True)
    zone = traitlets.Unicode("").tag(sync=True)
    remarks: traitlets.List[dict[str, object]] = traitlets.List().tag(sync=True)
    earlier = traitlets.Int(0).tag(sync=True)

    def __init__(self, review: Review) -> None:
        self.review = review
        branch, lake = ({one.name: one for one in side} for side in (review.tables, review.base_changes))
        self._conflicts: dict[str, list[Any]] = {}
        for conflict in review.conflicts:
            self._conflicts.setdefault(conflict.table, []).append(conflict)
        # tables with conflicts first: they need somebody
        names = dict.fromkeys([*self._conflicts, *branch, *lake])
        self.tables = list(names)[:_TABLES]
        self._sides: dict[str, dict[str, TableDiff]] = {"branch": branch, "lake": lake}
        super().__init__(
            title=visible(clip(review.lake, _NAME)),
            branch=visible(review.branch.name),
            facts=visible(review_view.facts(review)),
            more=len(names) - len(self.tables),
            zone=zone(review.commits[-1].snapshot_time) if review.commits else "",
            commits=[
                [
                    one.snapshot_id,
                    time(one.snapshot_time),
                    visible(clip(one.author or "", 60)),
                    visible(clip(one.commit_message or "", 300)),
                ]
                for one in review.commits[-review_view.COMMITS :]
            ],
            options=[visible(clip(str(one), 300)) for one in review.options[:_REMARKS]],
            checks=[
                visible(" · ".join(clip(one.text(), 300) for one in outcomes))
                for outcomes in list(review_view.failures(review).values())[:_REMARKS]
            ],
            **self._said(),
        )

    def _said(self) -> dict[str, Any]:
        """Returns the facts that remarks change."""
        remarks = self.review.remarks
        return {
            "verdict": self.review.verdict or "",
            "listed": [self._facts(name) for name in self.tables],
            "remarks": [self._remark(one) for one in remarks[-_REMARKS:]],
            "earlier": max(0, len(remarks) - _REMARKS),
        }

    def _facts(self, name: str) -> dict[str, object]:
        conflicts = len(self._conflicts.get(name, ()))
        return {
            "name": visible(clip(name, _NAME)),
            "branch": _counts(self._sides["branch"].get(name)),
            "lake": _counts(self._sides["lake"].get(name)),
            "conflicts": conflicts,
            "remarks": len(self.review.remarks_on(name)),
        }

    def _remark(self, remark: Remark) -> dict[str, object]:
        place = self.tables.index(remark.table) if remark.table in self.tables else None
        return {
            "id": remark.remark_id,
            "kind": remark.kind,
            "deed": DEEDS[remark.kind],
            "author": visible(clip(remark.author or "somebody", 60)),
            "time": f"{time(remark.time)} {zone(remark.time)}",
            "about": visible(clip(remark.about, 300)),
            "text": readable(remark.text),
            "table": place,
            "row": None if remark.row_id is None else str(remark.row_id),
            "column": None if remark.column is None else visible(clip(remark.column, _NAME)),
            "is_current": (remark.snapshot_id, remark.generation) == (self.review.tip, self.review.branch.generation),
        }

    def follow(self) -> None:
        """Shows the remarks that the review has now."""
        with self.hold_sync():
            for name, value in self._said().items():
                setattr(self, name, value)

    # Answers

    def answer_table(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the columns and counts of a table's changed rows on a side, for one kind of rows or all."""
        one = self._chosen(content)
        choice = _choice(content)
        diff = one.diff
        return {
            **changed_rows.facts(diff, choice, every=bool(content.get("every"))),
            "has_row_ids": diff_rows.has_row_ids(diff),
            "kinds": [[kind, number] for kind in _KINDS if (number := diff.count(RowChoice(kind)))],
            "wide": len(diff.names),
            "schema": [visible(text) for text in lake_diff.column_words(one.schema)],
        }

    def answer_page(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns a range of a table's changed rows."""
        diff = self._chosen(content).diff
        choice = _choice(content)
        rows = diff.page(int(content["count"]), int(content["start"]), choice, as_shown=True)
        names = changed_rows.facts(diff, choice, every=bool(content.get("every")))["columns"]
        return {}, [changed_rows.packed(rows, [str(name) for name, _, _ in names])]

    def answer_conflicts(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns a range of a table's conflicts."""
        conflicts = self._conflicts.get(self._table(content), [])
        start = int(content["start"])
        shown = conflicts[start : start + int(content["count"])]
        return {}, [conflict_rows.packed(shown, ("base", "lake", "branch"))]

    def answer_whole(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static diff of a table, with distributions of values and files."""
        return {"html": diff_view.render(self._chosen(content).diff)}

    def answer_remark(self, content: dict[str, Any]) -> dict[str, Any]:
        """Keeps a remark.

        Args:
            content: `said` is the kind, `table` the place of a table, `row` an id, `column` the place of a shown column; `conflict`, instead,
                the place of a conflict.
        """
        kind, text = str(content["said"]), str(content.get("text") or "")
        place = self._place(content) if content.get("table") is not None else {}
        if kind == "approval":
            self.review.approve(text)
        elif kind == "request":
            self.review.ask_for_changes(text, **place)
        else:
            self.review.comment(text, **place)
        self.follow()
        return self.answer_still(content)

    def answer_remove(self, content: dict[str, Any]) -> dict[str, Any]:
        """Removes a remark."""
        self.review.remove_remark(str(content["id"]))
        self.follow()
        return self.answer_still(content)

    def answer_still(self, _content: dict[str, object]) -> dict[str, Any]:
        """Returns the static view, for the saved output."""
        return {"html": self._repr_html_()}

    def _place(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the place of a remark on the branch."""
        name = self._table(content)
        if content.get("conflict") is not None:
            conflict = self._conflicts[name][int(content["conflict"])]
            return {"table": name, "row": conflict.row_id, "column": conflict.column}
        if content.get("row") is None or content["side"] != "branch":
            # rows that came in the lake have ids which other rows of the branch have
            return {"table": name}
        row, column = int(content["row"]), content.get("column")
        if column is None:
            return {"table": name, "row": row}
        diff = self._chosen(content).diff
        shown = changed_rows.facts(diff, _choice(content), every=bool(content.get("every")))["columns"]
        return {"table": name, "row": row, "column": shown[int(column)][0]}

    def _table(self, content: dict[str, Any]) -> str:
        at = int(content["table"])
        if not 0 <= at < len(self.tables):
            raise UsageError("There is no such table in the review; run the cell again.")
        return self.tables[at]

    def _chosen(self, content: dict[str, Any]) -> TableDiff:
        side, name = self._sides.get(str(content["side"]), {}), self._table(content)
        if name not in side:
            raise EntryNotFoundError(f"This side did not change {name}.")
        return side[name]

    def still(self) -> str:
        return review_view.render(self.review)

    def record(self) -> dict[str, Any]:
        return metadata(self.review.reads)

    def __repr__(self) -> str:
        return "\n".join(map(visible, repr(self.review).splitlines()))


def _counts(one: TableDiff | None) -> dict[str, object] | None:
    """Returns what a side did to a table; None for nothing."""
    if one is None:
        return None
    s = one.summary
    return {
        "kind": one.kind,
        "deleted": s.deleted,
        "inserted": s.inserted,
        "updated": s.updated,
        "cells": s.cells,
        "columns": [visible(text) for text in lake_diff.column_words(one.schema)],
        "was": visible(clip(one.renamed_from, _NAME)) if one.renamed_from else "",
    }


def _choice(content: dict[str, Any]) -> RowChoice:
    return RowChoice(cast("RowKind | None", content.get("kind") or None))


def live(review: Review) -> Any:
    """Returns a notebook's output for a review."""
    return ReviewView(review)._repr_mimebundle_()
