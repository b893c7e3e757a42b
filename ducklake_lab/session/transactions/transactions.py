"""The transactions of a session: one open transaction, or one per writing statement."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.catalog.cache import CachedCatalog
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.errors import (
    BindError,
    CommitUnknownError,
    DuckLakeError,
    EntryExistsError,
    EntryNotFoundError,
    ExpectationWarning,
    TransactionError,
    UsageError,
)
from ducklake_lab.files.deletes import restamped
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.transactions.commit_notes import CommitNotes
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.reads import FindsChanges, Reads
from ducklake_lab.transaction.transaction import Checks, Savepoint, Transaction

#: Packages between a user's line and a commit.
_NOT_THE_USERS = frozenset(("ducklake_lab", "contextlib", "IPython"))


class Transactions:
    """At most one open transaction over the lakes of a session, and the commits of statements outside it.

    Args:
        database: the session's own database, which joins the transactions.

    Attributes:
        lakes: the lakes they write to; `lakes.reads` has the open transaction.
        immediate: a transaction pins all lakes at BEGIN, instead of each at its first read.
        notes: the author, message and statements that commits record.
        committed: snapshots made by the statements of the running text.
        last: the last transaction of a single statement.
        checks: checks the expectations of changed tables before a commit.
        finds_changes: looks for rows that others changed, for a commit.
        is_previewing: the statements of a preview are running.
    """

    def __init__(self, lakes: Lakes, database: SessionDatabase) -> None:
        self.lakes = lakes
        self._reads = lakes.reads
        self._database = database
        self.immediate = False
        self.notes = CommitNotes()
        self.committed: list[int] = []
        self.last: Transaction | None = None
        self.checks: Checks | None = None
        self.finds_changes: FindsChanges | None = None
        self._known: dict[str, CachedCatalog] = {}
        self._aborted = False
        self._is_preview = False
        self.is_previewing = False

    @property
    def is_writing(self) -> bool:
        """Returns whether a transaction is open, or a statement is inside its own."""
        return self._reads.held or self._reads.transaction is not None

    @property
    def is_aborted(self) -> bool:
        """Returns whether a statement of the open transaction failed, so that only ROLLBACK is allowed."""
        return self._aborted or self._database.is_aborted

    def check_usable(self) -> None:
        """Raises TransactionError if a statement of the open transaction has failed."""
        if self.is_aborted:
            raise TransactionError("A statement of this transaction has failed; ROLLBACK before going on.")

    def check_present(self) -> None:
        """Raises UsageError if the statement reads a past snapshot, and so cannot write."""
        if self._reads.at is not None:
            raise UsageError(f"Nothing can be written at {self._reads.at}, which is the past; leave at out to write.")

    def begin(self, *, preview: bool = False) -> None:
        """Opens a transaction; in a preview, nothing can run outside it."""
        if self._reads.held:
            raise TransactionError("A transaction is open already; COMMIT or ROLLBACK it first.")
        self._reads.held, self._is_preview = True, preview
        self._reads.noted = Reads()
        self._database.begin()
        if self.immediate:
            with self._reads.noting(None):
                for lake in self.lakes:
                    self.lakes.state(lake)

    @contextmanager
    def previewing(self) -> Iterator[None]:
        """Opens a transaction and runs the statements of a preview in the block; the transaction stays open."""
        self.begin(preview=True)
        self.is_previewing = True
        try:
            yield
        except BaseException:
            if self._reads.held:
                self.rollback()
            raise
        finally:
            self.is_previewing = False

    @property
    def written(self) -> str | None:
        """The alias of the lake that the open transaction writes to; None if there is none."""
        transaction = self._reads.transaction
        return transaction.lake.alias if transaction is not None else None

    def commit(self) -> Snapshot | None:
        """Commits the open transaction; returns the new snapshot, or None if nothing changed."""
        if not self._reads.held:
            raise TransactionError("No transaction is open; BEGIN one first.")
        if self.is_aborted:
            self.rollback()
            raise TransactionError("A statement of this transaction had failed; it was rolled back.")
        transaction = self._reads.transaction
        if transaction is None:
            self._forget(commit=True)
            return None
        self.notes.settle(transaction)
        try:
            snapshot = self._commit(transaction)
            self._note_commit(snapshot)
        except CommitUnknownError:
            self._forget()
            raise
        except BaseException:
            self.rollback()
            raise
        self._forget(commit=True)
        _warn(transaction)
        return snapshot

    def _commit(self, transaction: Transaction) -> Snapshot | None:
        # expectations check for themselves that what they read is as it was
        with self._reads.noting(None):
            return commit(transaction)

    def _note_commit(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.committed.append(snapshot.snapshot_id)

    def rollback(self) -> None:
        if not self._reads.held:
            raise TransactionError("No transaction is open; BEGIN one first.")
        transaction = self._reads.transaction
        self._forget()
        if transaction is not None:
            transaction.rollback()

    def _forget(self, *, commit: bool = False) -> None:
        self._suspend()
        self._database.end(commit=commit)

    def _suspend(self) -> None:
        self._reads.transaction, self._reads.held, self._aborted = None, False, False
        self._reads.noted = None
        self._reads.pins.clear()

    @contextmanager
    def one_of(self, number: int, count: int) -> Iterator[None]:
        """Runs one of the statements of a text in the block; its error names it, and the snapshots made before it.

        Args:
            number: its place, from 1 to `count`.
        """
        if number == 1:
            self.committed.clear()
        before = len(self.committed)
        try:
            yield
        except DuckLakeError as error:
            if number > 1:
                stays = _staying(self.committed[:before])
                error.args = (f"{str(error).rstrip()} Statement {number} of {count}{stays}.",)
            raise

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Suspends the open transaction during the block.

        Raises:
            TransactionError: the transaction is a preview, whose effects must all be revertible.
        """
        if self._reads.held and self._is_preview:
            raise TransactionError(
                "CHECKPOINT works outside of transactions, so there is no preview of it; run it alone."
            )
        reads = self._reads
        transaction, held, pins, aborted = reads.transaction, reads.held, dict(reads.pins), self._aborted
        noted = reads.noted
        self._suspend()
        try:
            yield
        finally:
            reads.transaction, reads.held, self._aborted, reads.noted = transaction, held, aborted, noted
            reads.pins.clear()
            reads.pins.update(pins)

    @contextmanager
    def assuming(self) -> Iterator[bool]:
        """Begin a statement that reads no rows on the lakes' cached snapshots; yields whether there are any."""
        pins = self._reads.pins
        self._known = {
            lake.alias: kept
            for lake in self.lakes
            if lake.alias not in pins and (kept := lake.cache.assumed()) is not None
        }
        self.last = None
        aliases = list(self._known)
        pins.update({alias: kept.snapshot for alias, kept in self._known.items()})
        try:
            yield bool(aliases)
        finally:
            self._known = {}
            self._reads.unpin(aliases)

    @contextmanager
    def writing(self, lake: Lake, *, undoes: bool = False) -> Iterator[Transaction]:
        """Yields the transaction for a statement: the open one, or a new one that commits at the end.

        If the statement fails, its own transaction is rolled back. An open one must be rolled back by the user, unless
        the statement only had a wrong name.

        Args:
            undoes: an open one goes on without what the statement staged before it failed.
        """
        self.check_present()
        own = self._reads.transaction
        if self._reads.held:
            if own is not None and own.lake is not lake:
                raise TransactionError(
                    f"The open transaction writes to {own.lake.alias}; a transaction writes to one lake only."
                )
            with self._in_open(own or self._begun(lake), undoes=undoes) as transaction:
                yield transaction
        elif own is not None:
            # inside a statement that already writes, such as INSERT … FROM lake.f()
            if own.lake is not lake:
                raise TransactionError(f"The statement writes to {own.lake.alias} already.")
            yield own
        else:
            with self._committed(self._begun(lake)) as transaction:
                yield transaction

    @contextmanager
    def trial(self, lake: Lake, *, is_for_looking: bool = False) -> Iterator[Transaction]:
        """Yields a transaction that nobody else sees, for a look at its changes; it is rolled back at the end.

        Args:
            is_for_looking: nothing is staged in it, so that the lake may be read-only.

        Raises:
            TransactionError: an open transaction has changes of its own.
        """
        own = self._reads.transaction
        if own is not None and own.has_changes:
            raise TransactionError("The open transaction has changes of its own; COMMIT or ROLLBACK before a preview.")
        transaction = self._begun(lake, is_for_looking=is_for_looking)
        try:
            yield transaction
        finally:
            transaction.rollback()

    def _begun(self, lake: Lake, *, is_for_looking: bool = False) -> Transaction:
        pin, known = self._reads.pins.get(lake.alias), self._known.get(lake.alias)
        transaction = Transaction(lake, pin, restamped, known, is_for_looking=is_for_looking, checks=self.checks)
        transaction.author = self.notes.author()
        transaction.finds_changes = self.finds_changes
        return transaction

    @contextmanager
    def _in_open(self, transaction: Transaction, *, undoes: bool) -> Iterator[Transaction]:
        """Runs a statement of the open transaction."""
        self._reads.transaction = transaction
        transaction.reads = self._reads.noted
        if not self._reads.is_changing:
            self._reads.note_unknown()
        savepoint = transaction.savepoint() if undoes else None
        self.notes.say(transaction)
        try:
            yield transaction
            self.notes.note(transaction)
        except (BindError, EntryNotFoundError, EntryExistsError) as error:
            # raised before any change, the transaction goes on, as in DuckDB
            self._undo(transaction, savepoint, error)
            raise
        except BaseException as error:
            self._aborted = True
            self._undo(transaction, savepoint, error)
            raise

    def _undo(self, transaction: Transaction, savepoint: Savepoint | None, error: BaseException) -> None:
        """Takes back what a statement staged before it failed; after errors of another kind a rollback is left."""
        if savepoint is not None and isinstance(error, DuckLakeError):
            transaction.return_to(savepoint)
            self._aborted = False

    @contextmanager
    def _committed(self, transaction: Transaction) -> Iterator[Transaction]:
        """Runs a statement as its own transaction."""
        self._reads.transaction = self.last = transaction
        self._reads.noted = transaction.reads = Reads(are_known=self._reads.is_changing)
        self.notes.say(transaction)
        try:
            yield transaction
            self.notes.note(transaction)
            self.notes.settle(transaction)
            self._note_commit(self._commit(transaction))
        except CommitUnknownError:
            raise
        except BaseException:
            transaction.rollback()
            raise
        finally:
            self._reads.transaction = self._reads.noted = None
            self._reads.pins.clear()
        if not (self._known and transaction.is_empty_by_expectations):  # else it runs again
            _warn(transaction)


def _staying(snapshots: list[int]) -> str:
    """Returns `; snapshot 10 stays` or `; snapshots 10 and 11 stay`."""
    if not snapshots:
        return ""
    if len(snapshots) == 1:
        return f"; snapshot {snapshots[0]} stays"
    if len(snapshots) > 3:  # ids of one lake ascend
        return f"; {len(snapshots)} snapshots, {snapshots[0]} to {snapshots[-1]}, stay"
    return f"; snapshots {', '.join(map(str, snapshots[:-1]))} and {snapshots[-1]} stay"


def _warn(transaction: Transaction) -> None:
    """Warns of expectations that the committed rows violated; a warning that becomes an error takes nothing back."""
    if transaction.outcomes:
        level = _callers_level()
        for outcome in transaction.outcomes:
            warnings.warn(outcome.warning, ExpectationWarning, stacklevel=level)


def _callers_level() -> int:
    """Returns the `stacklevel` in `_warn` of the user's line: a frame outside the package, and outside IPython for a magic."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    return max(level, 1)
