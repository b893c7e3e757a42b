"""Writes a transaction into the metadata tables, inside the committing database transaction.

Ids are allocated here, from the newest snapshot as this database transaction sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from ducklake_lab.catalog import inlined
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.backends import Flag
from ducklake_lab.catalog.casting import quote_identifier
from ducklake_lab.catalog.database import raw_duckdb
from ducklake_lab.catalog.files import read_table_stats
from ducklake_lab.errors import TransactionError
from ducklake_lab.model.changes import Change, format_changes
from ducklake_lab.model.entries import LOCAL_ID_START, Column, Snapshot, Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.staged import ROW_ID, StagedData
from ducklake_lab.transaction.statistics import TableColumnStats, inlined_stats, leaves, merge
from ducklake_lab.transaction.transaction import Transaction

#: Rows above which a DuckDB catalog takes them as one Arrow table rather than one by one.
_BULK = 8


class CommitWriter:
    """Writes one transaction as one snapshot.

    Attributes:
        snapshot_id: of the snapshot being written.
        changes: what `changes_made` will say.
    """

    def __init__(self, transaction: Transaction, connection: sa.Connection, latest: Snapshot) -> None:
        self._tx = transaction
        self._connection = connection
        self._latest = latest
        self.snapshot_id = latest.snapshot_id + 1
        self._schema_version = latest.schema_version
        self._next_catalog_id = latest.next_catalog_id
        self._next_file_id = latest.next_file_id
        self._ids: dict[int, int] = {}
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
        for table_id, staged in tx.data.items():
            if staged:
                self._append(tx.state.tables[table_id], staged)
        for table_id, staged in tx.data.items():
            if staged:
                self._delete(tx.state.tables[table_id], staged)
        return self._write_snapshot()

    def _write_snapshot(self) -> Snapshot:
        snapshot = Snapshot(
            self.snapshot_id, datetime.now(UTC), self._schema_version, self._next_catalog_id, self._next_file_id
        )
        self._insert(
            t.snapshot,
            snapshot_id=snapshot.snapshot_id,
            snapshot_time=snapshot.snapshot_time,
            schema_version=snapshot.schema_version,
            next_catalog_id=snapshot.next_catalog_id,
            next_file_id=snapshot.next_file_id,
        )
        self._insert(
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
            self._end(t.schema, t.schema.c.schema_id == schema_id)
            self.changes.append(Change("dropped_schema", schema_id))
        dropped = sorted(base.tables.keys() - state.tables.keys())
        for table_id in dropped:
            self.changes.append(Change("dropped_table", table_id))
        if dropped:
            for table in (t.table, t.partition_info, t.column, t.column_tag, t.data_file, t.delete_file, t.sort_info):
                self._end(table, table.c.table_id.in_(dropped))
            self._end(t.tag, t.tag.c.object_id.in_(dropped))
        for view_id in sorted(base.views.keys() - state.views.keys()):
            self._end(t.view, t.view.c.view_id == view_id)
            self.changes.append(Change("dropped_view", view_id))

    def _create_schemas(self) -> None:
        for schema in self._tx.state.schemas.values():
            if schema.schema_id in self._tx.base.schemas:
                continue
            self._insert(
                t.schema,
                schema_id=self._catalog_id(schema.schema_id),
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
        table_id = self._catalog_id(table.table_id) if before is None else table.table_id
        renamed = before is None or (before.name, before.schema_id) != (table.name, table.schema_id)
        if renamed:
            if before is not None:
                self._end(t.table, t.table.c.table_id == table_id)
            self._insert(
                t.table,
                table_id=table_id,
                table_uuid=table.uuid,
                begin_snapshot=self.snapshot_id,
                schema_id=self._ids.get(table.schema_id, table.schema_id),
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
        self._insert(
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
            self._end(t.column, sa.and_(t.column.c.table_id == table_id, t.column.c.column_id.in_(ended)))
        added = [
            {"table_id": table_id, "begin_snapshot": self.snapshot_id, **row}
            for column_id, row in new.items()
            if old.get(column_id) != row
        ]
        self._insert_many(t.column, added)
        return bool(ended or added)

    def _write_partition(self, table_id: int, table: Table) -> None:
        self._end(t.partition_info, t.partition_info.c.table_id == table_id)
        if table.partition is None:
            return
        partition_id = self._catalog_id(table.partition.partition_id)
        self._insert(t.partition_info, partition_id=partition_id, table_id=table_id, begin_snapshot=self.snapshot_id)
        self._insert_many(
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

    def _catalog_id(self, local_id: int) -> int:
        """The committed id of an entry, allocated when it is local and first seen."""
        if local_id < LOCAL_ID_START:
            return local_id
        if local_id not in self._ids:
            self._ids[local_id] = self._next_catalog_id
            self._next_catalog_id += 1
        return self._ids[local_id]

    def _file_id(self) -> int:
        self._next_file_id += 1
        return self._next_file_id - 1

    # Rows

    def _append(self, table: Table, staged: StagedData) -> None:
        if not staged.files and not staged.rows:
            return
        table_id = self._ids.get(table.table_id, table.table_id)
        stats = read_table_stats(self._connection, [table_id]).get(table_id)
        next_row_id = stats.next_row_id if stats is not None else 0
        shift = next_row_id - self._tx.row_id_base(table)
        if shift and staged.keeps_row_ids:
            raise TransactionError(f"Row ids of {table.name} were taken by another transaction; run this one again.")
        by_column: dict[int, list[ColumnStats]] = {}
        for local_id, file in staged.files.items():
            file_id = self._file_id()
            self._ids[local_id] = file_id
            self._insert_data_file(table_id, file_id, file.row_id_start + shift, file)
            for column in file.file.column_stats:
                by_column.setdefault(column.column_id, []).append(column)
        rows = self._merged_rows(table, staged, shift)
        if rows is not None:
            self._insert_inlined(table, table_id, rows)
            for column_id, column in inlined_stats(table.columns, rows).items():
                by_column.setdefault(column_id, []).append(column)
            if not staged.files:
                self._file_id()  # the reference marks a change of data so
            self.changes.append(Change("inlined_insert", table_id))
        if staged.files:
            self.changes.append(Change("inserted_into_table", table_id))
        self._update_stats(table, table_id, staged, rows.num_rows if rows is not None else 0, by_column)

    def _insert_data_file(self, table_id: int, file_id: int, row_id_start: int, staged: Any) -> None:
        file = staged.file
        partition_id = staged.partition_id
        self._insert(
            t.data_file,
            data_file_id=file_id,
            table_id=table_id,
            begin_snapshot=self.snapshot_id,
            path=file.path,
            path_is_relative=True,
            file_format="parquet",
            record_count=file.record_count,
            file_size_bytes=file.file_size_bytes,
            footer_size=file.footer_size,
            row_id_start=row_id_start,
            partition_id=self._ids.get(partition_id, partition_id),
        )
        self._insert_many(
            t.file_partition_value,
            [
                {"data_file_id": file_id, "table_id": table_id, "partition_key_index": i, "partition_value": value}
                for i, value in enumerate(file.partition_values)
            ],
        )
        self._insert_many(
            t.file_column_stats,
            [
                {
                    "data_file_id": file_id,
                    "table_id": table_id,
                    "column_id": stats.column_id,
                    "column_size_bytes": stats.column_size_bytes,
                    "value_count": stats.value_count,
                    "null_count": stats.null_count,
                    "min_value": stats.min_value,
                    "max_value": stats.max_value,
                    "contains_nan": stats.contains_nan,
                    "extra_stats": stats.extra_stats,
                }
                for stats in file.column_stats
            ],
        )

    def _merged_rows(self, table: Table, staged: StagedData, shift: int) -> pa.Table | None:
        parts = []
        for batch in staged.rows:
            rows = inlined.project(batch.rows, batch.columns, table.columns)
            if shift:
                moved = pc.add(rows.column(ROW_ID), shift)
                rows = rows.set_column(0, ROW_ID, moved)
            parts.append(rows)
        return pa.concat_tables(parts) if parts else None

    def _insert_inlined(self, table: Table, table_id: int, rows: pa.Table) -> None:
        existing = inlined.inlined_tables(self._connection, table_id)
        if existing:
            name = existing[-1][0]
        else:
            database = self._tx.lake.database
            v = t.schema_versions
            version = self._connection.scalar(
                sa.select(sa.func.max(v.c.schema_version)).where(v.c.table_id == table_id)
            )
            inlined.create_data_table(self._connection, database, table_id, version or 0, table.columns)
            name = inlined.data_table_name(table_id, version or 0)
        inlined.insert_rows(self._connection, self._tx.lake.database, name, table.columns, rows, self.snapshot_id)

    def _update_stats(
        self,
        table: Table,
        table_id: int,
        staged: StagedData,
        inlined_rows: int,
        by_column: Mapping[int, Sequence[ColumnStats]],
    ) -> None:
        records = inlined_rows + sum(file.file.record_count for file in staged.files.values())
        size = sum(file.file.file_size_bytes for file in staged.files.values())
        s = t.table_stats
        before = read_table_stats(self._connection, [table_id]).get(table_id)
        if before is None:
            self._insert(s, table_id=table_id, record_count=records, next_row_id=staged.rows_used, file_size_bytes=size)
        else:
            self._connection.execute(
                s.update()
                .where(s.c.table_id == table_id)
                .values(
                    record_count=before.record_count + records,
                    next_row_id=before.next_row_id + staged.rows_used,
                    file_size_bytes=before.file_size_bytes + size,
                )
            )
        self._update_column_stats(table, table_id, by_column, first=before is None)

    def _update_column_stats(
        self, table: Table, table_id: int, by_column: Mapping[int, Sequence[ColumnStats]], *, first: bool
    ) -> None:
        """Merges column statistics; `first` says that nothing was inserted into the table before.

        A column added later gets none: they would have to speak of the older rows, which hold its default, too.
        """
        c = t.table_column_stats
        query = sa.select(c.c.column_id, c.c.contains_null, c.c.contains_nan, c.c.min_value, c.c.max_value)
        existing = {
            column_id: TableColumnStats(*values)
            for column_id, *values in self._connection.execute(query.where(c.c.table_id == table_id))
        }
        blank = [i for i, stats in existing.items() if stats.min_value is None or stats.max_value is None]
        unbounded = self._unbounded(table_id, blank) if blank else set()
        added = []
        for column in leaves(table.columns):
            new = by_column.get(column.column_id)
            old = existing.get(column.column_id)
            if new is None or (old is None and not first):
                continue
            merged = merge(old, new, column.data_type, unbounded=column.column_id in unbounded)
            values = {
                "contains_null": merged.contains_null,
                "contains_nan": merged.contains_nan,
                "min_value": merged.min_value,
                "max_value": merged.max_value,
            }
            if old is None:
                added.append({"table_id": table_id, "column_id": column.column_id, **values, "extra_stats": None})
            elif merged != old:
                where = sa.and_(c.c.table_id == table_id, c.c.column_id == column.column_id)
                self._connection.execute(c.update().where(where).values(values))
        self._insert_many(c, added)

    def _unbounded(self, table_id: int, columns: Sequence[int]) -> set[int]:
        """Those of the columns of which some file holds values whose bounds its writer did not tell."""
        s = t.file_column_stats
        query = sa.select(s.c.column_id).where(
            s.c.table_id == table_id,
            s.c.column_id.in_(columns),
            s.c.value_count > 0,
            sa.or_(s.c.min_value.is_(None), s.c.max_value.is_(None)),
        )
        return {column_id for (column_id,) in self._connection.execute(query.distinct())}

    def _delete(self, table: Table, staged: StagedData) -> None:
        table_id = self._ids.get(table.table_id, table.table_id)
        positions: list[tuple[int, Sequence[int]]] = []
        if staged.dropped_files:
            for source in (t.data_file, t.delete_file):
                self._end(source, source.c.data_file_id.in_(sorted(staged.dropped_files)))
        for local_id, deletes in staged.deletes.items():
            file_id = self._ids.get(local_id, local_id)
            if deletes.positions:
                positions.append((file_id, deletes.positions))
            if deletes.path is None:
                continue
            self._end(t.delete_file, t.delete_file.c.data_file_id == file_id)
            self._insert(
                t.delete_file,
                delete_file_id=self._file_id(),
                table_id=table_id,
                begin_snapshot=self.snapshot_id,
                data_file_id=file_id,
                path=deletes.path,
                path_is_relative=True,
                format="parquet",
                delete_count=deletes.delete_count,
                file_size_bytes=deletes.file_size_bytes,
                footer_size=deletes.footer_size,
            )
        if staged.dropped_files or any(deletes.path is not None for deletes in staged.deletes.values()):
            self.changes.append(Change("deleted_from_table", table_id))
        if positions:
            inlined.insert_deletes(self._connection, self._tx.lake.database, table_id, positions, self.snapshot_id)
        if staged.deleted_row_ids:
            for name, _ in inlined.inlined_tables(self._connection, table_id):
                inlined.end_rows(self._connection, name, sorted(staged.deleted_row_ids), self.snapshot_id)
        if positions or staged.deleted_row_ids:
            self.changes.append(Change("inlined_delete", table_id))

    def _inlining_limit(self, table: Table) -> int:
        return self._tx.options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id)

    # Statements

    def _end(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> None:
        self._connection.execute(
            table.update().where(condition, table.c.end_snapshot.is_(None)).values(end_snapshot=self.snapshot_id)
        )

    def _insert(self, table: sa.Table, **values: object) -> None:
        self._connection.execute(table.insert(), values)

    def _insert_many(self, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        if self._connection.dialect.name != "duckdb" or len(rows) <= _BULK:
            self._connection.execute(table.insert(), rows)
            return
        # row by row, DuckDB takes a millisecond each
        names = list(rows[0])
        fields = [pa.field(name, _arrow_type(table.c[name])) for name in names]
        batch = pa.Table.from_pylist(list(rows), pa.schema(fields))
        raw = raw_duckdb(self._connection)
        raw.register("ducklake_lab_rows", batch)
        try:
            raw.execute(f"INSERT INTO {quote_identifier(table.name)} BY NAME SELECT * FROM ducklake_lab_rows")
        finally:
            raw.unregister("ducklake_lab_rows")


def _arrow_type(column: sa.Column[Any]) -> pa.DataType:
    if isinstance(column.type, sa.BigInteger):
        return pa.int64()
    return pa.bool_() if isinstance(column.type, Flag) else pa.string()


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
