"""Writes a transaction into the metadata tables, inside the committing database transaction.

Ids are allocated here, from the newest snapshot as this database transaction sees it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.table_facts import TableFacts
from ducklake_lab.errors import TransactionError
from ducklake_lab.model.changes import Change, format_changes
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.transaction.compactions import CompactionWriter
from ducklake_lab.transaction.entries import EntryWriter
from ducklake_lab.transaction.facts import CommitFacts
from ducklake_lab.transaction.metadata import Ids, Metadata
from ducklake_lab.transaction.own_changes import OwnChange
from ducklake_lab.transaction.rows import RowWriter
from ducklake_lab.transaction.transaction import Transaction


class CommitWriter:
    """Writes one transaction as one snapshot.

    Attributes:
        snapshot_id: of the snapshot being written.
        metadata: holds what it writes.
        facts: of the tables that it adds rows to; None where it writes more than rows and deletions.
    """

    def __init__(
        self, transaction: Transaction, connection: sa.Connection, latest: Snapshot, changes: Sequence[OwnChange]
    ) -> None:
        self._tx = transaction
        self._latest = latest
        self.snapshot_id = latest.snapshot_id + 1
        self.metadata = Metadata(connection, self.snapshot_id)
        self._ids = Ids(latest)
        self._changes = [own for own in changes if own.noted]
        self.facts: Mapping[int, TableFacts] | None = None

    def write(self) -> Snapshot:
        """Reads what it needs, and holds all rows; gives the new snapshot. The caller flushes and commits."""
        tx = self._tx
        self.metadata.expect(sa.select(sa.func.max(t.snapshot.c.snapshot_id)), self._latest.snapshot_id)
        facts = CommitFacts(tx, self.metadata, self._latest)
        if tx.state.differs_from(tx.base):
            self._ids.schema_version += 1
            EntryWriter(tx, self.metadata, self._ids, facts).write()
        self._write_tags()
        rows = RowWriter(tx, self.metadata, self._ids, facts)
        # the order in which the reference hands out ids: committed tables first
        data = sorted(tx.data.items())
        for table_id, staged in data:
            if staged:
                rows.append(tx.state.tables[table_id], staged)
        for table_id, staged in data:
            if staged:
                rows.delete(tx.state.tables[table_id], staged)
        for table_id, staged in data:
            if staged:
                rows.finish_flush(tx.state.tables[table_id], staged)
        self._write_compactions(rows)
        if tx.state is tx.base and not any(staged.flushed or staged.compactions for staged in tx.data.values()):
            self.facts = rows.facts
        return self._write_snapshot()

    def _write_tags(self) -> None:
        tag = t.tag
        for (table_id, key), value in self._tx.new_tags.items():
            if table_id not in self._tx.state.tables:
                continue
            object_id = self._ids.known(table_id)
            self.metadata.end(tag, sa.and_(tag.c.object_id == object_id, tag.c.key == key))
            if value is not None:
                self.metadata.insert(tag, object_id=object_id, begin_snapshot=self.snapshot_id, key=key, value=value)

    def _write_compactions(self, rows: RowWriter) -> None:
        compacted = {i: staged for i, staged in self._tx.data.items() if staged.compactions}
        if compacted and not all(own.compacts for own in self._changes):
            raise TransactionError(
                "A transaction compacts files or makes other changes, not both; COMMIT before merging or rewriting."
            )
        writer = CompactionWriter(self._tx, self.metadata, self._ids, rows)
        for table_id, staged in compacted.items():
            writer.write(self._tx.state.tables[table_id], staged)

    def _write_snapshot(self) -> Snapshot:
        snapshot = Snapshot(
            self.snapshot_id,
            datetime.now(UTC),
            self._ids.schema_version,
            self._ids.next_catalog_id,
            self._ids.next_file_id,
        )
        self.metadata.insert(
            t.snapshot,
            snapshot_id=snapshot.snapshot_id,
            snapshot_time=snapshot.snapshot_time,
            schema_version=snapshot.schema_version,
            next_catalog_id=snapshot.next_catalog_id,
            next_file_id=snapshot.next_file_id,
        )
        self.metadata.insert(
            t.snapshot_changes,
            snapshot_id=snapshot.snapshot_id,
            changes_made=format_changes(map(self._committed, self._changes)),
            author=self._tx.author,
            commit_message=self._tx.message,
            commit_extra_info=self._tx.extra_info,
        )
        return snapshot

    def _committed(self, own: OwnChange) -> Change:
        """A change by the ids that the catalog has."""
        kind, value = own.change.kind, own.change.value
        return Change(kind, self._ids.known(value)) if isinstance(value, int) else own.change
