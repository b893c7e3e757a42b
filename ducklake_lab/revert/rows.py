"""Finds what becomes of the rows that a snapshot changed in one table, and stages it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.diff.compute import rows_to_read
from ducklake_lab.duckdb.casting import has_part
from ducklake_lab.engine import changes
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.staging import few_rows, stage_deleted, stage_written, target_of
from ducklake_lab.errors import ConstraintError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.staged import SNAPSHOT_ID, StagedData
from ducklake_lab.model.state import CatalogState
from ducklake_lab.revert import versions
from ducklake_lab.revert.conflicts import Found, TableRules
from ducklake_lab.revert.definitions import Definition
from ducklake_lab.revert.versions import Places, Versions
from ducklake_lab.scan.changes import compare
from ducklake_lab.scan.plan import ChangePlan, ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.transaction.transaction import Transaction

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

#: Types of which Spark's queries keep less than the value.
_NOT_ON_SPARK = ("timestamp_ns", "variant")


@dataclass(frozen=True, slots=True)
class Version:
    """A table in one state of the lake.

    Attributes:
        staged: the transaction's changes of its rows, on top of the state.
    """

    state: CatalogState
    table: Table
    staged: StagedData | None = None


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations on the rows of one table.

    Attributes:
        rows: see `versions.operations`.
        counts: of the rows by operation.
        scan: reads the table as it is today.
    """

    rows: Rows
    counts: Mapping[str, int]
    scan: ScanPlan
    places: Places

    def count(self, *kinds: str) -> int:
        return sum(self.counts.get(kind, 0) for kind in kinds)


class RowChanges:
    """Rows of one table at three states.

    Args:
        transaction: in which the changes are staged.
        engines: where the rows are worked.
        stack: frees what Spark keeps.
    """

    def __init__(
        self, transaction: Transaction, engines: Engines, stack: ExitStack, title: str, rules: TableRules, found: Found
    ) -> None:
        self._transaction = transaction
        self._lake = transaction.lake
        self._engines = engines
        self._stack = stack
        self._title = title
        self._rules = rules
        self._found = found
        self._time_zone = self._lake.session.time_zone()

    def find(
        self, before: Version, then: Version, now: Version, definition: Definition, row_ids: Collection[int] | None
    ) -> Operations | None:
        """Return what becomes of the rows, or None where the snapshot changed none; notes conflicts.

        Args:
            row_ids: only these; None for all.
        """
        places = _places(before.table, then.table, now.table, definition)
        old, made = (self._plan(version, places.columns) for version in (before, then))
        is_newest = now.state.snapshot == then.state.snapshot and now.staged is None
        today = made if is_newest else self._plan(now, places.columns)
        change = compare(old, made)
        count = rows_to_read(change)
        if not count:
            return None
        since = _of_files(compare(made, today), {file.data_file.data_file_id for file in change.inserted.files})
        wanted = InMemory(pa.table({"rid": pa.array(sorted(row_ids), pa.int64())})) if row_ids is not None else None
        if self._is_here(change.files, count):
            removed, added = self._sides(change, places, None, wanted)
            if not since.files and since.inserted.inlined is None and since.removed.inlined is None:
                # one query reads both sides
                return self._operations(Versions(removed, added), places, today)
            removed, added = _in_memory(removed, added)
            ids = versions.row_ids(removed, added)
            since = self._only_with(since, ids)
            if self._is_here((*change.files, *since.files), count + rows_to_read(since)):
                gone, moved = self._since(since, places, None, ids)
                return self._operations(Versions(removed, added, gone, moved), places, today)
        with self._on_spark(places.columns) as spark:
            removed, added = self._sides(change, places, spark, wanted)
            gone, moved = self._since(since, places, spark, versions.row_ids(removed, added))
            return self._operations(Versions(removed, added, gone, moved), places, today)

    def filled(self, then: Version, now: Version, added: Sequence[Column]) -> dict[int, int]:
        """Count the values that were written since into columns which the snapshot added, by column id.

        A value that a later row has by the column's first default is none of them.
        """
        made, today = (self._plan(version, now.table.columns) for version in (then, now))
        since = compare(made, today)
        if not since.inserted.files and since.inserted.inlined is None:
            return {}
        spots = {column.column_id: i for i, column in enumerate(now.table.columns)}
        query = versions.filled_sql([(spots[column.column_id], column) for column in added])
        count = len(now.table.columns)
        spark: SparkSession | None = None
        with ExitStack() as stack:
            if not self._is_here(since.files, rows_to_read(since)):
                spark = stack.enter_context(self._on_spark(added))
            removed, new = changes.removed(since, spark), changes.added(since, spark)
            found = versions.side(removed, count).query(query, moved=versions.side(new, count)).arrow()
        counts = zip(added, found.columns, strict=True)
        return {column.column_id: number for column, values in counts if (number := values[0].as_py())}

    def carry(self, before: Version, now: Version, definition: Definition) -> Operations | None:
        """Return operations that give rows their values in columns that come back; None where no row was written since.

        Args:
            now: the table with the columns.
        """
        places = _places(before.table, before.table, now.table, definition)
        old, today = (self._plan(version, places.columns) for version in (before, now))
        change = compare(old, today)
        if not change.inserted.files and change.inserted.inlined is None:
            return None
        with ExitStack() as stack:
            spark: SparkSession | None = None
            if not self._is_here(change.files, rows_to_read(change)):
                spark = stack.enter_context(self._on_spark(places.columns))
            removed, moved = self._sides(change, places, spark, None)
            made = self._kept(versions.carried(removed, moved, places))
            return Operations(made, made.counts(versions.OPERATION), today, places)

    def check_not_null(self, now: Version, columns: Sequence[Column]) -> None:
        """Raises ConstraintError where a column that is NOT NULL again has NULL in some row."""
        for column in columns:
            plan = self._plan(now, [column])
            rows: Rows = Scan(plan)
            with ExitStack() as stack:
                if not self._engines.placing.place(facts_of(plan.files)).is_here:
                    spark = stack.enter_context(self._engines.running())
                    rows = OnSpark(rows.frame(spark), engines=self._engines)
                found = rows.first(1, ["c0"]).query("SELECT count(*) AS n FROM rows WHERE c0 IS NULL").arrow()
            if found.column("n")[0].as_py():
                raise ConstraintError(
                    f"Column {column.name} of {self._title} cannot be NOT NULL again: it has NULL values that are younger."
                )

    def check_unwritten(self, before: Version, now: Version, columns: Sequence[str]) -> None:
        """Raises UnsupportedFeatureError where rows were written since into columns that get their former types."""
        plan = self._plan(now, now.table.columns)
        first = before.state.snapshot.next_file_id
        ids = plan.inlined.rows.column(SNAPSHOT_ID) if plan.inlined is not None else pa.chunked_array([], pa.int64())
        young = pc.any(pc.fill_null(pc.greater(ids, before.state.snapshot.snapshot_id), True)).as_py()
        if young or any(file.data_file.data_file_id >= first for file in plan.files):
            raise UnsupportedFeatureError(
                f"The type of column {columns[0]} of {self._title} is not changed back: files were written since, whose "
                "values may not fit; revert with rows=…, which leaves columns alone, or restore the table."
            )

    def stage(self, table: Table, made: Operations) -> None:
        """Stages what becomes of the rows."""
        target, few = target_of(self._transaction, table), few_rows(self._transaction, table)

        def chosen(*kinds: str) -> tuple[Rows, int]:
            count = made.count(*kinds)
            rows = versions.chosen(made.rows, kinds, [column.name for column in table.columns]).run_by(self._engines)
            return (rows.here() if count <= few else rows), count

        rows, count = chosen("delete", "update")
        stage_deleted(self._transaction, target, made.scan, rows, count)
        rows, count = chosen("insert", "update")
        if count:
            stage_written(self._transaction, table, rows.write(target, keeps_ids=True, count=count))

    # Parts

    def _operations(self, found: Versions, places: Places, today: ScanPlan) -> Operations:
        compared = found.compared(places)
        # Spark would compare values anew for each operation
        compared = self._kept(compared) if isinstance(compared, OnSpark) else compared
        rows = found.decided(compared, places, self._rules)
        made = self._kept(versions.operations(rows, places))
        counts = made.counts(versions.OPERATION)
        if counts.get("conflict"):
            listed, total = versions.conflicts(
                rows, places, self._rules, self._title, self._found.room, self._time_zone
            )
            self._found.add_all(listed, total)
        return Operations(made, counts, today, places)

    def _kept(self, rows: Rows) -> Rows:
        """The rows, computed once: here in memory, or cached by Spark."""
        if not isinstance(rows, OnSpark):
            return InMemory(rows.arrow())
        frame = rows.data.persist()
        self._stack.callback(frame.unpersist)
        return replace(rows, data=frame).run_by(self._engines)

    def _plan(self, version: Version, columns: Sequence[Column]) -> ScanPlan:
        with self._lake.connect() as connection:
            return plan_scan(
                self._lake,
                connection,
                version.state,
                replace(version.table, columns=tuple(columns)),
                staged=version.staged,
            )

    def _is_here(self, files: Sequence[ScanFile], count: int) -> bool:
        return self._engines.placing.place(replace(facts_of(files, purpose="change"), rows=count)).is_here

    @contextmanager
    def _on_spark(self, columns: Sequence[Column]) -> Iterator[SparkSession]:
        """Runs Spark jobs in the block.

        Raises:
            UnsupportedFeatureError: Spark's queries do not keep the values of a column.
        """
        for column in columns:
            if has_part(column.data_type, _NOT_ON_SPARK):
                raise UnsupportedFeatureError(
                    f"Spark cuts values of {column.name}, which is {column.data_type.sql()}; revert in a session with "
                    "engine='duckdb'."
                )
        with self._engines.running() as spark:
            yield spark

    def _sides(
        self, change: ChangePlan, places: Places, spark: SparkSession | None, wanted: Rows | None
    ) -> tuple[Rows, Rows]:
        """The rows before and after a change."""

        def found(rows: Rows) -> Rows:
            one = versions.side(rows, len(places.columns))
            return versions.only(one, wanted) if wanted is not None else one

        return found(changes.removed(change, spark)), found(changes.added(change, spark))

    def _since(
        self, since: ChangePlan, places: Places, spark: SparkSession | None, ids: Rows
    ) -> tuple[Rows | None, Rows | None]:
        """The row ids that left their places since, and the rows in other places today, among some row ids."""
        gone: Rows | None = None
        moved: Rows | None = None
        count = len(places.columns)
        if since.removed.files or since.removed.inlined is not None or since.deleted:
            gone = versions.side(changes.removed(since, spark), count).query("SELECT DISTINCT rid FROM rows")
        if since.inserted.files or since.inserted.inlined is not None:
            moved = versions.only(versions.side(changes.added(since, spark), count), ids)
        if spark is not None:
            return gone, moved
        return gone and InMemory(gone.arrow()), moved and InMemory(moved.arrow())

    def _only_with(self, since: ChangePlan, ids: Rows) -> ChangePlan:
        """The change without new files that hold none of some row ids; only the ids in them are read."""
        inserted = since.inserted
        rows = sum(file.data_file.record_count for file in inserted.files)
        facts = replace(facts_of(inserted.files), rows=rows)
        if not inserted.files or not self._engines.placing.compares_row_ids_here(facts, rows):
            return since
        narrow = replace(inserted, table=replace(inserted.table, columns=inserted.columns[:1]), inlined=None)
        found = versions.side(Scan(narrow, virtual=True), 1).query(
            "SELECT DISTINCT file_id FROM rows WHERE rid IN (SELECT rid FROM ids)", ids=ids
        )
        holding = set(found.arrow().column("file_id").to_pylist())
        kept = tuple(file for file in inserted.files if file.data_file.data_file_id in holding)
        return replace(since, inserted=replace(inserted, files=kept))


def _in_memory(removed: Rows, added: Rows) -> tuple[Rows, Rows]:
    """Both sides, read at once."""
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(added.arrow)
        return InMemory(removed.arrow()), InMemory(later.result())


def _of_files(since: ChangePlan, file_ids: Collection[int]) -> ChangePlan:
    """The change without rows that left other files."""
    return replace(
        since,
        removed=replace(
            since.removed, files=tuple(file for file in since.removed.files if file.data_file.data_file_id in file_ids)
        ),
        deleted=tuple(rows for rows in since.deleted if rows.after.data_file.data_file_id in file_ids),
    )


def _places(before: Table, then: Table, now: Table, definition: Definition) -> Places:
    had, set_by = ({column.column_id for column in table.columns} for table in (before, then))
    known = {column.column_id for column in now.columns}
    coming = [column for column in definition.returned if column.column_id not in known]
    columns = _with_unique_names([*now.columns, *coming])
    spots = {column.column_id: i for i, column in enumerate(columns)}
    return Places(
        columns=columns,
        cells=[i for i, c in enumerate(now.columns) if c.column_id in had and c.column_id in set_by],
        kept=[i for i, c in enumerate(now.columns) if c.column_id in had or c.column_id not in set_by],
        returned=[spots[column.column_id] for column in definition.returned],
        target=[spots[column.column_id] for column in definition.table.columns],
    )


def _with_unique_names(columns: Sequence[Column]) -> tuple[Column, ...]:
    taken = set[str]()
    found = []
    for column in columns:
        name = column.name
        while name.casefold() in taken:
            name += " (dropped)"
        taken.add(name.casefold())
        found.append(replace(column, name=name))
    return tuple(found)
