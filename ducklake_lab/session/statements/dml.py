"""Statements that change rows: INSERT, UPDATE, DELETE, TRUNCATE, CREATE TABLE AS.

The rows to change are found where `engine` places them, and written by the same place. Few rows, and few deletions, are
inlined: they go into the catalog instead of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.engine.staging import few_rows, stage_deleted, stage_written, target_of
from ducklake_lab.engine.target import Target
from ducklake_lab.files.reader import RowQuery
from ducklake_lab.files.sorting import sort_sql
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.visible_counts import live_rows
from ducklake_lab.session.names.attached_lakes import Lakes, NamedEntry
from ducklake_lab.session.names.stored_definitions import with_plain_sort_keys
from ducklake_lab.session.rows.result import RunInfo
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows that an UPDATE, DELETE or MERGE changes; they begin with the virtual columns.

    Attributes:
        target: the changed table.
        scan: the read that found them.
        few: most rows that are fetched from Spark.
    """

    target: Target
    scan: ScanPlan
    rows: Rows
    count: int
    few: int


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

    def append(self, table: Table, rows: Rows, *, inline: bool = True) -> int:
        """Appends rows with the table's columns in order; returns their number.

        Args:
            inline: few rows go into the catalog instead of files.
        """
        return stage_written(self._transaction, table, rows.write(self.target(table, inline=inline)))

    def target(self, table: Table, *, inline: bool = True) -> Target:
        """Returns a table as one whose rows are written; few rows are inlined unless `inline` is false."""
        transaction = self._transaction
        options = transaction.options
        sorts = options.get("sort_on_insert", schema_id=table.schema_id, table_id=table.table_id) != "false"
        ordered = with_plain_sort_keys(transaction.state, table) if sorts and sort_sql(table.sort) else None
        return target_of(transaction, table, inline=inline, sorted_table=ordered)

    # DELETE and UPDATE

    def delete(self, table: Table, plan: QueryPlan) -> int:
        """Deletes the rows of a plan that returns the table's virtual columns; returns their number."""
        with self.matching(table, plan) as matched:
            self.delete_matched(table, matched)
            return matched.count

    def update(self, table: Table, plan: QueryPlan) -> int:
        """Updates the rows of a plan that returns the virtual columns, then the new values; returns their number."""
        with self.matching(table, plan) as matched:
            self.delete_matched(table, matched)
            self.append_new_versions(table, matched)
            return matched.count

    def append_new_versions(self, table: Table, matched: Matched) -> None:
        """Appends new versions of rows under their row ids; the new values follow the virtual columns.

        Those of rows that the transaction itself inserted are new rows: the commit gives them their row ids.
        """
        transaction, rows, count = self._transaction, matched.rows, matched.count
        first_own = transaction.first_own_row_id(table)
        if first_own is not None:
            rows, own = rows.split(ROW_ID, first_own)
            count = rows.count()
            if count < matched.count:
                new = own.rest(len(VIRTUAL_COLUMNS)).write(matched.target, count=matched.count - count)
                stage_written(transaction, table, new)
        stage_written(transaction, table, rows.write(matched.target, keeps_ids=True, count=count))

    @contextmanager
    def matching(self, table: Table, plan: QueryPlan) -> Iterator[Matched]:
        """Finds the rows of a plan that begins with the virtual columns of the changed table.

        It runs in process if that reads little, else on Spark, which caches the rows.
        """
        info = RunInfo()
        limits = self._engine.placing.limits
        loaded = self._sources.load_all(plan, info, purpose="change", fetches=limits.source_rows)
        scan = next(rows.plan for rows in loaded.values() if isinstance(rows, Scan) and rows.virtual)
        target, few = self.target(table), self.few(table)
        if self._sources.placed(plan, loaded, info, "change").is_here:
            matched_rows = self._sources.run_in_process(plan, loaded).table
            yield Matched(target, scan, InMemory(matched_rows), matched_rows.num_rows, few)
            return
        with self._matched_on_spark(plan, scan, loaded) as rows:
            count = rows.count()
            yield Matched(target, scan, rows.here() if count <= few else rows, count, few)

    @contextmanager
    def _matched_on_spark(self, plan: QueryPlan, scan: ScanPlan, loaded: Mapping[str, Rows]) -> Iterator[Rows]:
        self._engine()  # a running engine knows the abilities of its workers
        by_row, by_key = self._sources.row_query(plan, loaded), self._sources.key_query(plan, loaded)
        if by_row is not None:
            run = partial(self._run_here, plan, by_row.view)
            with self._found_by_workers(scan, by_row, run) as matched:
                yield matched
        elif by_key is not None:
            with self._found_by_workers(scan, by_key, Scan.arrow) as target:
                sources = {**loaded, by_key.view: target}
                if target.is_on_spark:
                    with self._on_spark(plan, sources) as rows:
                        yield rows
                else:
                    yield InMemory(self._sources.run_in_process(plan, sources).table)
        else:
            with self._on_spark(plan, loaded) as rows:
                yield rows

    def _run_here(self, plan: QueryPlan, view: str, rows: Rows) -> pa.Table:
        return self._sources.run_in_process(plan, {view: rows}).table

    @contextmanager
    def _on_spark(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> Iterator[OnSpark]:
        self._sources.check_for_spark(plan)
        frame = self._sources.spark_frame(plan, loaded).persist()
        try:
            yield OnSpark(frame, engines=self._engine)
        finally:
            frame.unpersist()

    @contextmanager
    def _found_by_workers(
        self, scan: ScanPlan, query: RowQuery, here: Callable[[Scan], pa.Table]
    ) -> Iterator[InMemory | OnSpark]:
        """Finds rows of a table with a query that workers run over its files; fetches them if they are few.

        Args:
            here: runs the query over the inlined rows.
        """
        from ducklake_lab.spark.found_rows import find
        from ducklake_lab.spark.frames import from_arrow_table

        inlined = here(Scan(replace(scan, files=()), virtual=True)) if scan.inlined is not None else None
        with self._engine.running() as spark:
            found_rows = find(spark, scan, query, self._engine.placing.limits.found)
        try:
            with self._engine.running() as spark:
                rows = found_rows.fetched()
                if rows is None:
                    frame = found_rows.frame()
                    frame = frame if inlined is None else frame.union(from_arrow_table(spark, inlined))
            if rows is None:
                yield OnSpark(frame, query.columns, self._engine)
            else:
                parts = (
                    [rows] if inlined is None else [rows, inlined.rename_columns(rows.column_names).cast(rows.schema)]
                )
                yield InMemory(pa.concat_tables(parts))
        finally:
            found_rows.forget()

    def delete_matched(self, table: Table, matched: Matched) -> None:
        """Deletes the rows that were found."""
        stage_deleted(self._transaction, matched.target, matched.scan, matched.rows, matched.count)

    def truncate(self, entry: NamedEntry, table: Table) -> int:
        """Deletes all rows without reading any; returns their number."""
        self._lakes.reads.note(entry.lake, table, None, is_target=True)
        plan = self._sources.scans.plan(entry.lake, entry.state, table)
        row_ids = plan.inlined.rows.column(ROW_ID).to_pylist() if plan.inlined is not None else []
        count = len(row_ids) + live_rows(plan.files)
        self._transaction.truncate(table, [file.data_file.data_file_id for file in plan.files], row_ids)
        return count

    def few(self, table: Table) -> int:
        """Returns the largest number of rows, or deletions from a file, that are inlined."""
        return few_rows(self._transaction, table)
