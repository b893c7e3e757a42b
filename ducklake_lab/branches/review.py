"""A branch for those who decide over its merge: what it changed, what its lake did meanwhile, and the conflicts of both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ducklake_lab.branches.branch import Branch
from ducklake_lab.branches.merge import BranchMerge
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.diff.lake import LakeDiff, diff_lake
from ducklake_lab.diff.model import ColumnChange, RowChange
from ducklake_lab.diff.row_diff import page, save
from ducklake_lab.engine.placement import Engines
from ducklake_lab.hooks import hook
from ducklake_lab.merging.conflicts import Conflict
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Review:
    """The changes of a branch, beside those of the lake that it began on.

    Attributes:
        branch: the branch.
        lake: the lake's title.
        commits: the branch's snapshots that are not merged yet, oldest first.
        tables: the tables that they changed, each with its diff.
        base_changes: the tables that the lake changed since the branch began.
        conflicts: what both changed, as `merge` would list it; 10,000 at most.
        total: the number of all conflicts.
        checks: the outcomes of the expectations of these tables on the rows that came on the branch; see
            `expectations.outcomes`.
    """

    branch: Branch
    lake: str
    commits: Sequence[SnapshotInfo]
    tables: LakeDiff
    base_changes: LakeDiff
    conflicts: Sequence[Conflict]
    total: int
    checks: tuple[Any, ...] = ()

    @property
    def schema(self) -> dict[str, tuple[ColumnChange, ...]]:
        """Changes of columns, by the name of the table."""
        return {one.name: one.schema for one in self.tables if one.schema}

    def rows(self, table: str, limit: int = 1000) -> Sequence[RowChange]:
        """Return the first rows of a table that the branch changed.

        Raises:
            EntryNotFoundError: the branch did not change the table.
        """
        return self.tables.table(table).diff.rows(limit)

    @property
    def is_mergeable(self) -> bool:
        """Whether a merge needs no rule."""
        return self.total == 0

    def to_dict(self) -> dict[str, Any]:
        """The review as values that JSON has."""
        return {
            "branch": self.branch.name,
            "lake": self.lake,
            "began_at": self.branch.snapshot_id,
            "commits": [
                {
                    "snapshot_id": one.snapshot_id,
                    "time": one.snapshot_time.isoformat(),
                    "author": one.author,
                    "message": one.commit_message,
                }
                for one in self.commits
            ],
            "changes": self.tables.to_dict(),
            "base_changes": self.base_changes.to_dict(),
            "conflicts": [one.to_dict() for one in self.conflicts],
            "conflicts_total": self.total,
            "checks": [
                {
                    "table": one.table,
                    "expectation": one.expectation.name,
                    "definition": one.shown,
                    "violations": one.count,
                    "first_rows": one.first_text() or None,
                }
                for one in self.checks
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_html(self, path: str | Path | None = None) -> str:
        """The review as one self-contained page that needs no network; also written to a file if one is given.

        Raises:
            UsageError: the file cannot be written.
        """
        return page("review.page", self, path)

    def to_markdown(self) -> str:
        """The review as Markdown, for the text of a pull request."""
        text: str = hook("review.markdown")(self)
        return text

    def save(self, path: str | Path) -> None:
        """Writes the review to a file: a page to `.html`, text to `.md`, values to `.json`.

        Raises:
            UsageError: the name ends otherwise, or the file cannot be written.
        """
        save(path, {".html": self.to_html, ".json": self.to_json, ".md": self.to_markdown}, "A review")

    def _repr_html_(self) -> str:
        html: str = hook("review.html")(self)
        return html

    def __repr__(self) -> str:
        conflicts = f"{self.total:,} conflict{'s' if self.total != 1 else ''}" if self.total else "no conflicts"
        lines = [f"<Review of {self.lake}#{self.branch.name}: {len(self.commits)} snapshots, {conflicts}>"]
        checks = [one.text() for one in self.checks if not one.passed]
        return "\n".join([*lines, *map(repr, self.tables), *map(str, self.conflicts[:20]), *checks])


def review_branch(transaction: Transaction, lake: Lake, branch: Branch, engines: Engines) -> Review:
    """Review a branch.

    Args:
        transaction: one on the lake that it began on, in which nothing is staged.
        lake: the branch, opened.
    """
    merge = BranchMerge(transaction, lake, branch, engines)
    conflicts = merge.find_conflicts()
    base = transaction.lake
    with lake.connect() as connection:
        since, tip = (lake.state(connection, lake.snapshot(connection, at)) for at in (merge.since, merge.tip))
    with base.connect() as connection:
        began = base.state(connection, base.snapshot(connection, branch.snapshot_id))
    tables = diff_lake(lake, since, tip, engines)
    base_changes = diff_lake(base, began, transaction.base, engines)
    for one in (*tables, *base_changes):
        _ = one.diff  # read now, while both are open
    commits = [replace(one, snapshot_time=base.local(one.snapshot_time)) for one in merge.commits]
    return Review(branch, base.title, commits, tables, base_changes, tuple(conflicts), conflicts.total)
