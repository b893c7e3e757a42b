"""Statements that change rows: INSERT, UPDATE, DELETE, TRUNCATE, CREATE TABLE AS.

DuckDB finds the rows to change and writes the new files in process; Spark does so above the limits of `engine`.
Few rows, and few deletions, are inlined: they go into the catalog instead of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.inlined import can_inline
from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.rows import Here, InMemory, OnSpark, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.files.constraints import check_rows
from ducklake_lab.files.deletes import write_matched
from ducklake_lab.files.options import delete_options, write_options
from ducklake_lab.files.sorting import sort_rows, sort_sql
from ducklake_lab.files.writer import write_rows
from ducklake_lab.model.entries import ROW_ID_COLUMN, Table
from ducklake_lab.model.files import WrittenDeletes, WrittenFile
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_written
from ducklake_lab.scan.visible_counts import live_rows
from ducklake_lab.session.names.attached_lakes import Lakes, Place
from ducklake_lab.session.names.stored_definitions import with_plain_sort_keys
from ducklake_lab.session.rows.result import RunInfo
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.storage import Storage, is_local
from ducklake_lab.transaction.nul_bytes import can_inline_rows
from ducklake_lab.transaction.transaction import Transaction

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows that an UPDATE, DELETE or MERGE changes, and the plan that found them.

    Attributes:
        few: most rows that are fetched from Spark.
    """

    target: ScanPlan
    count: int
    rows: Rows
    few: int

    @property
    def held(self) -> pa.Table | None:
        """The rows, if they are in memory."""
        return self.rows.arrow() if isinstance(self.rows, Here) else None

    @property
    def frame(self) -> DataFrame:
        """The rows, if Spark holds them."""
        assert isinstance(self.rows, OnSpark)  # no caller asks for rows in memory
        return self.rows.data


class Dml:
    """Runs statements in the transaction that is open for writing."""

    def __init__(self, lakes: Lakes, sources: Sources, engine: SparkEngine) -> None:
        self._lakes = lakes
        self._sources = sources
        self._engine = engine

    @property
    def _transaction(self) -> Transaction:
        transaction = self._lakes.transaction
        assert transaction is not None  # every caller is inside writing()
        return transaction

    # INSERT

    def insert(self, table: Table, plan: QueryPlan) -> int:
        """Inserts the rows of a plan with the table's columns in order; returns their number."""
        result = self._sources.run(plan, purpose="change")
        if result.in_process:
            return self.append_arrow(table, result.carried())
        return self.append_frame(table, result.spark())

    def append_arrow(self, table: Table, rows: pa.Table, *, inline: bool = True) -> int:
        """Appends rows in memory: inlines a few, unless `inline` is false, and writes many to files."""
        types = {column.name: column.data_type for column in table.columns}
        rows = cast_columns(rows.rename_columns(list(types)), types)
        check_rows(table, rows)
        count: int = rows.num_rows
        transaction = self._transaction
        if self._sorts(table):
            rows = sort_rows(rows, with_plain_sort_keys(transaction.state, table), table.columns, [])
        if inline and count <= self._row_limit(table) and self._fit(table, rows):
            transaction.append_rows(table, rows)
        else:
            transaction.append_files(table, self._write_rows(table, rows))
        return count

    def _sorts(self, table: Table) -> bool:
        """Whether inserted rows are sorted."""
        options = self._transaction.options
        enabled = options.get("sort_on_insert", schema_id=table.schema_id, table_id=table.table_id) != "false"
        return enabled and bool(sort_sql(table.sort))

    def _sorted_frame(self, table: Table, frame: DataFrame) -> DataFrame:
        """Returns the rows in the order of the table's sort keys."""
        name = self._sources.names.register(OnSpark(frame.toDF(*[column.name for column in table.columns])))
        try:
            query = parse(f"FROM {quote_identifier(name)} ORDER BY {', '.join(sort_sql(table.sort))}")[0].operation
            assert isinstance(query, op.Query)
            return self._sources.query(query).spark()
        except UnsupportedFeatureError:
            # row order in a file only affects speed; compaction, in process, sorts the rows
            return frame
        finally:
            del self._sources.names.registered[name]

    def _write_rows(self, table: Table, rows: pa.Table, row_ids: pa.Array | None = None) -> list[WrittenFile]:
        """Writes rows in memory to files in process; a transfer to Spark would cost more."""
        transaction = self._transaction
        folder = transaction.lake.folder(transaction.state, table)
        return write_rows(table, rows, folder, write_options(transaction.options, table), row_ids)

    def append_frame(self, table: Table, frame: DataFrame, *, inline: bool = True) -> int:
        """Appends a DataFrame with the table's columns in order; inlines few rows, unless `inline` is false."""
        from ducklake_lab.spark import writer

        ordered = self._sorts(table)
        if ordered:
            frame = self._sorted_frame(table, frame)
        transaction = self._transaction
        folder = transaction.lake.folder(transaction.state, table)
        with self._engine.running() as spark:
            options = write_options(transaction.options, table)
            files = writer.write(spark, frame, table, folder, options=options, ordered=ordered)
        count = sum(file.record_count for file in files)
        if inline and 0 < count <= self._row_limit(table) and is_local(folder):
            # the number of rows is known only now; the files go, the rows stay
            rows = local_reader.read(plan_written(table, files, folder))
            if self._fit(table, rows):
                Storage().discard(folder + file.path for file in files)
                transaction.append_rows(table, rows)
                return count
        transaction.append_files(table, files)
        return count

    # DELETE and UPDATE

    def delete(self, table: Table, plan: QueryPlan) -> int:
        """Deletes the rows of a plan that returns the table's virtual columns; returns their number."""
        with self.matching(plan) as matched:
            self.delete_matched(table, matched)
            return matched.count

    def update(self, table: Table, plan: QueryPlan) -> int:
        """Updates the rows of a plan that returns the virtual columns, then the new values; returns their number."""
        with self.matching(plan) as matched:
            self.delete_matched(table, matched)
            self.append_new_versions(table, matched)
            return matched.count

    def append_new_versions(self, table: Table, matched: Matched) -> None:
        """Appends new versions of rows under their row ids; the new values follow the virtual columns."""
        names = [column.name for column in table.columns]
        transaction = self._transaction
        found = matched.held
        if found is not None:
            types = {column.name: column.data_type for column in table.columns}
            rows = cast_columns(new_values(found, table), types)
            check_rows(table, rows)
            row_ids = found.column(ROW_ID).combine_chunks()
            if rows.num_rows <= self._row_limit(table) and self._fit(table, rows):
                transaction.append_rows(table, rows, row_ids)
                return
            transaction.append_files(table, self._write_rows(table, rows, row_ids))
            return
        quoted = [f"`{name.replace('`', '``')}`" for name in names]
        frame = matched.frame.select(*quoted, matched.frame[ROW_ID].alias(ROW_ID_COLUMN))
        from ducklake_lab.spark import writer

        folder = transaction.lake.folder(transaction.state, table)
        with self._engine.running() as spark:
            options = write_options(transaction.options, table)
            few = self._engine.placing.writes_in_one_task(matched.count)
            frame = frame.coalesce(1) if few else frame
            files = writer.write(spark, frame, table, folder, options=options, compact=not few)
        transaction.append_files(table, files)

    @contextmanager
    def matching(self, plan: QueryPlan) -> Iterator[Matched]:
        """Finds the rows of a plan that begins with the virtual columns of the changed table.

        It runs in process if that reads little, else on Spark, which caches the rows.
        """
        info = RunInfo()
        loaded = self._sources.load_all(plan, info, purpose="change")
        target = next(rows.plan for rows in loaded.values() if isinstance(rows, Scan) and rows.virtual)
        few = self._inline_limit(target.table)
        if self._sources.placed(plan, loaded, info, "change").is_here:
            found = self._sources.run_in_process(plan, loaded).table
            yield Matched(target, found.num_rows, InMemory(found), few)
            return
        frame = (self._in_workers(plan, target, loaded) or self._on_spark(plan, loaded)).persist()
        try:
            with self._engine.running():
                count = frame.count()
                rows: Rows = OnSpark(frame)
                rows = InMemory(rows.arrow()) if count <= few else rows
            yield Matched(target, count, rows, few)
        finally:
            frame.unpersist()

    def _on_spark(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> DataFrame:
        self._sources.check_for_spark(plan)
        return self._sources.spark_frame(plan, loaded)

    def _in_workers(self, plan: QueryPlan, target: ScanPlan, loaded: Mapping[str, Rows]) -> DataFrame | None:
        self._engine()  # a running engine knows the abilities of its workers
        query = self._sources.row_query(plan, loaded)
        if query is None:
            return None
        from ducklake_lab.spark import duckdb_reads
        from ducklake_lab.spark.frames import from_arrow_table

        here = None
        if target.inlined is not None:
            inlined = Scan(replace(target, files=()), virtual=True)
            here = self._sources.run_in_process(plan, {query.view: inlined}).table
        with self._engine.running() as spark:
            frame = duckdb_reads.select(spark, target, query)
            return frame if here is None else frame.union(from_arrow_table(spark, here))

    def delete_matched(self, table: Table, matched: Matched) -> None:
        """Deletes the rows that were found."""
        if matched.count == 0:
            return
        transaction = self._transaction
        files = {file.data_file.data_file_id: file for file in matched.target.files}
        found = matched.held
        if found is not None:
            in_file = pc.is_valid(found.column(FILE_ID))
            inlined_ids = found.filter(pc.invert(in_file)).column(ROW_ID).to_pylist()
            deletes = self._write_matched(table, found.filter(in_file), files)
        else:
            inlined_ids, deletes = self._large_deletes(table, matched, files)
        transaction.delete_inlined(table, inlined_ids)
        records = {file_id: file.data_file.record_count for file_id, file in files.items()}
        transaction.delete_from_files(table, deletes, records)

    def _write_matched(self, table: Table, positions: pa.Table, files: dict[int, ScanFile]) -> list[WrittenDeletes]:
        transaction = self._transaction
        touched = {file_id: files[file_id] for file_id in pc.unique(positions.column(FILE_ID)).to_pylist()}
        folder = transaction.lake.folder(transaction.state, table)
        options = delete_options(transaction.options, table, transaction.lake.version)
        return write_matched(positions, touched, folder, options, transaction.next_snapshot)

    def _large_deletes(
        self, table: Table, matched: Matched, files: dict[int, ScanFile]
    ) -> tuple[list[int], list[WrittenDeletes]]:
        from ducklake_lab.spark.deletes import write_deletes

        frame = matched.frame
        inlined_ids: list[int] = []
        if matched.target.inlined is not None:
            with self._engine.running():
                ids = frame.where(frame[FILE_ID].isNull()).select(ROW_ID).toArrow()
            inlined_ids = ids.column(ROW_ID).to_pylist()
        in_files = frame.where(frame[FILE_ID].isNotNull()).select(FILE_ID, POSITION)
        transaction = self._transaction
        folder = transaction.lake.folder(transaction.state, table)
        options = delete_options(transaction.options, table, transaction.lake.version)
        with self._engine.running() as spark:
            if not self._engine.placing.fetches_positions(matched.count):
                return inlined_ids, write_deletes(spark, in_files, files, folder, options, transaction.next_snapshot)
            positions = in_files.toArrow()
        return inlined_ids, self._write_matched(table, positions, files)

    def truncate(self, place: Place, table: Table) -> int:
        """Deletes all rows without reading any; returns their number."""
        plan = self._sources.scan(place.lake, place.state, table)
        row_ids = plan.inlined.rows.column(ROW_ID).to_pylist() if plan.inlined is not None else []
        count = len(row_ids) + live_rows(plan.files)
        self._transaction.truncate(table, [file.data_file.data_file_id for file in plan.files], row_ids)
        return count

    def _row_limit(self, table: Table) -> int:
        """Returns the largest number of rows that an insert inlines."""
        lake = self._transaction.lake
        inlines = can_inline(table.columns, lake.location.backend, lake.version)
        return self._inline_limit(table) if inlines else 0

    def _fit(self, table: Table, rows: pa.Table) -> bool:
        """Whether the values of rows can be inlined; the table's columns are known to allow it."""
        return can_inline_rows(table.columns, rows, self._transaction.lake.location.backend)

    def _inline_limit(self, table: Table) -> int:
        """Returns the largest number of deletions from a file that are inlined."""
        options = self._transaction.options
        return options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id)


def new_values(rows: pa.Table, table: Table) -> pa.Table:
    """Returns the values after the virtual columns, under the table's column names; their types are kept."""
    first = len(VIRTUAL_COLUMNS)
    values = rows.select(range(first, first + len(table.columns)))
    return values.rename_columns([column.name for column in table.columns])
