"""Streams: the rows that each new snapshot inserts, or all that it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.datasource.change_feed import FeedPartition, check_whole, feed_schema
from ducklake_lab.datasource.offsets import NOTHING, Offset, Size, mark_of, ordered
from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.reader import PlanPartition, split
from ducklake_lab.errors import DuckLakeError, SnapshotNotFoundError, UnsupportedFeatureError
from ducklake_lab.model.changes import INSERTS, Change, parse_changes
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.staged import SNAPSHOT_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.plan import ChangePlan, InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark.types import table_schema

if TYPE_CHECKING:
    from pyspark.sql.streaming import datasource as streaming
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming import datasource as streaming
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:
        streaming = None

        class SupportsTriggerAvailableNow:
            """PySpark before 4.2 runs one batch with availableNow, the one that an earlier run planned if there is one."""


class _Moment:
    """The table at a snapshot, while the lake is open."""

    def __init__(self, target: Target, lake: Lake, connection: Any, snapshot: int | None) -> None:
        self.lake, self.connection = lake, connection
        self.state: CatalogState = lake.state(connection, lake.snapshot(connection, snapshot))
        self.table: Table = self.state.table(target.schema, target.table)

    def scan(self) -> ScanPlan:
        return plan_scan(self.lake, self.connection, self.state, self.table)

    def feed(self, first: int, last: int) -> ChangePlan:
        return plan_feed(self.lake, self.connection, self.state, self.table, first, last)


class TableStreamReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows as they are inserted.

    The first batch is the table as it is; with a first snapshot, what that snapshot and those after it inserted.
    """

    def __init__(self, target: Target, schema: StructType) -> None:
        self._target = target
        self._schema = schema
        self._last: int | None = None
        #: The snapshot before the first that is read, once it is known; Spark asks all the time.
        self._first: int | None = None

    # What Spark asks for

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first snapshot that is read."""
        if self._first is None:
            with self._target.open() as lake:
                first = self._target.snapshots.first(lake)
            self._first = NOTHING if first is None else first - 1
        return {"snapshot": self._first}

    def getDefaultReadLimit(self) -> streaming.ReadLimit:  # noqa: N802
        """A limit that makes Spark ask for parts; all limits of the options apply together."""
        limits = self._target.limits
        if limits.files is not None:
            return streaming.ReadMaxFiles(limits.files)
        if limits.size is not None:
            return streaming.ReadMaxBytes(limits.size)
        if limits.rows is not None:
            return streaming.ReadMaxRows(limits.rows)
        return streaming.ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The newest snapshot, or the last that the query reads, or as much as its limits allow.

        Raises:
            DuckLakeError: the lake has gone back to before `start`.
            UnsupportedFeatureError: PySpark is older than 4.2, and a batch is to be limited.
        """
        latest = self._newest() if self._last is None else self._last
        first: int = self.initialOffset()["snapshot"]
        if start is not None and latest < start["snapshot"] and start["snapshot"] != first:
            raise DuckLakeError(
                f"The lake is at snapshot {latest}, and the stream has read up to {start['snapshot']}: the lake is "
                "another one, or an earlier copy. Start the stream with a new checkpoint."
            )
        end = max(latest, first)
        if not self._target.limits or (limit is not None and isinstance(limit, streaming.ReadAllAvailable)):
            return {"snapshot": end}
        if start is None or limit is None:
            raise UnsupportedFeatureError(
                "Limits of a stream's batches are supported from PySpark 4.2 on; leave them out."
            )
        return self._limited(Offset.of(start), end).json()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The newest snapshot, for the query's progress."""
        return {"snapshot": self._newest()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The query ends with the snapshot that is the newest now, whatever batches an earlier run has planned."""
        self._last = self._newest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[ds.InputPartition]:
        """Plans what comes after `start`, up to and including `end`.

        Raises:
            DuckLakeError: the table is another one, or has other columns, or snapshots have expired, or deleted rows.
        """
        if start == end:
            return []
        first, last = Offset.of(start), Offset.of(end)
        with self._target.open() as lake, lake.connect() as connection:
            self._check_kept(connection, first, last)
            now = _Moment(self._target, lake, connection, last.snapshot)
            self._check_columns(now)
            if first.snapshot == NOTHING:
                return self._initial(now.scan(), first, last)
            parts: list[ds.InputPartition] = []
            if first.files is not None:
                up_to = last.files if last.snapshot == first.snapshot else None
                parts += self._rest(_Moment(self._target, lake, connection, first.snapshot), first, up_to)
                if last.snapshot == first.snapshot:
                    return parts
            self._check_same_table(now, first.snapshot)
            whole = last.snapshot if last.files is None else last.snapshot - 1
            if whole > first.snapshot:
                parts += self._changes(now, now.feed(first.snapshot + 1, whole), first.snapshot + 1, whole)
            if last.files is not None:
                plan = now.feed(last.snapshot, last.snapshot)
                inserted = self._kept(now, plan, last.snapshot, last.snapshot).inserted
                files = Offset(last.snapshot).rest(inserted, last.files)
                parts += self._parts(replace(inserted, files=tuple(files), inlined=None))
            return parts

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, PlanPartition | FeedPartition)  # partitions() made it
        return partition.read()

    # Parts of a batch

    def _initial(self, plan: ScanPlan, first: Offset, last: Offset) -> list[ds.InputPartition]:
        """The table as it is, or its first files."""
        if last.files is None:
            return self._parts(plan)
        return self._parts(replace(plan, files=tuple(first.rest(plan, last.files)), inlined=None))

    def _rest(self, then: _Moment, first: Offset, up_to: int | None) -> list[ds.InputPartition]:
        """Files of a snapshot some of whose files have been read, and its inlined rows after the last file."""
        self._check_columns(then)
        if first.initial:
            plan = then.scan()
        else:
            changed = then.feed(first.snapshot, first.snapshot)
            plan = self._kept(then, changed, first.snapshot, first.snapshot).inserted
        inlined = plan.inlined if up_to is None else None
        return self._parts(replace(plan, files=tuple(first.rest(plan, up_to)), inlined=inlined))

    def _parts(self, plan: ScanPlan) -> list[ds.InputPartition]:
        return list(split(plan, self._schema))

    def _changes(self, now: _Moment, plan: ChangePlan, first: int, last: int) -> list[ds.InputPartition]:
        """Changes of some snapshots, both inclusive."""
        return self._parts(self._kept(now, plan, first, last).inserted)

    def _kept(self, now: _Moment, plan: ChangePlan, first: int, last: int) -> ChangePlan:
        """The part of a plan that the stream reads.

        Raises:
            DuckLakeError: a snapshot deleted rows, and the options do not say what to do.
        """
        target = self._target
        changing = _deleting(plan)
        if not changing or target.ignore_changes:
            return plan
        if target.skip_changes:
            return replace(plan, inserted=_without(plan.inserted, changing))
        if target.ignore_deletes:
            changing &= _inserting(now, first, last)
        if not changing:
            return plan
        raise DuckLakeError(
            f"Snapshot {min(changing)} deleted or updated rows of {target.schema}.{target.table}, and the stream reads "
            "inserted rows only. Set ignoreDeletes, ignoreChanges or skipChangeCommits, or read readChangeFeed."
        )

    # Limits

    def _limited(self, start: Offset, end: int) -> Offset:
        """The last place after an offset, up to a snapshot, that the limits allow."""
        limits = self._target.limits
        with self._target.open() as lake, lake.connect() as connection:
            if start.snapshot == NOTHING or start.files is not None:
                at = end if start.snapshot == NOTHING else start.snapshot
                then = _Moment(self._target, lake, connection, at)
                initial = start.initial or start.snapshot == NOTHING
                plan = then.scan() if initial else self._kept(then, then.feed(at, at), at, at).inserted
                rest = start.rest(plan)
                count = limits.first(rest, Size())
                if count < len(rest):
                    return self._within(plan, at, (start.files or 0) + count, initial=initial)
                taken = Size.of(rest, plan)
                previous = at
            else:
                taken, previous = Size(), start.snapshot
            if previous >= end:
                return Offset(max(previous, end))
            now = _Moment(self._target, lake, connection, end)
            for snapshot, size in sorted(self._sizes(now, previous + 1, end).items()):
                if limits.allow(taken + size):
                    taken += size
                    continue
                if taken != Size():
                    return Offset(snapshot - 1)
                return self._first_of(now, snapshot)
            return Offset(end)

    def _first_of(self, now: _Moment, snapshot: int) -> Offset:
        """The last place within one snapshot that the limits allow."""
        plan = now.feed(snapshot, snapshot).inserted
        files = ordered(plan)
        count = self._target.limits.first(files, Size())
        return Offset(snapshot) if count >= len(files) else self._within(plan, snapshot, count, initial=False)

    @staticmethod
    def _within(plan: ScanPlan, snapshot: int, count: int, *, initial: bool) -> Offset:
        return Offset(snapshot, count, mark_of(ordered(plan)[:count]), initial)

    def _sizes(self, now: _Moment, first: int, last: int) -> dict[int, Size]:
        """The sizes of what each of some snapshots, both inclusive, changed."""
        plan = now.feed(first, last)
        sizes: dict[int, Size] = {}

        def add(snapshot: int, size: Size) -> None:
            sizes[snapshot] = sizes.get(snapshot, Size()) + size

        for side in self._sides(plan):
            for file in side.files:
                # a merged file has rows of several snapshots; it counts once
                add(max(file.snapshot_id or first, first), Size.of([file]))
            for snapshot, rows in _inlined_counts(side).items():
                assert side.inlined is not None
                add(snapshot, Size(1, rows * side.inlined.rows.nbytes // side.inlined.rows.num_rows, rows))
        return sizes

    def _sides(self, plan: ChangePlan) -> list[ScanPlan]:
        return [plan.inserted]

    # Checks

    def _newest(self) -> int:
        with self._target.open() as lake, lake.connect() as connection:
            return lake.snapshot(connection).snapshot_id

    def _check_kept(self, connection: Any, first: Offset, last: Offset) -> None:
        if first.snapshot == NOTHING:
            return
        unread = first.snapshot + (first.files is None), last.snapshot
        if len(read_history(connection, between=unread)) <= unread[1] - unread[0]:
            raise DuckLakeError(
                f"Snapshots {unread[0]} to {unread[1]} have not been read, and some have expired: the rows "
                "that they inserted cannot be found. Start the stream with a new checkpoint."
            )

    def _check_columns(self, now: _Moment) -> None:
        if self._columns(now.table) != self._schema:
            raise DuckLakeError(
                f"The columns of {self._target.schema}.{self._target.table} changed at or before snapshot "
                f"{now.state.snapshot.snapshot_id}; start the stream again to read it under its new columns."
            )

    def _columns(self, table: Table) -> StructType:
        return table_schema(_selected(table.columns, self._schema.names))

    def _check_same_table(self, now: _Moment, snapshot: int) -> None:
        """Raises where another table has the name now; a table that was made after the snapshot is none."""
        try:
            then = now.lake.state(now.connection, now.lake.snapshot(now.connection, snapshot))
        except SnapshotNotFoundError:
            return  # it has expired, or is the one before the first
        former = then.find_table(self._target.schema, self._target.table)
        if former is not None and former.table_id != now.table.table_id:
            raise DuckLakeError(
                f"{self._target.schema}.{self._target.table} was replaced after snapshot {snapshot}: its rows are others. "
                "Start the stream at a later version, with a new checkpoint."
            )


class FeedStreamReader(TableStreamReader):
    """All that snapshots change, as a change feed. The first batch is the table as it is, as inserted rows."""

    def __init__(self, target: Target, schema: StructType) -> None:
        super().__init__(target, schema)
        check_whole(target, schema)

    def _parts(self, plan: ScanPlan) -> list[ds.InputPartition]:
        nothing = replace(plan, files=(), inlined=None)
        return [
            FeedPartition(ChangePlan(inserted=part.plan, removed=nothing, deleted=()), self._schema.names)
            for part in split(plan, table_schema(plan.columns))
        ]

    def _changes(self, now: _Moment, plan: ChangePlan, first: int, last: int) -> list[ds.InputPartition]:
        return [FeedPartition(plan, self._schema.names)]

    def _first_of(self, now: _Moment, snapshot: int) -> Offset:
        return Offset(snapshot)  # one task pairs its updates

    def _sides(self, plan: ChangePlan) -> list[ScanPlan]:
        deleted = tuple(replace(rows.after, snapshot_id=rows.snapshot_id) for rows in plan.deleted)
        return [plan.inserted, plan.removed, replace(plan.removed, files=deleted, inlined=None)]

    def _columns(self, table: Table) -> StructType:
        return feed_schema(table.columns)


def _deleting(plan: ChangePlan) -> set[int]:
    """The snapshots that deleted rows, new versions of which may be there."""
    files = {file.snapshot_id for file in plan.removed.files if file.snapshot_id is not None}
    return files | {rows.snapshot_id for rows in plan.deleted} | set(_inlined_counts(plan.removed))


def _inlined_counts(plan: ScanPlan) -> dict[int, int]:
    """The numbers of inlined rows by snapshot."""
    if plan.inlined is None:
        return {}
    counts = pc.value_counts(plan.inlined.rows.column(SNAPSHOT_ID)).to_pylist()
    return {entry["values"]: entry["counts"] for entry in counts}


def _inserting(now: _Moment, first: int, last: int) -> set[int]:
    """The snapshots that say that they inserted rows into the table."""
    own = {Change(kind, now.table.table_id) for kind in INSERTS}
    history = read_history(now.connection, between=(first, last))
    return {entry.snapshot_id for entry in history if own & set(parse_changes(entry.changes_made))}


def _without(plan: ScanPlan, snapshots: set[int]) -> ScanPlan:
    """A plan without the rows that some snapshots inserted."""
    files: list[ScanFile] = []
    for file in plan.files:
        if file.data_file.partial_max is not None:
            files.append(replace(file, rows_except=tuple(sorted({*file.rows_except, *snapshots}))))
        elif file.data_file.begin_snapshot not in snapshots:
            files.append(file)
    inlined = plan.inlined
    if inlined is not None:
        gone = pc.is_in(inlined.rows.column(SNAPSHOT_ID), pa.array(sorted(snapshots), pa.int64()))
        rows = inlined.rows.filter(pc.invert(gone))
        inlined = InlinedRows(rows) if rows.num_rows else None
    return replace(plan, files=tuple(files), inlined=inlined)


def _selected(columns: tuple[Column, ...], names: Sequence[str]) -> tuple[Column, ...]:
    """The columns with these names, as they name them; all columns where one is missing."""
    by_name = {column.name.casefold(): column for column in columns}
    if any(name.casefold() not in by_name for name in names):
        return columns
    return tuple(replace(by_name[name.casefold()], name=name) for name in names)
