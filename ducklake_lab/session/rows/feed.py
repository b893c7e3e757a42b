"""The change feed of a table, planned (spec: advanced_features/data_change_feed)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog.reader import first_snapshot_since
from ducklake_lab.engine import changes
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.rows import Here, Rows, here
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import SnapshotNotFoundError
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.rows.result import Result, RunInfo

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Feed:
    """The rows that a range of snapshots changed, not read yet.

    table_changes gives `snapshot_id`, `rowid`, `change_type` (insert, delete, update_preimage, update_postimage), then
    the table's columns as of the last snapshot. table_insertions and table_deletions give those columns, then the
    virtual ones on request.
    """

    name: str
    plan: ChangePlan
    virtual: bool = False

    def result(self, engine: SparkEngine) -> Result:
        """Returns the rows: read now in process, or lazily by Spark."""
        info = RunInfo(placement=engine.placing.place(facts_of(self.plan.files)))
        if info.placement is not None and info.placement.is_here:
            return Result(arrow=self.arrow(), info=info, engine=engine)
        types = [column.data_type.sql() for column in self.plan.inserted.columns]
        if self.name == "table_changes":
            types = ["BIGINT", "BIGINT", "VARCHAR", *types]
        with engine.running() as spark:
            return Result(frame=self.frame(spark), types=types, info=info, engine=engine)

    def arrow(self) -> pa.Table:
        """Returns the rows, read in process, in the order of their changes."""
        return self._rows(None, ordered=True).arrow()

    def here(self) -> Here:
        """Returns the rows as a source for reading in process."""
        return here(self._rows(None))

    def frame(self, spark: SparkSession) -> DataFrame:
        """Returns the rows as a lazy Spark DataFrame."""
        return self._rows(spark).frame(spark)

    def _rows(self, spark: SparkSession | None, *, ordered: bool = False) -> Rows:
        if self.name == "table_changes":
            return changes.feed(self.plan, spark, ordered=ordered)
        if self.name == "table_insertions":
            return changes.added(self.plan, spark, virtual=self.virtual)
        rows = changes.removed(self.plan, spark)
        return rows if self.virtual else rows.first(len(self.plan.inserted.columns))


def plan_call(lakes: Lakes, call: FeedCall, *, virtual: bool = False) -> Feed:
    """Plans the read of rows that snapshots `start` to `end` changed, both inclusive."""
    lake = call.lake
    with lake.connect() as connection:
        last = lake.snapshot(connection, call.end)
        state = lake.state(connection, last)
        table = state.table_in_text(call.schema, call.table)
        begin = call.start if isinstance(call.start, int) else lake.instant(call.start)
        start = _first_snapshot(connection, begin, last.snapshot_id)
        return Feed(call.name, plan_feed(lake, connection, state, table, start, last.snapshot_id), virtual)


def _first_snapshot(connection: sa.Connection, start: int | datetime, end: int) -> int:
    if isinstance(start, datetime):
        return first_snapshot_since(connection, start)
    if start > end:
        raise SnapshotNotFoundError(f"The first snapshot, {start}, is after the last, {end}; swap them.")
    return start
