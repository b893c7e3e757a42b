"""Write a transaction's changes of rows: files, inlined rows, deletions, statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import TableStats
from ducklake_lab.catalog.inlined_rows import insert_rows
from ducklake_lab.catalog.mappings import insert_mapping, read_mappings
from ducklake_lab.catalog.projection import project
from ducklake_lab.catalog.table_facts import TableColumnStats, TableFacts
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import ColumnStats, WrittenDeletes, WrittenFile
from ducklake_lab.model.mapping import ColumnMapping
from ducklake_lab.model.staged import ROW_ID, StagedData
from ducklake_lab.transaction.facts import CommitFacts
from ducklake_lab.transaction.metadata import Ids, Metadata, schedule_deletion
from ducklake_lab.transaction.nul_bytes import unbounded_inlined, without_nul
from ducklake_lab.transaction.retyping import spelled_for
from ducklake_lab.transaction.statistics import inlined_stats, leaves, merge
from ducklake_lab.transaction.transaction import Transaction

_s, _c = t.table_stats.c, t.table_column_stats.c
# statements are made once: making one takes as long as running it
_UPDATE_STATS = (
    t.table_stats.update()
    .where(_s.table_id == sa.bindparam("of"))
    .values(
        record_count=sa.bindparam("records"), next_row_id=sa.bindparam("next"), file_size_bytes=sa.bindparam("bytes")
    )
)
#: The highest count that a catalog holds.
_MOST = 2**63 - 1
#: Types whose values may have a NUL byte.
_TEXTS = frozenset(("varchar", "json"))
#: Ids are no parameters, which are limited.
_DELETE_COLUMN_STATS = t.table_column_stats.delete().where(
    _c.table_id == sa.bindparam("of"), _c.column_id.in_(sa.bindparam("ids", expanding=True, literal_execute=True))
)


class RowWriter:
    """Writes staged data, table by table: first `append` for all tables, then `delete` for all.

    Attributes:
        facts: of the tables that rows were added to, as they are now.
    """

    def __init__(self, transaction: Transaction, metadata: Metadata, ids: Ids, facts: CommitFacts) -> None:
        self._tx = transaction
        self._metadata = metadata
        self._ids = ids
        self._facts = facts
        self._mapping_ids: dict[tuple[int, object], int] = {}
        self.facts: dict[int, TableFacts] = {}

    def append(self, table: Table, staged: StagedData) -> None:
        if not staged.files and not staged.rows and not staged.flushed:
            return
        table_id, backend = self._ids.known(table.table_id), self._tx.lake.location.backend
        facts = self._facts.of(table_id)
        stats = facts.stats
        # rows get their ids now, files first: those that the transaction handed out may have gaps, or be others'
        next_row_id = stats.next_row_id if stats is not None else 0
        by_column: dict[int, list[ColumnStats]] = {}
        self._write_mappings(table_id, [file.file.mapping for file in staged.files.values()])
        for local_id, file in staged.files.items():
            file_id = self._ids.file(local_id)
            first_row_id = file.row_id_start
            if first_row_id is not None and not file.is_final:
                first_row_id, next_row_id = next_row_id, next_row_id + file.file.record_count
            written = spelled_for(table, file.file, backend)
            self.insert_data_file(table_id, file_id, written, first_row_id, file.partition_id)
            for column in written.column_stats:
                by_column.setdefault(column.column_id, []).append(column)
        for local_id, flushed in staged.flushed.items():
            written = spelled_for(table, flushed.file, backend)
            self.insert_data_file(
                table_id,
                self._ids.file(local_id),
                written,
                flushed.row_id_start,
                flushed.partition_id,
                begin_snapshot=flushed.begin_snapshot,
                partial_max=flushed.partial_max,
            )
            for column in written.column_stats:
                by_column.setdefault(column.column_id, []).append(column)
        rows, next_row_id = self._merged_rows(table, staged, next_row_id)
        if rows is not None:
            facts = replace(facts, rows_table=self._insert_inlined(table, table_id, rows, facts))
            for column_id, column in inlined_stats(table.columns, rows).items():
                by_column.setdefault(column_id, []).append(without_nul(column, backend))
            if not staged.files:
                self._ids.file()  # the reference marks a change of data so
        inlined_rows = rows.num_rows if rows is not None else 0
        self._update_stats(table, table_id, staged, inlined_rows, next_row_id, by_column, facts)

    def _write_mappings(self, table_id: int, mappings: Sequence[ColumnMapping | None]) -> None:
        """Gives the mappings of files ids: those the table has, or new ones."""
        new = {mapping.key(): mapping for mapping in mappings if mapping is not None}
        if not new:
            return
        for mapping_id, mapping in read_mappings(self._metadata.connection, table_id).items():
            self._mapping_ids[table_id, mapping.key()] = mapping_id
        for key, mapping in new.items():
            if (table_id, key) not in self._mapping_ids:
                self._mapping_ids[table_id, key] = mapping_id = self._ids.file()
                insert_mapping(self._metadata, table_id, mapping_id, mapping)

    def insert_data_file(
        self,
        table_id: int,
        file_id: int,
        file: WrittenFile,
        row_id_start: int | None,
        partition_id: int | None,
        *,
        begin_snapshot: int | None = None,
        partial_max: int | None = None,
    ) -> None:
        """Write all rows about a data file; it begins with this commit unless an earlier snapshot is given."""
        self._metadata.insert(
            t.data_file,
            data_file_id=file_id,
            table_id=table_id,
            begin_snapshot=self._metadata.snapshot_id if begin_snapshot is None else begin_snapshot,
            path=file.path,
            path_is_relative=file.path_is_relative,
            file_format="parquet",
            record_count=file.record_count,
            file_size_bytes=file.file_size_bytes,
            footer_size=file.footer_size,
            row_id_start=row_id_start,
            partition_id=self._ids.known(partition_id) if partition_id is not None else None,
            partial_max=partial_max,
            mapping_id=self._mapping_ids[table_id, file.mapping.key()] if file.mapping is not None else None,
            encryption_key=file.encryption_key,
            row_group_count=file.row_group_count,
        )
        self._metadata.insert_many(
            t.file_partition_value,
            [
                {"data_file_id": file_id, "table_id": table_id, "partition_key_index": i, "partition_value": value}
                for i, value in enumerate(file.partition_values)
            ],
        )
        self._metadata.insert_many(
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
                    "min_is_exact": stats.min_is_exact if stats.min_value is not None else None,
                    "max_is_exact": stats.max_is_exact if stats.max_value is not None else None,
                }
                for stats in file.column_stats
            ],
        )

        self._metadata.insert_many(
            t.file_variant_stats,
            [
                {
                    "data_file_id": file_id,
                    "table_id": table_id,
                    "column_id": stats.column_id,
                    "variant_path": part.path,
                    "shredded_type": part.shredded_type,
                    "column_size_bytes": part.stats.column_size_bytes,
                    "value_count": part.stats.value_count,
                    "null_count": part.stats.null_count,
                    "min_value": part.stats.min_value,
                    "max_value": part.stats.max_value,
                    "contains_nan": part.stats.contains_nan,
                    "extra_stats": part.stats.extra_stats,
                }
                for stats in file.column_stats
                for part in stats.variant_stats
            ],
        )

    def _merged_rows(self, table: Table, staged: StagedData, next_row_id: int) -> tuple[pa.Table | None, int]:
        """Return the rows to inline, with the ids of new ones, and the next row id after them."""
        parts = []
        for batch in staged.rows:
            rows = project(batch.rows, batch.columns, table.columns)
            if not batch.updated:
                last = next_row_id + rows.num_rows
                rows = rows.set_column(0, ROW_ID, pa.array(np.arange(next_row_id, last, dtype=np.int64)))
                next_row_id = last
            parts.append(rows)
        return (pa.concat_tables(parts) if parts else None), next_row_id

    def _insert_inlined(self, table: Table, table_id: int, rows: pa.Table, facts: TableFacts) -> str:
        """Inserts rows into the inlined data table that takes them; gives its name."""
        connection, database = self._metadata.connection, self._tx.lake.database
        name, newest = facts.rows_table, facts.newest_table
        if name is None and newest is not None and inlined.takes_rows(connection, table_id, newest, table.columns):
            name = newest.name
        if name is None:
            # inlining was off when the table got its columns; the reference counts this as a change of the schema
            self._ids.schema_version += 1
            version = self._ids.schema_version
            self._metadata.then(inlined.create_data_table, database, table_id, version, table.columns)
            name = inlined.data_table_name(table_id, version)
        self._metadata.then(insert_rows, database, name, table.columns, rows, self._metadata.snapshot_id)
        return name

    def _update_stats(
        self,
        table: Table,
        table_id: int,
        staged: StagedData,
        inlined_rows: int,
        next_row_id: int,
        by_column: Mapping[int, Sequence[ColumnStats]],
        facts: TableFacts,
    ) -> None:
        before = facts.stats
        records = inlined_rows + sum(file.file.record_count for file in staged.files.values())
        written = [f.file for f in staged.files.values()] + [f.file for f in staged.flushed.values()]
        size = sum(file.file_size_bytes for file in written)
        old = before or TableStats(0, 0, 0)
        now = TableStats(old.record_count + records, next_row_id, old.file_size_bytes + size)
        if max(now.record_count, now.next_row_id, now.file_size_bytes) > _MOST:
            raise CatalogError(
                f"The catalog is damaged: a count in ducklake_table_stats, of the table with the id {table_id}, is at its end; "
                "restore it from a backup."
            )
        if before is None:
            self._metadata.insert(t.table_stats, table_id=table_id, **asdict(now))
        else:
            self._metadata.write(
                _UPDATE_STATS,
                {"of": table_id, "records": now.record_count, "next": now.next_row_id, "bytes": now.file_size_bytes},
            )
        columns = self._update_column_stats(table, table_id, by_column, facts)
        self.facts[table_id] = replace(facts, stats=now, columns=columns)

    def _update_column_stats(
        self, table: Table, table_id: int, by_column: Mapping[int, Sequence[ColumnStats]], facts: TableFacts
    ) -> Mapping[int, TableColumnStats]:
        """Merge column statistics, and return the new ones.

        A column added later gets none: they would have to cover older rows, which hold its default, too.
        """
        existing, changed = facts.columns, dict[int, TableColumnStats]()
        blank = [i for i, stats in existing.items() if stats.min_value is None or stats.max_value is None]
        unbounded = self._unbounded(table, table_id, blank) if blank else set()
        for column in leaves(table.columns):
            new = by_column.get(column.column_id)
            old = existing.get(column.column_id)
            if new is None or (old is None and facts.stats is not None):
                continue
            merged = merge(old, new, column.data_type, unbounded=column.column_id in unbounded)
            if merged != old:
                changed[column.column_id] = merged
        gone = [column_id for column_id in changed if column_id in existing]
        if gone:
            # two statements for all columns, which may be thousands
            self._metadata.write(_DELETE_COLUMN_STATS, {"of": table_id, "ids": gone})
        rows = [{"table_id": table_id, "column_id": column_id, **stats.row()} for column_id, stats in changed.items()]
        self._metadata.insert_many(t.table_column_stats, rows)
        return {**existing, **changed}

    def _unbounded(self, table: Table, table_id: int, columns: Sequence[int]) -> set[int]:
        """Return the columns, of those without bounds, that have values in some file, or inlined ones without bounds.

        A file may have the bounds that the table lacks: other clients keep none of tables, and a change of type clears them.
        """
        s = t.file_column_stats
        query = sa.select(s.c.column_id).where(
            s.c.table_id == table_id,
            s.c.column_id.in_(columns),
            sa.or_(s.c.value_count.is_(None), s.c.value_count > 0),
        )
        with_values = {column_id for (column_id,) in self._metadata.connection.execute(query.distinct())}
        if self._tx.lake.location.backend != "postgresql":
            return with_values  # only there an inlined value may have no bounds
        texts = {part.column_id: column for column in table.columns for part in column.walk() if part.type in _TEXTS}
        blank = [texts[column_id] for column_id in columns if column_id in texts and column_id not in with_values]
        return with_values | unbounded_inlined(self._metadata.connection, table_id, blank, self._metadata.snapshot_id)

    def delete(self, table: Table, staged: StagedData) -> None:
        table_id = self._ids.known(table.table_id)
        positions: list[tuple[int, Sequence[int]]] = []
        if staged.dropped_files:
            for source in (t.data_file, t.delete_file):
                self._metadata.end(
                    source, one_of(self._metadata.connection, source.c.data_file_id, staged.dropped_files)
                )
        for local_id, deletes in staged.deletes.items():
            file_id = self._ids.known(local_id)
            if deletes.positions:
                positions.append((file_id, deletes.positions))
            if deletes.path is None:
                continue
            if deletes.new_snapshot not in (None, self._metadata.snapshot_id):
                deletes = self._tx.restamp(table, deletes, self._metadata.snapshot_id)
                staged.deletes[local_id] = deletes
            self._insert_delete_file(table, table_id, file_id, deletes)
        if positions:
            database = self._tx.lake.database
            if not database.has_table(self._metadata.connection, inlined_deletions.table_name(table_id)):
                self._metadata.then(inlined_deletions.create_table, database, table_id)
            self._metadata.then(inlined_deletions.insert, table_id, positions, self._metadata.snapshot_id)
        if staged.deleted_row_ids:
            row_ids = sorted(staged.deleted_row_ids)
            tables = inlined.inlined_tables(self._metadata.connection, table_id)
            self._metadata.expect(inlined.number_of_tables(table_id), len(tables))
            for name, _ in tables:
                self._metadata.then(inlined.end_rows, name, row_ids, self._metadata.snapshot_id)

    def _insert_delete_file(self, table: Table, table_id: int, file_id: int, deletes: WrittenDeletes) -> None:
        if deletes.replaces:
            self._replace_delete_files(table, deletes)
        self._metadata.insert(
            t.delete_file,
            delete_file_id=self._ids.file(),
            table_id=table_id,
            begin_snapshot=deletes.begin_snapshot if deletes.begin_snapshot is not None else self._metadata.snapshot_id,
            end_snapshot=deletes.end_snapshot,
            data_file_id=file_id,
            path=deletes.path,
            path_is_relative=True,
            format=deletes.format,
            delete_count=deletes.delete_count,
            file_size_bytes=deletes.file_size_bytes,
            footer_size=deletes.footer_size,
            encryption_key=deletes.encryption_key,
            partial_max=deletes.partial_max,
            row_group_count=deletes.row_group_count,
        )

    def _replace_delete_files(self, table: Table, deletes: WrittenDeletes) -> None:
        is_old = t.delete_file.c.delete_file_id.in_([delete.delete_file_id for delete in deletes.replaces])
        if deletes.begin_snapshot is None:
            self._metadata.end(t.delete_file, is_old)
            return
        # the new file has all their deletions, for earlier snapshots too
        self._metadata.write(t.delete_file.delete().where(is_old))
        folder = self._tx.lake.folder(self._tx.state, table)
        schedule_deletion(
            self._metadata,
            self._tx.lake.data_path,
            [(d.delete_file_id, paths.resolve(folder, d.path, d.path_is_relative)) for d in deletes.replaces],
        )

    def finish_flush(self, table: Table, staged: StagedData) -> None:
        """Write the delete files of flushed data files, and remove flushed rows and deletions from the catalog."""
        table_id = self._ids.known(table.table_id)
        for local_id, flushed in staged.flushed.items():
            if flushed.deletes is not None:
                # each of these files has snapshot ids of its own
                plain = replace(flushed.deletes, partial_max=None)
                self._insert_delete_file(table, table_id, self._ids.known(local_id), plain)
        for name, up_to in staged.flushed_tables.items():
            self._metadata.then(inlined.remove_rows, name, up_to)
        if staged.flushed_deletes is not None:
            self._metadata.then(inlined_deletions.remove, table_id, staged.flushed_deletes)
