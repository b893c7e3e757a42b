"""Refreshes and lists live tables."""

from __future__ import annotations

from ducklake_lab.session.names.attached_lakes import Lakes, split_name
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.statements.live.tables import Refreshed
from ducklake_lab.session.statements.runner import Statements
from ducklake_lab.sql import operations as op


@works_on_lakes
class Live:
    """The part of a session that keeps live tables current; `CREATE LIVE TABLE name AS …` makes one."""

    _lakes: Lakes
    _statements: Statements

    def refresh(self, table: str) -> Refreshed:
        """Brings the rows of a live table to those of its query at the newest snapshot, in one commit.

        Only rows of keys that changes of its sources affect are computed where that is proven to be exact; otherwise all
        are. Where its sources have not changed, nothing is committed.

        Raises:
            UsageError: the table is no live table.
            EntryNotFoundError: the table, or one that it reads, does not exist.
            TransactionError: a transaction is open.
        """
        with self._lakes.statement():
            (done,) = self._statements.live.refresh(op.TableName.of(split_name(table)))
        return done

    def refresh_all(self) -> list[Refreshed]:
        """Refreshes all live tables of the current lake, each after those that it reads, in a commit for each.

        One that reads a live table whose refresh failed is refreshed from the rows that this one has.

        Raises:
            RefreshError: some could not be refreshed; the others are.
            TransactionError: a transaction is open.
        """
        with self._lakes.statement():
            return self._statements.live.refresh(None)

    def live(self) -> Result:
        """Returns a row per live table of the current lake: its query, and how many snapshots it is behind."""
        with self._lakes.statement():
            return self._statements.live.listing.listed()
