"""Writes a transaction into the metadata tables, inside the committing database transaction.

Ids are allocated here, from the newest snapshot as this database transaction sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import inlined
from ducklake_lab.catalog import tables as t
from ducklake_lab.model.changes import Change, format_changes
from ducklake_lab.model.entries import Column, Snapshot, Table
from ducklake_lab.transaction.metadata import Ids, Metadata
from ducklake_lab.transaction.rows import RowWriter
from ducklake_lab.transaction.transaction import Transaction


class CommitWriter:
    """Writes one transaction as one snapshot.

    Attributes:
        snapshot_id: of the snapshot being written.
        changes: what `changes_made` will say.
    """

    def __init__(self, transaction: Transaction, connection: sa.Connection, latest: Snapshot) -> None:
        self._tx = transaction
        self._connection = connection
        self.snapshot_id = latest.snapshot_id + 1
        self._schema_version = latest.schema_version
        self._metadata = Metadata(connection, self.snapshot_id)
        self._ids = Ids(latest)
        self.changes: list[Change] = []

    def write(self) -> Snapshot:
        """Writes all rows; gives the new snapshot. The caller commits."""
        tx = self._tx
        if tx.state is not tx.base:
            self._schema_version += 1
            self._drop_entries()
            self._create_schemas()
            for table in tx.state.tables.values():
                self._write_table(table)
        rows = RowWriter(tx, self._metadata, self._ids, self.changes)
        for table_id, staged in tx.data.items():
            if staged:
                rows.append(tx.state.tables[table_id], staged)
        for table_id, staged in tx.data.items():
            if staged:
                rows.delete(tx.state.tables[table_id], staged)
        return self._write_snapshot()

    def _write_snapshot(self) -> Snapshot:
        snapshot = Snapshot(
            self.snapshot_id, datetime.now(UTC), self._schema_version, self._ids.next_catalog_id, self._ids.next_file_id
        )
        self._metadata.insert(
            t.snapshot,
            snapshot_id=snapshot.snapshot_id,
            snapshot_time=snapshot.snapshot_time,
            schema_version=snapshot.schema_version,
            next_catalog_id=snapshot.next_catalog_id,
            next_file_id=snapshot.next_file_id,
        )
        self._metadata.insert(
            t.snapshot_changes,
            snapshot_id=snapshot.snapshot_id,
            changes_made=format_changes(self.changes),
            author=self._tx.author,
            commit_message=self._tx.message,
            commit_extra_info=self._tx.extra_info,
        )
        return snapshot

    # Entries

    def _drop_entries(self) -> None:
        base, state = self._tx.base, self._tx.state
        for schema_id in sorted(base.schemas.keys() - state.schemas.keys()):
            self._metadata.end(t.schema, t.schema.c.schema_id == schema_id)
            self.changes.append(Change("dropped_schema", schema_id))
        dropped = sorted(base.tables.keys() - state.tables.keys())
        for table_id in dropped:
            self.changes.append(Change("dropped_table", table_id))
        if dropped:
            for table in (t.table, t.partition_info, t.column, t.column_tag, t.data_file, t.delete_file, t.sort_info):
                self._metadata.end(table, table.c.table_id.in_(dropped))
            self._metadata.end(t.tag, t.tag.c.object_id.in_(dropped))
        for view_id in sorted(base.views.keys() - state.views.keys()):
            self._metadata.end(t.view, t.view.c.view_id == view_id)
            self.changes.append(Change("dropped_view", view_id))

    def _create_schemas(self) -> None:
        for schema in self._tx.state.schemas.values():
            if schema.schema_id in self._tx.base.schemas:
                continue
            self._metadata.insert(
                t.schema,
                schema_id=self._ids.catalog(schema.schema_id),
                schema_uuid=schema.uuid,
                begin_snapshot=self.snapshot_id,
                schema_name=schema.name,
                path=schema.path,
                path_is_relative=schema.path_is_relative,
            )
            self.changes.append(Change("created_schema", (schema.name,)))

    def _write_table(self, table: Table) -> None:
        before = self._tx.base.tables.get(table.table_id)
        if before == table:
            return
        table_id = self._ids.catalog(table.table_id) if before is None else table.table_id
        renamed = before is None or (before.name, before.schema_id) != (table.name, table.schema_id)
        if renamed:
            if before is not None:
                self._metadata.end(t.table, t.table.c.table_id == table_id)
            self._metadata.insert(
                t.table,
                table_id=table_id,
                table_uuid=table.uuid,
                begin_snapshot=self.snapshot_id,
                schema_id=self._ids.known(table.schema_id),
                table_name=table.name,
                path=table.path,
                path_is_relative=table.path_is_relative,
            )
            schema_name = self._tx.state.schemas[table.schema_id].name
            self.changes.append(Change("created_table", (schema_name, table.name)))
        columns_changed = self._write_columns(table_id, before.columns if before is not None else (), table.columns)
        partition_changed = (before.partition if before is not None else None) != table.partition
        if partition_changed:
            self._write_partition(table_id, table)
        if before is not None and (columns_changed or partition_changed):
            self.changes.append(Change("altered_table", table_id))
        self._metadata.insert(
            t.schema_versions,
            begin_snapshot=self.snapshot_id,
            schema_version=self._schema_version,
            table_id=table_id,
        )
        if self._inlining_limit(table) > 0 and _can_inline(table.columns):
            inlined.create_data_table(
                self._connection, self._tx.lake.database, table_id, self._schema_version, table.columns
            )

    def _write_columns(self, table_id: int, before: Sequence[Column], after: Sequence[Column]) -> bool:
        old = dict(_rows_of(before))
        new = dict(_rows_of(after))
        ended = [column_id for column_id, row in old.items() if new.get(column_id) != row]
        if ended:
            self._metadata.end(t.column, sa.and_(t.column.c.table_id == table_id, t.column.c.column_id.in_(ended)))
        added = [
            {"table_id": table_id, "begin_snapshot": self.snapshot_id, **row}
            for column_id, row in new.items()
            if old.get(column_id) != row
        ]
        self._metadata.insert_many(t.column, added)
        return bool(ended or added)

    def _write_partition(self, table_id: int, table: Table) -> None:
        self._metadata.end(t.partition_info, t.partition_info.c.table_id == table_id)
        if table.partition is None:
            return
        partition_id = self._ids.catalog(table.partition.partition_id)
        self._metadata.insert(
            t.partition_info, partition_id=partition_id, table_id=table_id, begin_snapshot=self.snapshot_id
        )
        self._metadata.insert_many(
            t.partition_column,
            [
                {
                    "partition_id": partition_id,
                    "table_id": table_id,
                    "partition_key_index": index,
                    "column_id": key.column_id,
                    "transform": key.transform,
                }
                for index, key in enumerate(table.partition.fields)
            ],
        )

    def _inlining_limit(self, table: Table) -> int:
        return self._tx.options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id)


def _can_inline(columns: Sequence[Column]) -> bool:
    return not any(part.type in ("variant", "geometry") for column in columns for part in column.walk())


def _rows_of(columns: Sequence[Column], parent: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(column id, row of ducklake_column without its snapshots), parents first."""
    for column in columns:
        plain = replace(column, children=())
        yield (
            column.column_id,
            {
                "column_id": plain.column_id,
                "column_order": plain.order,
                "column_name": plain.name,
                "column_type": plain.type,
                "initial_default": plain.initial_default,
                "default_value": plain.default_value,
                "nulls_allowed": plain.nulls_allowed,
                "parent_column": parent,
                "default_value_type": plain.default_value_type,
                "default_value_dialect": plain.default_value_dialect,
            },
        )
        yield from _rows_of(column.children, column.column_id)
