"""Takes one snapshot's changes back, as a new snapshot or as a diff to look at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from ducklake_lab.diff.compute import diff_sides
from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.diff.lake import LakeDiff, diff_open
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.merging.conflicts import OnConflict
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.revert.revert import Revert, RowChoice, Wanted
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.open_transaction import changed_sides
from ducklake_lab.session.rows.lives import Lives
from ducklake_lab.session.settling import shown_in_view
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.transaction import Transaction


@works_on_lakes
class Reverting:
    """The part of a session that takes snapshots of the current lake back."""

    _lakes: Lakes
    _transactions: Transactions
    _engine: SparkEngine

    def revert(
        self,
        snapshot: int | datetime | str,
        tables: Sequence[str] | None = None,
        rows: RowChoice = None,
        on_conflict: OnConflict = None,
        message: str | None = None,
    ) -> Snapshot | None:
        """Takes the changes of one snapshot of the current lake back, and no others, as a new snapshot; returns that.

        Rows that it inserted are deleted, rows that it deleted come back under their row ids, and cells that it changed get
        the values from before, as do definitions of tables, views, macros and schemas. In an open transaction the changes
        are staged. Where nothing is left to take back, no snapshot is made.

        Args:
            snapshot: its id, a time or a tag.
            tables: only these.
            rows: only the rows with these ids, and no definitions; of several tables by name.
            on_conflict: what holds where a later snapshot changed the same row or cell again: "keep" is today's value,
                "revert" the old one. A mapping gives rules by table, row id and column:
                `{"main.flights": {17: "keep", 18: {"dep_time": "revert"}, "tailnum": "keep"}}`.
            message: of the commit; `revert of snapshot 13` by default.

        Raises:
            RevertConflictError: later snapshots changed the same, and no rule settles it; it lists the conflicts.
            SnapshotNotFoundError: the snapshot does not exist, or the one before it has expired.
            UnsupportedFeatureError: something cannot be taken back; it is named, and nothing is changed.
        """
        wanted = Wanted(_names(tables), rows, on_conflict)
        with self._revert_conflicts_shown(snapshot, tables, rows, message):
            return _revert_snapshot(self._transactions, self._engine, snapshot, wanted, message)

    def revert_preview(
        self,
        snapshot: int | datetime | str,
        tables: Sequence[str] | None = None,
        rows: RowChoice = None,
        on_conflict: OnConflict = None,
    ) -> Diff | LakeDiff:
        """Returns what `revert` with these arguments would change; commits nothing.

        It is the diff of the table, or of the lake where the snapshot changed several tables.
        """
        with self._revert_conflicts_shown(snapshot, tables, rows):
            return _preview(self._transactions, self._engine, snapshot, Wanted(_names(tables), rows, on_conflict))

    def _revert_conflicts_shown(
        self, snapshot: int | datetime | str, tables: Sequence[str] | None, rows: RowChoice, message: str | None = None
    ) -> AbstractContextManager[None]:
        """Let a notebook show the conflicts of a revert in a view."""
        name = f"snapshot {snapshot}" if isinstance(snapshot, int) else str(snapshot)
        return shown_in_view(
            self,
            "revert",
            f"revert of {name}",
            lambda rules: self.revert_preview(snapshot, tables, rows, rules),
            lambda rules: self.revert(snapshot, tables, rows, rules, message),
        )


def _names(tables: Sequence[str] | None) -> Sequence[str] | None:
    return [tables] if isinstance(tables, str) else tables


def _revert_snapshot(
    transactions: Transactions, engines: Engines, snapshot: At, wanted: Wanted, message: str | None
) -> Snapshot | None:
    """Commits, or stages in the open transaction, a revert in the current lake."""
    lakes = transactions.lakes
    lake = lakes.get()

    def run() -> Snapshot | None:
        transactions.check_usable()
        with lakes.statement():
            with transactions.writing(lake, undoes=True) as transaction:
                transaction.is_one_statement = not lakes.in_transaction
                revert = _revert(transaction, engines, snapshot)
                revert.run(wanted)
                if transaction.has_changes:
                    transaction.reverted.append(revert.snapshot_id)
                    default = transaction.message or f"revert of snapshot {revert.snapshot_id}"
                    transaction.message = default if message is None else message or None
            return transaction.snapshot

    return until_committed(transactions, run, reads=True)


def _preview(transactions: Transactions, engines: Engines, snapshot: At, wanted: Wanted) -> Diff | LakeDiff:
    """The changes that a revert would make in the current lake."""
    lakes = transactions.lakes
    lake = lakes.get()
    with lakes.statement(), transactions.trial(lake) as transaction:
        revert = _revert(transaction, engines, snapshot)
        revert.run(wanted)
        base, state = transaction.base, transaction.state
        sides = changed_sides(transaction)
        touched = [i for i in revert.tables(wanted) if i in base.tables or i in state.tables]
        if len(touched) != 1 or len(sides) > 1:
            return diff_open(lake, base, sides, engines)
        if not sides:
            table = base.tables[touched[0]]
            return diff_sides(
                Side(lake, base, table), Side(lake, state, table), base.qualified_name(table), engines=engines
            )
        ((name, (before, after)),) = sides.items()
        diff = diff_sides(before, after, name, engines=engines)
        diff.lives = Lives(lakes).of
        return diff


def _revert(transaction: Transaction, engines: Engines, snapshot: At) -> Revert:
    lake = transaction.lake
    with lake.connect() as connection:
        return Revert(transaction, lake.snapshot(connection, snapshot), engines)
