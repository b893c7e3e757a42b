"""The change feed of a table, planned (spec: advanced_features/data_change_feed)."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from ducklake_lab.catalog.identity import read_of
from ducklake_lab.catalog.snapshots import first_snapshot_since
from ducklake_lab.engine.changes import Feed
from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Placing
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import SnapshotNotFoundError
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.rows.result import Result, RunInfo


def feed_result(lakes: Lakes, call: FeedCall, engine: SparkEngine) -> Result:
    """Returns the rows of a feed: read now in process, or lazily by Spark."""
    info = RunInfo()
    feed = plan_call(lakes, call, engine.placing, info)
    info.placement = engine.placing.place(facts_of_rows([feed]))
    if info.placement.is_here:
        return Result(InMemory(feed.arrow()), info=info, engine=engine)
    with engine.running() as spark:
        return Result(OnSpark(feed.frame(spark), tuple(feed.columns)), info=info, engine=engine)


def plan_call(
    lakes: Lakes, call: FeedCall, placing: Placing, info: RunInfo | None = None, *, virtual: bool = False
) -> Feed:
    """Plans the read of rows that snapshots `start` to `end` changed, both inclusive; `info` notes the table."""
    lake = call.lake
    with lake.connect() as connection:
        last = lake.snapshot(connection, call.end)
        state = lake.state(connection, last)
        table = state.table_in_text(call.schema, call.table)
        if info is not None:
            info.read(lake, read_of(lake, state, table, is_fixed=True))
        begin = call.start if isinstance(call.start, int) else lake.instant(call.start)
        start = _first_snapshot(connection, begin, last.snapshot_id)
        plan = plan_feed(lake, connection, state, table, start, last.snapshot_id)
        return Feed(call.name, plan, virtual, placing)


def _first_snapshot(connection: sa.Connection, start: int | datetime, end: int) -> int:
    if isinstance(start, datetime):
        return first_snapshot_since(connection, start)
    if start > end:
        raise SnapshotNotFoundError(f"The first snapshot, {start}, is after the last, {end}; swap them.")
    return start
