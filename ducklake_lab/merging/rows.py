"""Finds what becomes of the rows of one table that theirs changed, and stages it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.diff.compute import rows_to_read
from ducklake_lab.diff.diff_states import with_free_names
from ducklake_lab.engine import changes
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.staging import few_rows, stage_deleted, stage_written, target_of
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.merging import versions
from ducklake_lab.merging.conflicts import TableRules, Unsettled, Words
from ducklake_lab.merging.definitions import Definition
from ducklake_lab.merging.former import FormerValues
from ducklake_lab.merging.reading import Reading
from ducklake_lab.merging.row_checks import Operations, RowChecks
from ducklake_lab.merging.sides import Change, Pair, RowIds, Version
from ducklake_lab.merging.taking_over import Arrival, take_over, whole_files
from ducklake_lab.merging.versions import Places, Versions
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.changes import compare
from ducklake_lab.scan.plan import ChangePlan, ScanPlan
from ducklake_lab.transaction.transaction import Transaction

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

_NO_IDS = pa.chunked_array([], pa.int64())


class RowChanges:
    """Rows of one table in three versions.

    Args:
        transaction: in which the changes are staged.
        engines: where the rows are worked.
        stack: frees what Spark keeps.

    Attributes:
        checks: of the rows that come and stay.
    """

    def __init__(
        self,
        transaction: Transaction,
        engines: Engines,
        stack: ExitStack,
        title: str,
        words: Words,
        rules: TableRules,
        unsettled: Unsettled,
    ) -> None:
        self._transaction = transaction
        self._engines = engines
        self._title = title
        self._words = words
        self._rules = rules
        self._unsettled = unsettled
        self._reading = Reading(engines, stack)
        self.checks = RowChecks(self._reading, engines, title, words)
        self._time_zone = transaction.lake.session.time_zone()

    def find(
        self, theirs: Pair, ours: Pair, definition: Definition, ids: RowIds, row_ids: Collection[int] | None
    ) -> Operations | None:
        """Return what becomes of the rows, or None where theirs changed none; notes conflicts.

        Args:
            row_ids: only these; None for all.
        """
        places = _places(theirs.tip.table, ours.base.table, ours.tip.table, definition)
        columns = ids.columns.to_theirs(places.columns)
        change = self._change(theirs, columns)
        files: Sequence[Arrival] = ()
        if ids.first_new is not None and row_ids is None:
            change, files = self._without_whole_files(change, theirs.tip, definition.table, ids)
        count = rows_to_read(change.plan)
        today = self._reading.plan(ours.tip, places.columns)
        if not count:
            return Operations(None, {}, today, files) if files else None
        if ids.first_new is not None:
            ids = replace(ids, placed=ids.placed and self._is_placed(change, theirs, ours, places, ids))
        since = self._since_base(ours, places, ids, change, today)
        wanted = InMemory(pa.table({"rid": pa.array(sorted(row_ids), pa.int64())})) if row_ids is not None else None
        former = self._former(theirs.tip, columns, places)
        read, count = (*change.plan.files, *former.files), count + former.count
        if self._reading.is_here(read, count):
            changed, base = self._sides(change, places, None, wanted)
            changed, lost = former.filled(changed, None)
            if ids.placed and _is_empty(since):
                # one query reads both sides
                return self._operations(Versions(changed, base, ids.first_new), places, today, files, lost)
            changed, base = _in_memory(changed, base)
            shared = versions.row_ids(changed, base, ids.first_new)
            since = self._only_with(since, shared)
            if self._reading.is_here((*read, *since.files), count + rows_to_read(since)):
                made = self._with_ours(changed, base, since, places, None, ids)
                return self._operations(made, places, today, files, lost)
        with self._reading.on_spark(places.columns) as spark:
            changed, base = self._sides(change, places, spark, wanted)
            changed, lost = former.filled(changed, spark)
            made = self._with_ours(changed, base, since, places, spark, ids)
            return self._operations(made, places, today, files, lost)

    def filled(self, pair: Pair, columns: Sequence[Column]) -> dict[int, int]:
        """Count the values that a side wrote into columns which the other one dropped, by column id.

        A value that a later row has by the column's first default is none of them.

        Args:
            columns: those columns, and others with fields alone that the other one dropped.
        """
        given = {column.column_id: column for column in columns}
        read = [given.get(column.column_id, column) for column in pair.tip.table.columns]
        change = self._change(pair, read).plan
        if not change.inserted.files and change.inserted.inlined is None:
            return {}
        spots = {column.column_id: i for i, column in enumerate(pair.tip.table.columns)}
        query = versions.filled_sql([(spots[column.column_id], column) for column in columns])
        count = len(spots)
        spark: SparkSession | None = None
        with ExitStack() as stack:
            if not self._reading.is_here(change.files, rows_to_read(change)):
                spark = stack.enter_context(self._reading.on_spark(columns))
            removed, added = changes.removed(change, spark), changes.added(change, spark)
            counted = versions.side(removed, count).query(query, after=versions.side(added, count)).arrow()
        counts = zip(columns, counted.columns, strict=True)
        return {column.column_id: number for column, values in counts if (number := values[0].as_py())}

    def carry(self, theirs: Version, ours: Version, definition: Definition) -> Operations | None:
        """Return operations that give rows their values in columns that come; None where no row was written since.

        A row that was deleted before, and has come back since, gets the value that it was deleted with.

        Args:
            theirs: an earlier state of the same lake.
            ours: the table with the columns.
        """
        places = _places(theirs.table, theirs.table, ours.table, definition)
        old, today = (self._reading.plan(version, places.columns) for version in (theirs, ours))
        change = compare(old, today)
        if not change.inserted.files and change.inserted.inlined is None:
            return None
        coming = {places.columns[i].column_id for i in places.came}
        table = replace(ours.table, columns=tuple(c for c in ours.table.columns if c.column_id not in coming))
        without = replace(ours, table=table)
        former = FormerValues.plan(self._reading, without, places.columns, places.came, self._title)
        with ExitStack() as stack:
            spark: SparkSession | None = None
            if not self._reading.is_here((*change.files, *former.files), rows_to_read(change) + former.count):
                spark = stack.enter_context(self._reading.on_spark(places.columns))
            moved = versions.side(changes.added(change, spark), len(places.columns))
            moved = InMemory(moved.arrow()) if spark is None else moved
            filled, lost = former.filled(moved, spark)
            for name, ids in lost:
                if ids.query("SELECT count(*) AS n FROM rows").arrow().column("n")[0].as_py():
                    raise UnsupportedFeatureError(
                        f"The values of column {name} of {self._title} have expired in rows that were written since; restore the "
                        "table to a snapshot with the column instead."
                    )
            made = self._reading.kept(versions.carried(filled, moved, places))
            return Operations(made, made.counts(versions.OPERATION), today)

    def stage(self, table: Table, made: Operations) -> None:
        """Stages what becomes of the rows."""
        transaction = self._transaction
        if made.files:
            take_over(transaction, table, made.files)
        if made.rows is None:
            return
        source = made.rows
        target, few = target_of(transaction, table), few_rows(transaction, table)

        def chosen(*kinds: str) -> tuple[Rows, int]:
            count = made.count(*kinds)
            rows = versions.chosen(source, kinds, [column.name for column in table.columns]).run_by(self._engines)
            return (rows.here() if count <= few else rows), count

        rows, count = chosen("delete", "update")
        stage_deleted(transaction, target, made.scan, rows, count)
        rows, count = chosen("insert", "update")
        if count:
            stage_written(transaction, table, rows.write(target, keeps_ids=True, count=count))
        rows, count = chosen("new")
        if count:
            stage_written(transaction, table, rows.rest(len(VIRTUAL_COLUMNS)).write(target, count=count))

    # Parts

    def _change(self, theirs: Pair, columns: Sequence[Column]) -> Change:
        """The change of a side, from base to tip."""
        base, tip = (self._reading.plan(version, columns) for version in (theirs.base, theirs.tip))
        forward = theirs.base.state.snapshot.snapshot_id <= theirs.tip.state.snapshot.snapshot_id
        return Change(compare(base, tip) if forward else compare(tip, base), forward)

    def _former(self, theirs: Version, columns: Sequence[Column], places: Places) -> FormerValues:
        """Where rows of theirs have values of columns that the table has again."""
        return FormerValues.plan(self._reading, theirs, columns, places.target, self._title)

    def _without_whole_files(
        self, change: Change, tip: Version, merged: Table, ids: RowIds
    ) -> tuple[Change, Sequence[Arrival]]:
        """The change without new files that are taken over as they are, and these."""
        inserted = change.plan.inserted
        if not change.forward or not ids.columns.are_same or ids.first_new is None:
            return change, ()
        if not ids.placed and (change.plan.removed.files or change.plan.removed.inlined is not None):
            return change, ()  # a new file may hold rows that came with an earlier merge
        arrivals = whole_files(tip.lake, tip.table, merged, inserted, ids.first_new, ids.columns.shared or 0)
        taken = {arrival.file.data_file.data_file_id for arrival in arrivals}
        left = tuple(file for file in inserted.files if file.data_file.data_file_id not in taken)
        return replace(change, plan=replace(change.plan, inserted=replace(inserted, files=left))), arrivals

    def _is_placed(self, change: Change, theirs: Pair, ours: Pair, places: Places, ids: RowIds) -> bool:
        """Whether the changed rows of the base are in the same files on both sides: merges and flushes rewrite history."""
        first = ours.base.state.snapshot.next_file_id
        base = self._reading.plan(ours.base, places.columns)
        their = self._reading.plan(theirs.base, ids.columns.to_theirs(places.columns))
        files = {file.data_file.data_file_id for file in base.files}
        inlined, own = (pc.unique(_inlined_ids(plan)) for plan in (their, base))
        same_rows = pc.all(pc.is_in(inlined, value_set=own)).as_py() is not False
        return same_rows and all(number < first and number in files for number in change.base_files)

    def _since_base(self, ours: Pair, places: Places, ids: RowIds, change: Change, today: ScanPlan) -> ChangePlan:
        """The rows that left the places of the base, and those in other places of ours."""
        if not ids.placed:
            return ChangePlan(today, replace(today, files=(), inlined=None), ())
        if ours.base.state.snapshot == ours.tip.state.snapshot and ours.tip.staged is None:
            base = today
        else:
            base = self._reading.plan(ours.base, places.columns)
        return _of_files(compare(base, today), change.base_files)

    def _with_ours(
        self, theirs: Rows, base: Rows, since: ChangePlan, places: Places, spark: SparkSession | None, ids: RowIds
    ) -> Versions:
        shared = versions.row_ids(theirs, base, ids.first_new)
        gone, moved = self._since(since, places, spark, shared)
        if not ids.placed and ids.first_new is not None:
            self._check_shared(versions.changed_since(theirs, base, places, ids.first_new))
        return Versions(theirs, base, ids.first_new, gone, moved, ids.placed)

    def _check_shared(self, changed: Rows) -> None:
        """Raises UnsupportedFeatureError where theirs changed rows that ours does not have under their row ids."""
        count = changed.arrow().column("n")[0].as_py()
        if count:
            raise UnsupportedFeatureError(
                f"{count:,} rows of {self._title} {self._words.earlier}, under other row ids, and {self._words.title} "
                "has changed them since; a merge of these is not supported. Change them in the lake."
            )

    def _operations(
        self,
        three: Versions,
        places: Places,
        today: ScanPlan,
        files: Sequence[Arrival],
        lost: Sequence[tuple[str, Rows]],
    ) -> Operations:
        compared = three.compared(places)
        # Spark would compare values anew for each operation
        compared = self._reading.kept(compared) if isinstance(compared, OnSpark) else compared
        rows = three.decided(compared, places, self._rules)
        for name, ids in lost:
            rows = self.checks.without_lost(rows, name, ids, self._rules, self._unsettled)
        made = self._reading.kept(versions.operations(rows, places))
        counts = made.counts(versions.OPERATION)
        if counts.get("conflict"):
            listed, total = versions.conflicts(
                rows, places, self._rules, self._title, self._words, self._unsettled.room, self._time_zone
            )
            self._unsettled.add_all(listed, total)
        return Operations(made, counts, today, files)

    def _sides(
        self, change: Change, places: Places, spark: SparkSession | None, wanted: Rows | None
    ) -> tuple[Rows, Rows]:
        """The changed rows of theirs, and of the base."""

        def rows_of(rows: Rows) -> Rows:
            one = versions.side(rows, len(places.columns))
            return versions.only(one, wanted) if wanted is not None else one

        return rows_of(change.theirs(spark)), rows_of(change.base(spark))

    def _since(
        self, since: ChangePlan, places: Places, spark: SparkSession | None, ids: Rows
    ) -> tuple[Rows | None, Rows | None]:
        """The row ids that left their places, and the rows in other places of ours, among some row ids."""
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
        file_ids = versions.side(Scan(narrow, virtual=True), 1).query(
            "SELECT DISTINCT file_id FROM rows WHERE rid IN (SELECT rid FROM ids)", ids=ids
        )
        holding = set(file_ids.arrow().column("file_id").to_pylist())
        kept = tuple(file for file in inserted.files if file.data_file.data_file_id in holding)
        return replace(since, inserted=replace(inserted, files=kept))


def _inlined_ids(plan: ScanPlan) -> pa.ChunkedArray:
    return plan.inlined.rows.column(ROW_ID) if plan.inlined is not None else _NO_IDS


def _is_empty(since: ChangePlan) -> bool:
    return not since.files and since.inserted.inlined is None and since.removed.inlined is None


def _in_memory(theirs: Rows, base: Rows) -> tuple[Rows, Rows]:
    """Both versions, read at once."""
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(base.arrow)
        return InMemory(theirs.arrow()), InMemory(later.result())


def _of_files(since: ChangePlan, file_ids: Collection[int]) -> ChangePlan:
    """The change without rows that left other files."""
    return replace(
        since,
        removed=replace(
            since.removed, files=tuple(file for file in since.removed.files if file.data_file.data_file_id in file_ids)
        ),
        deleted=tuple(rows for rows in since.deleted if rows.after.data_file.data_file_id in file_ids),
    )


def _places(theirs: Table, base: Table, ours: Table, definition: Definition) -> Places:
    """Columns by their places, in the types that they have afterwards."""
    their, old, own = ({column.column_id for column in table.columns} for table in (theirs, base, ours))
    merged = {column.column_id: column for column in definition.table.columns}
    coming = [column for column in definition.came if column.column_id not in own]
    read = [replace(c, type=m.type, children=m.children) if (m := merged.get(c.column_id)) else c for c in ours.columns]
    columns = tuple(with_free_names([*read, *coming]))
    spots = {column.column_id: i for i, column in enumerate(columns)}
    return Places(
        columns=columns,
        cells=[i for i, c in enumerate(ours.columns) if c.column_id in their and c.column_id in old],
        kept=[i for i, c in enumerate(ours.columns) if c.column_id in their or c.column_id not in old],
        came=[spots[column.column_id] for column in definition.came],
        target=[spots[column.column_id] for column in definition.table.columns],
    )
