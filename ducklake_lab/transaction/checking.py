"""Checks a transaction against the commits of others since it began, table by table and then by rows (ADR 118)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions
from ducklake_lab.catalog import tables as t
from ducklake_lab.errors import TransactionConflictError
from ducklake_lab.model.changes import DELETES, INSERTS, MAINTENANCE, OF_ROWS, Change, parse_changes
from ducklake_lab.model.entries import LOCAL_ID_START
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.staged import StagedData
from ducklake_lab.transaction.conflicts import exclude_by_rows, find_changed, find_conflict
from ducklake_lab.transaction.own_changes import OwnChange
from ducklake_lab.transaction.reads import Read
from ducklake_lab.transaction.transaction import Transaction


def check_conflicts(transaction: Transaction, changes: Sequence[OwnChange], connection: sa.Connection) -> None:
    """Raises TransactionConflictError where a commit since the transaction began excludes it."""
    base, since = transaction.base, transaction.base.snapshot.snapshot_id
    c = t.snapshot_changes
    query = sa.select(c.c.snapshot_id, c.c.changes_made).where(c.c.snapshot_id > since).order_by(c.c.snapshot_id)
    theirs = {number: parse_changes(text) for number, text in connection.execute(query)}
    ours = [own.change for own in changes if own.excludes]
    names = base.table_names()
    names |= {view.view_id: base.qualified_name(view) for view in base.views.values()}
    names |= {macro.macro_id: base.qualified_name(macro) for macro in base.macros.values()}
    names |= {schema.schema_id: path_title(schema.name) for schema in base.schemas.values()}
    rows = _Rows(transaction, connection, ours, theirs)
    apart = rows.apart()
    for number, of_snapshot in theirs.items():
        changed = find_changed(transaction.needed_rows, of_snapshot)
        if changed is not None:
            raise TransactionConflictError(
                f"Transaction conflict: another transaction changed rows of {names[changed]}, which expectations have "
                f"read, in snapshot {number}. Nothing was written; run the transaction again."
            )
        conflict = find_conflict(
            ours,
            of_snapshot,
            schema_ids={schema.name: schema.schema_id for schema in base.schemas.values()},
            names=names,
            same_files=rows.in_same_files and number == max(theirs),
            apart=apart,
        )
        if conflict is not None:
            raise TransactionConflictError(
                f"Transaction conflict: {conflict} in snapshot {number}. Nothing was written; run the transaction again."
            )
    changed = rows.changed_read(apart)
    if changed is not None:
        raise TransactionConflictError(
            f"Transaction conflict: attempting to change {names[changed]} by rows of it that another transaction has "
            f"changed up to snapshot {max(theirs)}. Nothing was written; run the transaction again."
        )


class _Rows:
    """Rows that both sides changed, in tables that the catalog knows.

    Args:
        theirs: changes of others, by snapshot.
    """

    def __init__(
        self,
        transaction: Transaction,
        connection: sa.Connection,
        ours: Iterable[Change],
        theirs: Mapping[int, Sequence[Change]],
    ) -> None:
        self._transaction, self._connection = transaction, connection
        self._base = transaction.base.snapshot
        self._ours = [change for change in ours if change.kind in OF_ROWS]
        self._theirs = theirs

    @cached_property
    def in_same_files(self) -> bool:
        """Returns whether both sides deleted rows of one data file."""
        touched = {file_id for staged in self._transaction.data.values() for file_id in _deleted_from(staged)}
        if not touched:
            return False
        d, f = t.delete_file, t.data_file
        query = sa.union_all(
            # those that a flush wrote may begin before; their ids say that they came since
            sa.select(d.c.data_file_id).where(d.c.delete_file_id >= self._base.next_file_id),
            sa.select(f.c.data_file_id).where(f.c.end_snapshot > self._base.snapshot_id),
        )
        return any(file_id in touched for (file_id,) in self._connection.execute(query))

    def apart(self) -> frozenset[int]:
        """Returns the tables whose changed rows others did not touch, and whose changes by others it did not read."""
        excluded = {
            int(str(change.value))
            for change in self._ours
            if any(exclude_by_rows(change, other) for other in self._by_table.get(change.value, ()))
        }
        return frozenset(table_id for table_id in excluded if self._is_apart(table_id))

    def changed_read(self, apart: Collection[int]) -> int | None:
        """Returns a table, none of those, that it changes by rows which others changed; None if there is none."""
        tables = {int(str(change.value)) for change in self._ours if change.value in self._by_table}.difference(apart)
        return next((table_id for table_id in sorted(tables) if self._needs(table_id)), None)

    @cached_property
    def _by_table(self) -> Mapping[object, Sequence[Change]]:
        """Their changes of rows by table."""
        found: dict[object, list[Change]] = {}
        for changes in self._theirs.values():
            for change in changes:
                if change.kind in OF_ROWS:
                    found.setdefault(change.value, []).append(change)
        return found

    def _reads(self, table_id: int) -> list[Read] | None:
        """Returns the reads of a table; None where they are not known, or the transaction altered the table."""
        transaction = self._transaction
        reads, before = transaction.reads, transaction.base.tables.get(table_id)
        if reads is None or not reads.are_known or before is None or transaction.state.tables.get(table_id) != before:
            return None
        return reads.of(transaction.lake, table_id)

    def _shows_changes(self, table_id: int) -> bool:
        """Returns whether the catalog still has all that others changed of a table."""
        return self._has_all_snapshots and not self._is_maintained(table_id)

    def _is_maintained(self, table_id: int) -> bool:
        """Returns whether others wrote rows of a table to other files, where their changes can no longer be seen."""
        return any(
            change.kind in MAINTENANCE and change.value == table_id
            for changes in self._theirs.values()
            for change in changes
        )

    @cached_property
    def _has_all_snapshots(self) -> bool:
        """Returns whether no snapshot has expired since, the base included: expiry takes ended files away."""
        c, since = t.snapshot.c, self._base.snapshot_id
        count, newest = self._connection.execute(
            sa.select(sa.func.count(), sa.func.max(c.snapshot_id)).where(c.snapshot_id >= since)
        ).one()
        return newest is not None and count == newest - since + 1

    def _is_apart(self, table_id: int) -> bool:
        reads = self._reads(table_id)
        if reads is None or not self._shows_changes(table_id) or self._touches_same_rows(table_id):
            return False
        return not self._finds(table_id, reads, reads)

    def _needs(self, table_id: int) -> bool:
        """Returns whether a statement changes a table by rows that others changed; unknown rows count."""
        kinds = {change.kind for change in self._by_table[table_id]}
        reads = self._reads(table_id) or ()
        new = [read for read in reads if read.needs_new and kinds & INSERTS]
        gone = [read for read in reads if read.needs_gone and kinds & DELETES]
        if not new and not gone:
            return False
        return not self._shows_changes(table_id) or self._finds(table_id, new, gone)

    def _finds(self, table_id: int, new: Sequence[Read], gone: Sequence[Read]) -> bool:
        transaction = self._transaction
        table, finds = transaction.base.tables[table_id], transaction.finds_changes
        if finds is None:
            return True

        def predicates(reads: Sequence[Read]) -> list[Predicate | None]:
            return [read.predicate if read.table.columns == table.columns else None for read in reads]

        return finds(transaction.lake, self._connection, table, self._base, predicates(new), predicates(gone))

    def _touches_same_rows(self, table_id: int) -> bool:
        """Returns whether both sides deleted from one data file, or others an inlined row that it deletes."""
        staged, since = self._transaction.data[table_id], self._base.snapshot_id
        if self.in_same_files:
            return True
        touched = _deleted_from(staged)
        database = self._transaction.lake.database
        if touched & inlined_deletions.files_since(self._connection, database, table_id, since):
            return True
        gone = staged.deleted_row_ids
        return bool(gone) and not inlined.are_live(self._connection, table_id, gone)


def _deleted_from(staged: StagedData) -> set[int]:
    """Returns the committed files from which rows are deleted."""
    return {file_id for file_id in (*staged.deletes, *staged.dropped_files) if file_id < LOCAL_ID_START}
