"""States in which lakes are read: one snapshot of each in a statement or transaction, plus staged changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.state import CatalogState
from ducklake_lab.transaction.reads import Read, Reads
from ducklake_lab.transaction.transaction import Transaction

#: A snapshot: its id, a time at which it was the newest, or its tag; None means the newest.
At = int | datetime | str | None
#: Use of the rows that a statement reads: it returns them, it changes each of its target's by itself, or it changes rows
#: by all that it reads. None: they are looked at by what makes no difference to a commit.
Use = Literal["look", "change each", "change"] | None


class ReadStates:
    """The pinned snapshots of a session, and the transaction whose staged changes it reads.

    Attributes:
        transaction: the transaction that statements write in; its lake is read with its changes.
        held: a BEGIN keeps the pins until the transaction ends.
        at: the default snapshot of the current lake for the statement.
        pins: snapshots by lake alias.
        noted: reads of the open transaction, or of the one of a statement; None outside of both.
    """

    def __init__(self) -> None:
        self.transaction: Transaction | None = None
        self.held = False
        self.at: At = None
        self.pins: dict[str, Snapshot] = {}
        self.noted: Reads | None = None
        self._uses: list[Use] = []
        self._in_statement = False
        self._at: dict[tuple[str, At], Snapshot] = {}

    @contextmanager
    def statement(self, at: At = None) -> Iterator[None]:
        """Runs one statement in the block; it reads each lake at one snapshot."""
        self.at, self._in_statement = at, True
        try:
            yield
        finally:
            self.at, self._in_statement = None, False
            self._at.clear()
            if not self.held:
                self.pins.clear()

    @property
    def in_statement(self) -> bool:
        """Returns whether a statement runs, and reads each lake at one snapshot."""
        return self._in_statement

    @contextmanager
    def noting(self, use: Use) -> Iterator[None]:
        """Marks a block that notes each table that it reads, for the transaction's commit; see `note`."""
        self._uses.append(use)
        try:
            yield
        finally:
            self._uses.pop()

    @property
    def is_changing(self) -> bool:
        """Returns whether a statement runs that changes rows by nothing but reads that it notes."""
        return bool(self._uses) and self._uses[-1] in ("change each", "change")

    def note(self, lake: Lake, table: Table, predicate: Predicate | None, *, is_target: bool) -> None:
        """Notes that the statement reads those rows of a table for which a predicate is true.

        Args:
            is_target: it reads them to change them.
        """
        if self.noted is None or not self._uses or self._uses[-1] is None:
            return
        use = self._uses[-1]
        changes = use != "look"
        needs_gone = changes and not (is_target and use == "change each")
        self.noted.note(lake, Read(table, predicate, needs_new=changes, needs_gone=needs_gone))

    def note_unknown(self) -> None:
        """Notes that the open transaction may have read anything."""
        if self.noted is not None and (not self._uses or self._uses[-1] is not None):
            self.noted.are_known = False

    def unpin(self, aliases: Iterable[str]) -> None:
        for alias in aliases:
            self.pins.pop(alias, None)

    def state(self, lake: Lake, at: At = None) -> CatalogState:
        """Returns the entries of a lake: at a snapshot, or with the open transaction's changes, or the newest."""
        if not self._uses:
            self.note_unknown()
        if at is None and self.transaction is not None and self.transaction.lake is lake:
            return self.transaction.state
        if at is not None:
            return self._state_at(lake, at)
        pinned = self.pins.get(lake.alias) or lake.newest_unopened()
        state = lake.cache.entries(pinned) if pinned is not None else None
        if state is None and pinned is not None:
            with lake.connect() as connection:
                state = lake.state(connection, pinned)
        state = state or lake.read_newest()
        if self.held or self._in_statement:
            self.pins[lake.alias] = state.snapshot
        return state

    def _state_at(self, lake: Lake, at: At) -> CatalogState:
        """Returns the entries at a snapshot, which one statement looks for once."""
        known = self._at.get((lake.alias, at))
        state = lake.cache.entries(known) if known is not None else None
        if state is None:
            with lake.connect() as connection:
                state = lake.state(connection, lake.snapshot(connection, at))
        if self._in_statement:
            self._at[lake.alias, at] = state.snapshot
        return state

    def is_newest(self, lake: Lake, state: CatalogState) -> bool:
        """Returns whether a state is the newest snapshot that this statement found, with no open transaction."""
        pinned = self.pins.get(lake.alias)
        at_newest = pinned is not None and pinned.snapshot_id == state.snapshot.snapshot_id and lake.at is None
        return at_newest and self.transaction is None and not self.held

    def is_uncommitted(self, state: CatalogState) -> bool:
        """Returns whether a state belongs to the open transaction and contains changes."""
        own = self.transaction
        return self.held and own is not None and own.state is state and own.has_changes
