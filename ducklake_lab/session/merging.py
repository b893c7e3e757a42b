"""The part of a session that merges branches of its lakes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import sqlalchemy as sa

from ducklake_lab.branches.agents_work import AgentsWork, agents_work
from ducklake_lab.branches.making import open_branch
from ducklake_lab.branches.merge import BranchMerge
from ducklake_lab.branches.picking import Pick
from ducklake_lab.branches.rebasing import rebased
from ducklake_lab.branches.remarking import change_remarks
from ducklake_lab.branches.remarks import Remark
from ducklake_lab.branches.review import Remarking, Review, review_branch
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.diff.lake import LakeDiff, diff_lake, diff_open
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import CommitUnknownError, TransactionError, UnsupportedFeatureError, UsageError
from ducklake_lab.files.deletes import restamped
from ducklake_lab.merging.conflicts import OnConflict
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.open_transaction import changed_sides
from ducklake_lab.session.settling import shown_in_view
from ducklake_lab.session.statements.runner import Statements
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction

#: Characters of the branch's messages that a merge's own message repeats.
_LONGEST_MESSAGES = 500


@works_on_lakes
class Merging:
    """Merges of branches into the current lake, three ways by row id and column id."""

    _lakes: Lakes
    _transactions: Transactions
    _statements: Statements
    _engine: SparkEngine

    def merge(
        self, name: str, on_conflict: OnConflict = None, squash: bool = True, message: str | None = None
    ) -> Snapshot | None:
        """Merges a branch into the current lake, as one new snapshot; returns that.

        What one side changed since the branch began goes through: rows, cells, columns, tables, views, macros and schemas.
        Rows that came on the branch get row ids of the lake, and data files of such rows alone are taken over as they are. In
        an open transaction the changes are staged. Where the branch has nothing that is not merged, no snapshot is made.

        Args:
            name: the branch's name; it began on the current lake, or on the branch that this is.
            on_conflict: what holds where both sides changed the same: "ours" is what the lake has, "theirs" what the branch
                has. A mapping gives rules by table, row id and column:
                `{"main.flights": {17: "ours", 18: {"dep_time": "theirs"}, "tailnum": "ours"}}`.
            squash: must be true, as a merge is one snapshot.
            message: of the commit; by default the branch's name and the messages of its commits.

        Raises:
            MergeConflictError: both sides changed the same, and no rule settles it; it lists the conflicts.
            EntryNotFoundError: the lake has no such branch.
            SnapshotNotFoundError: the snapshot at which the branch began has expired, in the lake or on the branch.
            UnsupportedFeatureError: something cannot be merged; it is named, and nothing is changed.
        """
        if not squash:
            raise UnsupportedFeatureError(
                "A merge that keeps the branch's snapshots apart is not supported; leave squash out."
            )

        def work(transaction: Transaction, opened: Lake, branch: Branch) -> str:
            merge = BranchMerge(transaction, opened, branch, self._engine)
            merge.run(on_conflict)
            merge.note()
            return _message(branch, merge)

        with self._merge_in_view(name, message):
            return self._bring(name, work, message)

    def merge_preview(self, name: str, on_conflict: OnConflict = None) -> LakeDiff:
        """Returns what `merge` with these arguments would change in the current lake; commits nothing.

        Raises:
            MergeConflictError: both sides changed the same, and no rule settles it; see `review`.
        """

        def work(transaction: Transaction, opened: Lake, branch: Branch) -> None:
            BranchMerge(transaction, opened, branch, self._engine).run(on_conflict)

        with self._merge_in_view(name):
            return self._tried(name, work)

    def _merge_in_view(self, name: str, message: str | None = None) -> AbstractContextManager[None]:
        """Let a notebook show the conflicts of a merge in a view."""
        return shown_in_view(
            self,
            "merge",
            f"merge of branch {name}",
            lambda rules: self.merge_preview(name, rules),
            lambda rules: self.merge(name, rules, message=message),
        )

    def cherry_pick(
        self,
        name: str,
        snapshot: int | None = None,
        rows: Mapping[str, Collection[int]] | None = None,
        on_conflict: OnConflict = None,
        message: str | None = None,
    ) -> Snapshot | None:
        """Brings the changes of one snapshot of a branch, or of some rows, into the current lake, as a new snapshot.

        Only rows that the lake has, or had, under their row ids are picked: updates, deletions and rows that came back. A merge
        of the branch later finds them done.

        Args:
            snapshot: the id of a snapshot of the branch; None for all of its changes.
            rows: row ids by the names of tables; None for all rows that the snapshot changed.
            on_conflict, message: as in `merge`.

        Raises:
            MergeConflictError: both sides changed the same, and no rule settles it; it lists the conflicts.
            SnapshotNotFoundError: the branch has no such snapshot, or the one before it has expired.
            UnsupportedFeatureError: the snapshot inserted rows, or changed definitions; nothing is changed.
            UsageError: neither a snapshot nor rows are given.
        """
        pick = self._pick_of(snapshot, rows, on_conflict)

        def work(transaction: Transaction, opened: Lake, branch: Branch) -> str:
            pick(transaction, opened, branch)
            return f"{_picked(snapshot)} of branch {branch.name}"

        with self._pick_in_view(name, snapshot, rows, message):
            return self._bring(name, work, message)

    def cherry_pick_preview(
        self,
        name: str,
        snapshot: int | None = None,
        rows: Mapping[str, Collection[int]] | None = None,
        on_conflict: OnConflict = None,
    ) -> LakeDiff:
        """Returns what `cherry_pick` with these arguments would change in the current lake; commits nothing.

        Raises:
            MergeConflictError, SnapshotNotFoundError, UnsupportedFeatureError, UsageError: as of `cherry_pick`.
        """
        with self._pick_in_view(name, snapshot, rows):
            return self._tried(name, self._pick_of(snapshot, rows, on_conflict))

    def _pick_of(
        self, snapshot: int | None, rows: Mapping[str, Collection[int]] | None, on_conflict: OnConflict
    ) -> Callable[[Transaction, Lake, Branch], None]:
        """Returns what stages a pick."""
        if snapshot is None and rows is None:
            raise UsageError("cherry_pick takes a snapshot of the branch, rows by table, or both; merge brings all.")
        return lambda transaction, opened, branch: Pick(transaction, opened, branch, self._engine, snapshot).run(
            rows, on_conflict
        )

    def _pick_in_view(
        self,
        name: str,
        snapshot: int | None,
        rows: Mapping[str, Collection[int]] | None,
        message: str | None = None,
    ) -> AbstractContextManager[None]:
        """Let a notebook show the conflicts of a pick in a view."""
        return shown_in_view(
            self,
            "pick",
            f"{_picked(snapshot)} of branch {name}",
            lambda rules: self.cherry_pick_preview(name, snapshot, rows, rules),
            lambda rules: self.cherry_pick(name, snapshot, rows, rules, message),
        )

    def _bring(
        self, name: str, work: Callable[[Transaction, Lake, Branch], str], message: str | None
    ) -> Snapshot | None:
        """Commits, or stages in the open transaction, changes of a branch.

        Args:
            work: stages them, given the opened branch; returns the message of a commit that was given none.
        """
        transactions = self._transactions
        lake = self._lakes.get()

        def run() -> Snapshot | None:
            transactions.check_usable()
            with self._lakes.statement(), open_branch(lake, name) as (opened, branch):
                with transactions.writing(lake, undoes=True) as transaction:
                    transaction.is_one_statement = not self._lakes.in_transaction
                    default = work(transaction, opened, branch)
                    if transaction.has_changes:
                        default = transaction.message or default
                        transaction.message = default if message is None else message or None
                return transaction.snapshot

        return until_committed(transactions, run, reads=True)

    def _tried(self, name: str, work: Callable[[Transaction, Lake, Branch], None]) -> LakeDiff:
        """Returns what changes of a branch would do to the current lake; commits nothing.

        Args:
            work: stages them, given the opened branch.
        """
        lake = self._lakes.get()
        with (
            self._lakes.statement(),
            open_branch(lake, name) as (opened, branch),
            self._transactions.trial(lake) as transaction,
        ):
            work(transaction, opened, branch)
            return diff_open(lake, transaction.base, changed_sides(transaction), self._engine)

    def rebase(self, name: str, on_conflict: OnConflict = None) -> Branch:
        """Makes a branch begin at the newest snapshot of the current lake, with its changes on top, and returns it.

        Its changes that are not merged yet become one snapshot; its own earlier snapshots and row ids go. Other sessions that
        read the branch switch to it again. A rebase that fails changes nothing.

        Args:
            on_conflict: as in `merge`: "ours" is what the lake has, "theirs" what the branch has.

        Raises:
            MergeConflictError: both sides changed the same, and no rule settles it.
            EntryNotFoundError: the lake has no such branch.
            TransactionError: a transaction is open, or another client rebased the branch meanwhile.
            UnsupportedFeatureError: something cannot be merged; it is named.
        """
        if self._lakes.in_transaction:
            raise TransactionError("A transaction is open, which rebases no branch; COMMIT or ROLLBACK first.")
        lake = self._lakes.get()
        lake.check_writable()
        with (
            self._rebase_in_view(name),
            open_branch(lake, name) as (opened, branch),
            rebased(lake, branch) as (made, rebased_branch),
        ):
            transaction = Transaction(made, restamp=restamped, checks=self._transactions.checks)
            try:
                transaction.author = self._transactions.notes.author()
                merge = BranchMerge(transaction, opened, branch, self._engine, lake)
                merge.run(on_conflict, "rebased")
                transaction.message = _message(branch, merge, "rebase")
                self._transactions.notes.settle(transaction)
                commit(transaction)
            except CommitUnknownError:
                raise
            except BaseException:
                transaction.rollback()
                raise
        return rebased_branch

    def rebase_preview(self, name: str, on_conflict: OnConflict = None) -> LakeDiff:
        """Returns what a branch would change on top of the current lake after `rebase` with these arguments; commits nothing.

        Raises:
            MergeConflictError, EntryNotFoundError, UnsupportedFeatureError: as of `rebase`.
        """

        def work(transaction: Transaction, opened: Lake, branch: Branch) -> None:
            BranchMerge(transaction, opened, branch, self._engine).run(on_conflict, "rebased")

        with self._rebase_in_view(name):
            return self._tried(name, work)

    def _rebase_in_view(self, name: str) -> AbstractContextManager[None]:
        """Let a notebook show the conflicts of a rebase in a view."""
        return shown_in_view(
            self,
            "rebase",
            f"rebase of branch {name}",
            lambda rules: self.rebase_preview(name, rules),
            lambda rules: self.rebase(name, rules),
            self._on_top,
        )

    def _on_top(self, branch: Branch) -> LakeDiff:
        """Returns what a rebased branch has changed since it began."""
        with (
            self._lakes.working(),
            self._lakes.statement(),
            open_branch(self._lakes.get(), branch.name) as (opened, _),
        ):
            with opened.connect() as connection:
                snapshots = [opened.snapshot(connection, at) for at in (branch.snapshot_id, None)]
                began, tip = (opened.state(connection, snapshot) for snapshot in snapshots)
            diff = diff_lake(opened, began, tip, self._engine)
            for one in diff:
                _ = one.diff  # read now, while the branch is open
        return diff

    def review(self, name: str) -> Review:
        """Returns what a branch changed, what its lake did meanwhile, the conflicts of a merge, and remarks; changes nothing.

        Its methods `comment`, `approve` and `ask_for_changes` keep remarks with the branch; they make no snapshot.

        Raises:
            EntryNotFoundError: the lake has no such branch.
            SnapshotNotFoundError: the snapshot at which the branch began has expired, in the lake or on the branch.
            UnsupportedFeatureError: something cannot be merged; it is named.
        """
        lake = self._lakes.get()
        with (
            self._lakes.statement(),
            open_branch(lake, name) as (opened, branch),
            self._transactions.trial(lake, is_for_looking=True) as transaction,
        ):
            review = review_branch(transaction, opened, branch, self._engine, self._remarking(lake, branch))
            changed = {one.name for one in review.tables}
            return replace(review, checks=tuple(self._statements.checking.came(opened, *review.states, changed)))

    def agents(self) -> AgentsWork:
        """Returns the work of agents on branches of the current lake: who committed what, when, with which statement.

        Agents are programs that `ducklake-lab mcp` lets in. A branch whose catalog another process writes just now says so.
        """
        lake = self._lakes.get()
        with self._lakes.statement():
            return agents_work(lake, again=self.agents, review=self.review)

    def _remarking(self, lake: Lake, branch: Branch) -> Remarking:
        """How a review writes remarks, later too: in the session's turn, and to the lake that was reviewed."""

        def change(act: Callable[[sa.Connection], None]) -> Sequence[Remark]:
            with self._lakes.working():
                return change_remarks(lake, branch, act)

        return Remarking(change, self._transactions.notes.author)


def _picked(snapshot: int | None) -> str:
    return f"pick of {'rows' if snapshot is None else f'snapshot {snapshot}'}"


def _message(branch: Branch, merge: BranchMerge, what: str = "merge") -> str:
    """Return the message of a merge that was given none."""
    messages = "; ".join(commit.commit_message for commit in merge.commits if commit.commit_message)
    cut = messages if len(messages) <= _LONGEST_MESSAGES else f"{messages[:_LONGEST_MESSAGES]}…"
    return f"{what} of branch {branch.name}" + (f": {cut}" if cut else "")
