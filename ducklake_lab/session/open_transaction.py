"""The open transaction as users see it: its diff, commit and rollback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from ducklake_lab.diff.compute import diff_sides
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import ExpectationError, TransactionError, UsageError, did_you_mean
from ducklake_lab.expectations.outcomes import Outcome
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.rows.lives import Lives
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.tracing import dependents
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.transaction import Transaction


@works_on_lakes
class OpenTransaction:
    """The transaction of a `with session.transaction()` block.

    Attributes:
        snapshot: the committed snapshot; None before the commit, or if nothing changed.
    """

    def __init__(self, transactions: Transactions, engine: SparkEngine) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._engine = engine
        self.snapshot: Snapshot | None = None

    def diff(self, table: str | None = None) -> Diff:
        """Returns the changes of the transaction to a table; the name is optional if it changed only one."""
        transaction = self._changed()
        sides = changed_sides(transaction)
        if table is None:
            if len(sides) != 1:
                raise UsageError(
                    f"The transaction changed {', '.join(sides) or 'no table'}; say which with diff(table)."
                )
            table = next(iter(sides))
        name = self._lakes.parse(table).name if table not in sides else table
        name_of_table = next(
            (key for key in sides if key == name or key.rpartition(".")[2].casefold() == name.casefold()), None
        )
        if name_of_table is None:
            raise UsageError(f"The transaction has not changed {table}.{did_you_mean(table, sides)}")
        return self._diff(*sides[name_of_table], name_of_table)

    def diffs(self) -> list[Diff]:
        """Returns the diffs of all changed tables, by name."""
        return [self._diff(before, after, name) for name, (before, after) in changed_sides(self._changed()).items()]

    def _diff(self, before: Side, after: Side, name: str) -> Diff:
        diff = diff_sides(before, after, name, engines=self._engine)
        diff.lives = Lives(self._lakes).of
        return diff

    def _changed(self) -> Transaction:
        transaction = self._lakes.transaction
        if transaction is None or not transaction.has_changes:
            raise TransactionError("The transaction has changed nothing yet.")
        return transaction

    def rollback(self) -> None:
        """Rolls back; later statements of the block run outside a transaction."""
        self._transactions.rollback()

    def commit(self) -> None:
        """Commits now."""
        self.snapshot = self._transactions.commit()


def changed_sides(transaction: Transaction) -> dict[str, tuple[Side, Side]]:
    """Returns both states of each changed, created or dropped table, by `schema.table`."""
    base, state, lake = transaction.base, transaction.state, transaction.lake
    touched = {table_id for table_id, staged in transaction.data.items() if staged}
    touched |= {i for i, entry in state.tables.items() if base.tables.get(i) != entry}
    touched |= {i for i in base.tables if i not in state.tables}
    sides = {}
    for table_id in touched:
        old, new = base.tables.get(table_id), state.tables.get(table_id)
        name = state.qualified_name(new) if new is not None else base.qualified_name(old) if old is not None else None
        if name is None:
            continue  # created and dropped in the same transaction
        staged = transaction.peek(new) if new is not None else None
        committed = transaction.is_committed(new) if new is not None else True
        sides[name] = (Side(lake, base, old), Side(lake, state, new, staged, committed))
    return dict(sorted(sides.items()))


@works_on_lakes
class Preview:
    """The effects of statements that ran in a transaction, which stays open until commit or rollback.

    Attributes:
        diffs: one for each changed table.
        state: `open`, `committed` or `rolled back`.
        snapshot: the committed snapshot; None before the commit.
        checks: the expectations that the changes violate; one of them may refuse the commit.
        dependents: what depends on columns that the changes drop or rename, one line each.
    """

    def __init__(self, transactions: Transactions, transaction: Transaction, diffs: list[Diff]) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._transaction = transaction
        self._ended: Literal["committed", "rolled back"] | None = None
        self.diffs = diffs
        self.checks: Sequence[Outcome] = ()
        self.dependents: Sequence[str] = ()

    @property
    def snapshot(self) -> Snapshot | None:
        return self._transaction.snapshot

    @property
    def lake(self) -> str:
        """The alias of the changed lake."""
        return self._transaction.lake.alias

    @property
    def state(self) -> Literal["open", "committed", "rolled back"]:
        if self._ended is None and self._lakes.transaction is not self._transaction:
            # another cell ran COMMIT or ROLLBACK
            return "committed" if self._transaction.snapshot is not None else "rolled back"
        return self._ended or "open"

    @property
    def message(self) -> str | None:
        """The commit message so far."""
        return self._transaction.message

    def commit(self, message: str | None = None, author: str | None = None) -> Snapshot | None:
        """Commits the changes as a snapshot of the lake.

        Args:
            message: replaces the transaction's message; "" removes it.
            author: replaces the transaction's author.

        Raises:
            TransactionError: the transaction has ended already.
            TransactionConflictError: another commit conflicts; nothing is written, and the transaction is rolled back.
        """
        self._check_open()
        self._transaction.message = message or None if message is not None else self._transaction.message
        self._transaction.author = author if author is not None else self._transaction.author
        self._ended = "rolled back"
        self._transactions.commit()
        self._ended = "committed"
        return self.snapshot

    def rollback(self) -> None:
        """Rolls the changes back."""
        self._check_open()
        self._transactions.rollback()
        self._ended = "rolled back"

    def _check_open(self) -> None:
        if self.state != "open":
            raise TransactionError(f"This change is {self.state} already.")

    def __repr__(self) -> str:
        checks = "".join(f"; {outcome.text()}" for outcome in self.checks)
        return f"<Preview, {self.state}: {'; '.join(map(repr, self.diffs)) or 'nothing changed'}{checks}>"


@contextmanager
def run_transaction(
    transactions: Transactions, engine: SparkEngine, author: str | None, message: str | None, extra_info: str | None
) -> Iterator[OpenTransaction]:
    """Opens a transaction; the end of the block commits, an error rolls back. See `Session.transaction`."""
    with transactions.lakes.turn.block():
        transactions.begin()
        handle = OpenTransaction(transactions, engine)
        try:
            yield handle
        except BaseException:
            if transactions.lakes.in_transaction:
                transactions.rollback()
            raise
        if not transactions.lakes.in_transaction:
            return  # the block committed or rolled back itself
        transaction = transactions.lakes.transaction
        if transaction is not None:
            transaction.author = author if author is not None else transaction.author
            transaction.message = message if message is not None else transaction.message
            transaction.extra_info = extra_info if extra_info is not None else transaction.extra_info
        handle.snapshot = transactions.commit()


def run_preview(transactions: Transactions, engine: SparkEngine, run: Callable[[], Result]) -> Preview:
    """Runs statements in a transaction and keeps it open; rolls back if they fail."""
    failed: Sequence[Outcome] = ()
    with transactions.previewing():
        run()
        transaction = transactions.lakes.transaction
        if transaction is not None and transaction.expired:
            raise UsageError("A preview does not show snapshots that expire; dry_run => true lists them.")
        if transaction is not None and transaction.new_options and not transaction.has_changes:
            raise UsageError("The transaction only sets options of the lake, which have no preview.")
        if transaction is None or not transaction.has_changes:
            raise UsageError("These statements change nothing, so there is nothing to preview.")
        try:
            transaction.check_expectations()
        except ExpectationError as error:
            failed = error.outcomes
        preview = Preview(transactions, transaction, OpenTransaction(transactions, engine).diffs())
        preview.checks = (*transaction.outcomes, *failed)
        if transaction.state is not transaction.base:
            preview.dependents = dependents(transaction.lake, transaction.base, transaction.state)
        return preview
