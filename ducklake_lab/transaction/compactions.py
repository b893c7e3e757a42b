"""Write compactions: files that replace others, and statistics that are exact again."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, paths
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import read_column_stats, read_data_files, read_table_stats
from ducklake_lab.catalog.tables import one_of, visible
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.staged import Compaction, StagedData
from ducklake_lab.transaction.metadata import Ids, Metadata, schedule_deletion
from ducklake_lab.transaction.nul_bytes import without_nul
from ducklake_lab.transaction.retyping import spelled_for
from ducklake_lab.transaction.rows import RowWriter
from ducklake_lab.transaction.statistics import inlined_stats, leaves, merge
from ducklake_lab.transaction.transaction import Transaction

_OF_FILE = (t.data_file, t.file_column_stats, t.delete_file, t.file_partition_value, t.file_variant_stats)


class CompactionWriter:
    """Writer of compactions; a transaction with one changes nothing else."""

    def __init__(self, transaction: Transaction, metadata: Metadata, ids: Ids, rows: RowWriter) -> None:
        self._tx = transaction
        self._metadata = metadata
        self._ids = ids
        self._rows = rows

    def write(self, table: Table, staged: StagedData) -> None:
        removed: list[int] = []
        for local_id, compaction in staged.compactions.items():
            if compaction.kind == "merge_adjacent":
                self._remove_sources(table, compaction)
            else:
                self._end_sources(compaction)
                removed += [source.data_file_id for source in compaction.sources]
            self._insert(table, local_id, compaction)
        if removed:
            self._recompute_stats(table, staged, removed)

    def _insert(self, table: Table, local_id: int, compaction: Compaction) -> None:
        if compaction.file is not None:
            self._rows.insert_data_file(
                table.table_id,
                self._ids.file(local_id),
                spelled_for(table, compaction.file, self._tx.lake.location.backend),
                compaction.row_id_start,
                compaction.partition_id,
                begin_snapshot=compaction.begin_snapshot,
                partial_max=compaction.partial_max,
            )

    def _remove_sources(self, table: Table, compaction: Compaction) -> None:
        ids = [source.data_file_id for source in compaction.sources]
        for rows in _OF_FILE:
            self._metadata.write(rows.delete().where(one_of(self._metadata.connection, rows.c.data_file_id, ids)))
        folder = self._tx.lake.folder(self._tx.state, table)
        schedule_deletion(
            self._metadata,
            self._tx.lake.data_path,
            [(s.data_file_id, paths.resolve(folder, s.path, s.path_is_relative)) for s in compaction.sources],
        )

    def _end_sources(self, compaction: Compaction) -> None:
        ids = [source.data_file_id for source in compaction.sources]
        for rows in (t.data_file, t.delete_file):
            self._metadata.end(rows, one_of(self._metadata.connection, rows.c.data_file_id, ids))

    def _recompute_stats(self, table: Table, staged: StagedData, removed: list[int]) -> None:
        """Makes the table's statistics those of its rows again, where no deletion is left.

        They are upper bounds otherwise: deleted rows count as long as a file holds them.
        """
        connection, table_id = self._metadata.connection, table.table_id
        at = self._tx.base.snapshot.snapshot_id
        stats = read_table_stats(connection, [table_id]).get(table_id)
        if stats is None:
            return
        f, d = t.data_file, t.delete_file
        kept = read_data_files(
            connection,
            table_id,
            sa.and_(visible(f, at), sa.not_(one_of(connection, f.c.data_file_id, removed)), f.c.begin_snapshot <= at),
        )
        ids = [file.data_file_id for file in kept]
        deleted = sa.select(sa.func.count()).where(
            one_of(connection, d.c.data_file_id, ids), d.c.end_snapshot.is_(None)
        )
        inlined_deletes = inlined_deletions.read(connection, self._tx.lake.database, table_id, at)
        if connection.scalar(deleted) or any(file_id in inlined_deletes for file_id in ids):
            return
        backend = self._tx.lake.location.backend
        written = [spelled_for(table, c.file, backend) for c in staged.compactions.values() if c.file is not None]
        by_column: dict[int, list[ColumnStats]] = {}
        for of_file in read_column_stats(connection, table_id, None, at, ids).values():
            for column_id, column in of_file.items():
                by_column.setdefault(column_id, []).append(column)
        for file in written:
            for column in file.column_stats:
                by_column.setdefault(column.column_id, []).append(column)
        rows = inlined.read_rows(
            connection, self._tx.lake.database, table_id, table.columns, inlined.live_at(connection, at)
        )
        if rows is not None:
            if any(column.data_type.is_nested for column in table.columns):
                return
            for column_id, column in inlined_stats(table.columns, rows).items():
                by_column.setdefault(column_id, []).append(without_nul(column, backend))
        counts = [file.record_count for file in kept] + [file.record_count for file in written]
        sizes = [file.file_size_bytes for file in kept] + [file.file_size_bytes for file in written]
        c = t.table_stats
        records = sum(counts) + (rows.num_rows if rows is not None else 0)
        changed = c.update().where(c.c.table_id == table_id)
        self._metadata.write(changed.values(record_count=records, file_size_bytes=sum(sizes)))
        self._update_columns(table, by_column)

    def _update_columns(self, table: Table, by_column: dict[int, list[ColumnStats]]) -> None:
        c = t.table_column_stats
        for column in leaves(table.columns):
            of_files = by_column.get(column.column_id, [])
            merged = merge(None, of_files, column.data_type, unbounded=False)
            is_known = bool(of_files)
            row = {
                "contains_null": merged.contains_null if is_known else None,
                "contains_nan": merged.contains_nan if is_known else None,
                "min_value": merged.min_value,
                "max_value": merged.max_value,
                "min_is_exact": merged.min_is_exact,
                "max_is_exact": merged.max_is_exact,
            }
            self._metadata.write(
                c.update()
                .where(c.c.table_id == table.table_id, c.c.column_id == column.column_id)
                .values(self._metadata.known(c, row))
            )
