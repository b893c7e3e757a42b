"""Statements that change rows: INSERT, UPDATE, DELETE, TRUNCATE, CREATE TABLE AS.

Spark reads the rows to change and writes the new files; small changes go into the catalog instead.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.casting import cast_columns
from ducklake_lab.errors import ConstraintError
from ducklake_lab.local import engine as local_engine
from ducklake_lab.local import reader as local_reader
from ducklake_lab.model.entries import LOCAL_ID_START, ROW_ID_COLUMN, Table
from ducklake_lab.model.files import WrittenDeletes
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_written
from ducklake_lab.session.engine import SparkEngine
from ducklake_lab.session.lakes import Lakes, Place
from ducklake_lab.session.result import RunInfo
from ducklake_lab.session.sources import Scan, Sources, in_memory
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.storage import Storage, is_local
from ducklake_lab.transaction.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class _Matched:
    """The rows an UPDATE or DELETE touches, and the plan that found them; `frame` where Spark holds them."""

    target: ScanPlan
    count: int
    rows: pa.Table | None
    frame: DataFrame | None


class Dml:
    """Runs the statements in the transaction that is open for writing."""

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
        """Adds the rows of a plan whose output is the table's columns, in order; how many."""
        result = self._sources.run(plan)
        if result.in_process:
            return self.append_arrow(table, result.arrow())
        return self.append_frame(table, result.spark())

    def append_arrow(self, table: Table, rows: pa.Table) -> int:
        """Adds rows that are in memory: a few are inlined, many are written by Spark."""
        types = {column.name: column.data_type for column in table.columns}
        rows = cast_columns(rows.rename_columns(list(types)), types)
        _check_not_null(table, rows)
        count: int = rows.num_rows
        if count <= self._inline_limit(table):
            self._transaction.append_rows(table, rows)
            return count
        from ducklake_lab.spark.frames import from_arrow_table

        return self.append_frame(table, from_arrow_table(self._engine(), rows))

    def append_frame(self, table: Table, frame: DataFrame) -> int:
        """Adds the rows of a DataFrame with the table's columns, in order."""
        from ducklake_lab.spark import writer

        transaction = self._transaction
        folder = transaction.lake.folder(transaction.state, table)
        with self._engine.running() as spark:
            files = writer.write(spark, frame, table, folder)
        count = sum(file.record_count for file in files)
        if 0 < count <= self._inline_limit(table) and is_local(folder):
            # how few rows there were is only known now; the files go, the rows stay
            rows = local_reader.read(plan_written(table, files, folder))
            Storage().delete([folder + file.path for file in files])
            transaction.append_rows(table, rows)
        else:
            transaction.append_files(table, files)
        return count

    # DELETE and UPDATE

    def delete(self, table: Table, plan: QueryPlan) -> int:
        """Deletes the rows of a plan whose output is the virtual columns of the table; how many."""
        matched = self._match(plan)
        try:
            self._delete_matched(table, matched)
        finally:
            _release(matched)
        return matched.count

    def update(self, table: Table, plan: QueryPlan) -> int:
        """Replaces the rows of a plan whose output is the virtual columns, then the table's columns anew; how many."""
        matched = self._match(plan)
        try:
            self._delete_matched(table, matched)
            self._append_new_versions(table, matched)
        finally:
            _release(matched)
        return matched.count

    def _append_new_versions(self, table: Table, matched: _Matched) -> None:
        names = [column.name for column in table.columns]
        transaction = self._transaction
        if matched.rows is not None:
            types = {column.name: column.data_type for column in table.columns}
            # by position: the new values follow the virtual columns
            columns = matched.rows.columns[len(VIRTUAL_COLUMNS) :]
            rows = cast_columns(pa.table(columns, names=names), types)
            _check_not_null(table, rows)
            row_ids = matched.rows.column(ROW_ID).combine_chunks()
            if rows.num_rows <= self._inline_limit(table):
                transaction.append_rows(table, rows, row_ids)
                return
            from ducklake_lab.spark.frames import from_arrow_table

            frame = from_arrow_table(self._engine(), rows.append_column(ROW_ID_COLUMN, row_ids))
        elif matched.frame is not None:
            quoted = [f"`{name.replace('`', '``')}`" for name in names]
            frame = matched.frame.select(*quoted, matched.frame[ROW_ID].alias(ROW_ID_COLUMN))
        else:
            return
        from ducklake_lab.spark import writer

        folder = transaction.lake.folder(transaction.state, table)
        with self._engine.running() as spark:
            files = writer.write(spark, frame, table, folder, compact=True)
        transaction.append_files(table, files)

    def _match(self, plan: QueryPlan) -> _Matched:
        """Finds the rows, in process if the table's rows are all inlined, else with Spark, which keeps them."""
        info = RunInfo()
        loaded = {source.view: self._sources.load(source, info) for source in plan.sources}
        target = next(rows.plan for rows in loaded.values() if isinstance(rows, Scan) and rows.virtual)
        if all(map(in_memory, loaded.values())):
            tables = {view: self._sources.to_arrow(rows) for view, rows in loaded.items()}
            found = local_engine.evaluate(plan.duckdb_sql, tables)
            return _Matched(target, found.num_rows, found, None)
        self._sources.create_views(loaded)
        frame = self._sources.spark_sql(plan.spark_sql).persist()
        try:
            with self._engine.running():
                count = frame.count()
                rows = frame.toArrow() if count <= self._inline_limit(target.table) else None
        except BaseException:
            frame.unpersist()
            raise
        return _Matched(target, count, rows, frame)

    def _delete_matched(self, table: Table, matched: _Matched) -> None:
        if matched.count == 0:
            return
        transaction = self._transaction
        files = {file.data_file.data_file_id: file for file in matched.target.files}
        if matched.rows is not None and not self._touches_uncommitted(matched.rows):
            inlined_ids, deletes = _small_deletes(matched.rows)
        else:
            inlined_ids, deletes = self._large_deletes(table, matched, files)
        transaction.delete_inlined(table, inlined_ids)
        records = {file_id: file.data_file.record_count for file_id, file in files.items()}
        transaction.delete_from_files(table, deletes, records)

    def _touches_uncommitted(self, rows: pa.Table) -> bool:
        highest = pc.max(rows.column(FILE_ID)).as_py()
        return highest is not None and highest >= LOCAL_ID_START

    def _large_deletes(
        self, table: Table, matched: _Matched, files: dict[int, ScanFile]
    ) -> tuple[list[int], list[WrittenDeletes]]:
        from ducklake_lab.spark.deletes import write_deletes

        frame = matched.frame
        assert frame is not None  # rows of files were found by Spark
        inlined_ids: list[int] = []
        if matched.target.inlined is not None:
            with self._engine.running():
                ids = frame.where(frame[FILE_ID].isNull()).select(ROW_ID).toArrow()
            inlined_ids = ids.column(ROW_ID).to_pylist()
        in_files = frame.where(frame[FILE_ID].isNotNull()).select(FILE_ID, POSITION)
        transaction = self._transaction
        folder = transaction.lake.folder(transaction.state, table)
        with self._engine.running() as spark:
            return inlined_ids, write_deletes(spark, in_files, files, folder, self._inline_limit(table))

    def truncate(self, place: Place, table: Table) -> int:
        """Deletes all rows without reading any; how many there were."""
        plan = self._sources.scan(place, table)
        row_ids = plan.inlined.rows.column(ROW_ID).to_pylist() if plan.inlined is not None else []
        count = len(row_ids) + sum(live_rows(file) for file in plan.files)
        self._transaction.truncate(table, [file.data_file.data_file_id for file in plan.files], row_ids)
        return count

    def _inline_limit(self, table: Table) -> int:
        options = self._transaction.options
        return options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id)


def live_rows(file: ScanFile) -> int:
    """Rows of a file that are not deleted; exact while no position is deleted twice."""
    deleted = len(file.inlined_deletes) + (file.delete_file.delete_count if file.delete_file is not None else 0)
    return max(file.data_file.record_count - deleted, 0)


def _small_deletes(rows: pa.Table) -> tuple[list[int], list[WrittenDeletes]]:
    """(row ids of inlined rows, positions by file) of a few rows."""
    inlined_ids: list[int] = []
    positions: dict[int, list[int]] = defaultdict(list)
    columns: list[list[Any]] = [rows.column(name).to_pylist() for name in (FILE_ID, POSITION, ROW_ID)]
    for file_id, position, row_id in zip(*columns, strict=True):
        if file_id is None:
            inlined_ids.append(row_id)
        else:
            positions[file_id].append(position)
    return inlined_ids, [WrittenDeletes(file_id, positions=tuple(sorted(p))) for file_id, p in positions.items()]


def _release(matched: _Matched) -> None:
    if matched.frame is not None:
        matched.frame.unpersist()


def _check_not_null(table: Table, rows: pa.Table) -> None:
    for column in table.columns:
        if not column.nulls_allowed and rows.column(column.name).null_count:
            raise ConstraintError(f"{table.name}.{column.name} is NOT NULL; a row has no value for it.")
