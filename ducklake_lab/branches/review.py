"""A branch for those who decide over its merge: what it changed, what its lake did meanwhile, the conflicts, and remarks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ducklake_lab.branches.left_options import LeftOption, left_options
from ducklake_lab.branches.merge import BranchMerge
from ducklake_lab.branches.remarks import (
    DEEDS,
    Kind,
    Remark,
    Verdict,
    new_remark,
    read_remarks,
    remove_remark,
    verdict_of,
    write_remark,
)
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import read_options
from ducklake_lab.diff.lake import LakeDiff, diff_lake
from ducklake_lab.diff.model import ColumnChange, RowChange
from ducklake_lab.diff.row_diff import page, save
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import EntryNotFoundError, UsageError, did_you_mean
from ducklake_lab.hooks import hook
from ducklake_lab.merging.conflicts import Conflict
from ducklake_lab.model.entries import SnapshotInfo, Table
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.units import counted
from ducklake_lab.transaction.transaction import Transaction

#: Row ids are 64-bit integers.
_MOST_ROWS = 2**63


@dataclass(frozen=True, slots=True)
class Remarking:
    """How remarks are written.

    Attributes:
        change: changes the remarks of the branch by a connection to its catalog, and returns all of them.
        author: returns the name of who speaks, or None.
    """

    change: Callable[[Callable[[sa.Connection], None]], Sequence[Remark]]
    author: Callable[[], str | None]


@dataclass(slots=True, eq=False)
class Review:
    """The changes of a branch, beside those of the lake that it began on.

    Attributes:
        branch: the branch.
        lake: the lake's title.
        tip: the branch's newest snapshot; an approval holds for the branch as it was then.
        commits: the branch's snapshots that are not merged yet, oldest first.
        tables: the tables that they changed, each with its diff.
        base_changes: the tables that the lake changed since the branch began.
        conflicts: what both changed, as `merge` would list it; 10,000 at most.
        total: the number of all conflicts.
        options: options that differ on both sides, which a merge leaves as they are in the lake.
        remarks: comments, approvals and requests for changes, oldest first; the newest 1,000.
        states: the branch where it began or was merged last, and at its tip.
        checks: the outcomes of the expectations of these tables on the rows that came on the branch since, and of those that
            reference rows which went; see `expectations.outcomes`.
    """

    branch: Branch
    lake: str
    tip: int
    commits: Sequence[SnapshotInfo]
    tables: LakeDiff
    base_changes: LakeDiff
    conflicts: Sequence[Conflict]
    total: int
    options: Sequence[LeftOption]
    remarks: Sequence[Remark]
    states: tuple[CatalogState, CatalogState] = field(repr=False)
    _remarking: Remarking = field(repr=False)
    _local: Callable[[datetime], datetime] = field(repr=False)
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

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of reviewers: "changes asked for", "approved", "approved earlier" before later changes, or None.

        The newest approval or request of each author counts, and one request outweighs all approvals.
        """
        return verdict_of(self.remarks, self.tip, self.branch.generation)

    # Remarks

    def comment(
        self,
        text: str,
        table: str | None = None,
        row: int | None = None,
        column: str | None = None,
        author: str | None = None,
    ) -> Remark:
        """Keeps a comment with the branch, on the branch, a table, a column, a row or a cell. No snapshot is made.

        Args:
            text: up to 5,000 characters.
            table: its name on the branch.
            row: the row's id on the branch.
            author: by default the session's author.

        Raises:
            EntryNotFoundError: the branch has no such table or column.
            UsageError: a row or a column is given without a table; or the text is empty or too long.
            TransactionConflictError: another client rebased or dropped the branch meanwhile.
            TransactionError: the lake is attached for reading alone.
        """
        return self._remark("comment", text, author, table, row, column)

    def approve(self, text: str = "", author: str | None = None) -> Remark:
        """Approves the branch as this review shows it; changes that came on it since are not approved.

        Raises:
            TransactionConflictError, TransactionError: as of `comment`.
        """
        return self._remark("approval", text, author)

    def ask_for_changes(
        self,
        text: str,
        table: str | None = None,
        row: int | None = None,
        column: str | None = None,
        author: str | None = None,
    ) -> Remark:
        """Asks for changes, until the same author approves; arguments and errors are as of `comment`."""
        return self._remark("request", text, author, table, row, column)

    def remove_remark(self, remark: Remark | str) -> None:
        """Removes a remark, given as it is listed or by its id.

        Raises:
            EntryNotFoundError: the branch has no such remark.
            TransactionConflictError, TransactionError: as of `comment`.
        """
        remark_id = remark if isinstance(remark, str) else remark.remark_id
        self._keep(self._remarking.change(partial(remove_remark, remark_id=remark_id)))

    def remarks_on(self, table: str) -> list[Remark]:
        """The remarks on a table, its rows and cells, by its full name as the review lists it."""
        return [one for one in self.remarks if one.table == table]

    def _remark(
        self,
        kind: Kind,
        text: str,
        author: str | None,
        table: str | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> Remark:
        place = self._place(table, row, column)
        remark = new_remark(
            kind,
            text,
            author if author is not None else self._remarking.author(),
            self.tip,
            self.branch.generation,
            table=place,
            row_id=row,
            column=column,
        )
        self._keep(self._remarking.change(partial(write_remark, remark=remark)))
        return remark

    def _keep(self, remarks: Sequence[Remark]) -> None:
        """Shows these remarks, under the names that their tables have on the branch, and in the session's time zone."""
        _, tip = self.states
        self.remarks = tuple(replace(one, table=_name_now(one, tip), time=self._local(one.time)) for one in remarks)

    def _place(self, table: str | None, row: int | None, column: str | None) -> tuple[str, int] | None:
        """Return the full name and the id of a table that a remark is about, and check the rest of its place."""
        if table is None:
            if row is not None or column is not None:
                raise UsageError("A remark on a row or a column needs its table.")
            return None
        if row is not None and (type(row) is not int or not 0 <= row < _MOST_ROWS):
            raise UsageError(f"A row is given by its id, 0 or more, not {str(row)[:40]}.")
        title, found = self._table(table)
        names = [one.name for one in found.columns]
        if column is not None and column.casefold() not in {name.casefold() for name in names}:
            raise EntryNotFoundError(
                f'{title} has no column "{column[:80]}" on the branch.{did_you_mean(column, names)}'
            )
        return title, found.table_id

    def _table(self, name: str) -> tuple[str, Table]:
        """Return the full name and the table of a name on the branch, or of one that it dropped."""
        folded, known = name.casefold(), list[str]()
        for state in reversed(self.states):
            titles = state.table_names()
            known += [*titles.values(), *(bare for _, bare in state.tables.names.values())]
            found = [i for i, title in titles.items() if title.casefold() == folded]
            found = found or [i for i, (_, bare) in state.tables.names.items() if bare.casefold() == folded]
            if len(found) > 1:
                several = ", ".join(sorted(titles[i] for i in found)[:5])
                raise UsageError(f"Several tables are named {name[:80]}: {several}; give the schema too.")
            if found:
                return titles[found[0]], state.tables[found[0]]
        raise EntryNotFoundError(f'The branch has no table "{name[:80]}".{did_you_mean(name, known)}')

    # Forms

    def to_dict(self) -> dict[str, Any]:
        """The review as values that JSON has."""
        return {
            "branch": self.branch.name,
            "lake": self.lake,
            "began_at": self.branch.snapshot_id,
            "snapshot_id": self.tip,
            "verdict": self.verdict,
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
            "options_left": [one.to_dict() for one in self.options],
            "remarks": [one.to_dict() for one in self.remarks],
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

    @property
    def reads(self) -> Sequence[EntryRead]:
        """The tables that both sides changed, in each state that has them."""
        return [*self.tables.reads, *self.base_changes.reads]

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("review.live")(self)

    def _repr_html_(self) -> str:
        html: str = hook("review.html")(self)
        return html

    def __repr__(self) -> str:
        conflicts = counted(self.total, "conflict") if self.total else "no conflicts"
        said = f", {self.verdict}" if self.verdict is not None else ""
        commits = counted(len(self.commits), "snapshot")
        lines = [f"<Review of {self.lake}#{self.branch.name}: {commits}, {conflicts}{said}>"]
        lines += [*map(repr, self.tables), *map(str, self.conflicts[:20])]
        lines += [f"not merged: {one}" for one in self.options[:20]]
        lines += [one.text() for one in self.checks if not one.passed]
        return "\n".join([*lines, *(_line(one) for one in self.remarks[-20:])])


def _line(remark: Remark) -> str:
    """Return a remark as a line of text."""
    about = f" on {remark.about}" if remark.about else ""
    text = " ".join(remark.text.split())
    said = f": {text}" if text else ""
    return f"{DEEDS[remark.kind]} by {remark.author or 'somebody'}{about}{said}"


def review_branch(
    transaction: Transaction, lake: Lake, branch: Branch, engines: Engines, remarking: Remarking
) -> Review:
    """Review a branch.

    Args:
        transaction: one on the lake that it began on, in which nothing is staged.
        lake: the branch, opened.
        remarking: how remarks on the review are written.
    """
    merge = BranchMerge(transaction, lake, branch, engines)
    conflicts = merge.find_conflicts()
    base = transaction.lake
    with lake.connect() as connection:
        since, tip = (lake.state(connection, lake.snapshot(connection, at)) for at in (merge.since, merge.tip))
        remarks = read_remarks(connection)
        theirs = read_options(connection)
    with base.connect() as connection:
        began = base.state(connection, base.snapshot(connection, branch.snapshot_id))
        ours = read_options(connection)
    tables = diff_lake(lake, since, tip, engines)
    base_changes = diff_lake(base, began, transaction.base, engines)
    for one in (*tables, *base_changes):
        _ = one.diff  # read now, while both are open
    review = Review(
        branch,
        base.title,
        merge.tip,
        [replace(one, snapshot_time=base.local(one.snapshot_time)) for one in merge.commits],
        tables,
        base_changes,
        tuple(conflicts),
        conflicts.total,
        left_options(theirs, tip, ours, transaction.base, merge.first_id),
        (),
        (since, tip),
        remarking,
        base.local,
    )
    review._keep(remarks)
    return review


def _name_now(remark: Remark, tip: CatalogState) -> str | None:
    """Return the name that the table of a remark has on the branch; as it was noted where it is gone."""
    if remark.table_id is None or remark.table_id not in tip.tables:
        return remark.table
    return tip.table_names()[remark.table_id]
