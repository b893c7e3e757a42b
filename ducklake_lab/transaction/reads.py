"""Reads of a transaction, by which its commit finds changes of others that matter (ADR 118)."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.predicates import Predicate

#: Most reads of a table that are kept one by one.
_MOST = 50


@dataclass(frozen=True, slots=True)
class Read:
    """A read of a table: other rows than those for which a predicate is true do not matter to it.

    Attributes:
        table: as it was read.
        predicate: None where all rows matter.
        needs_new: a statement that changes rows read it, so that rows which others insert matter to that change.
        needs_gone: the same of rows which others delete.
    """

    table: Table
    predicate: Predicate | None
    needs_new: bool = False
    needs_gone: bool = False


class Reads:
    """The reads of a transaction, by lake and table.

    Attributes:
        are_known: all reads are noted. Where one is not, each table counts as one of which nothing is known.
    """

    def __init__(self, *, are_known: bool = True) -> None:
        self.are_known = are_known
        self._by_table: dict[tuple[Lake, int], dict[Hashable, Read]] = {}

    def note(self, lake: Lake, read: Read) -> None:
        """Note a read; many of one table become one of all its rows."""
        noted = self._by_table.setdefault((lake, read.table.table_id), {})
        # by the predicate's text, as 1 and true are equal in Python
        noted[repr(read.predicate), read.needs_new, read.needs_gone, read.table.columns] = read
        if len(noted) > _MOST:
            reads = [*noted.values()]
            noted.clear()
            needs_new, needs_gone = any(r.needs_new for r in reads), any(r.needs_gone for r in reads)
            self.note(lake, Read(read.table, None, needs_new=needs_new, needs_gone=needs_gone))

    def of(self, lake: Lake, table_id: int) -> list[Read]:
        return [*self._by_table.get((lake, table_id), {}).values()]


class FindsChanges(Protocol):
    """Looks for rows that others changed, in metadata and inlined rows."""

    def __call__(
        self,
        lake: Lake,
        connection: sa.Connection,
        table: Table,
        base: Snapshot,
        new: Collection[Predicate | None],
        gone: Collection[Predicate | None],
    ) -> bool:
        """Returns whether a row inserted after a snapshot may fulfil one of `new`, or a deleted one one of `gone`.

        None stands for a predicate that all rows fulfil.
        """
