"""The change feed of a table as a Spark DataFrame (spec: advanced_features/data_change_feed)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import SnapshotNotFoundError
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.lakes import Lakes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def feed_frame(lakes: Lakes, call: FeedCall, spark: SparkSession) -> DataFrame:
    """Rows changed by snapshots `start` to `end`, both inclusive.

    Returns:
        `snapshot_id`, `rowid`, for table_changes `change_type` (insert, delete, update_preimage,
        update_postimage), then the table's columns as of `end`.
    """
    from ducklake_lab.spark import changes

    lake = call.lake
    with lake.connect() as connection:
        last = lake.snapshot(connection, call.end)
        state = lake.state(connection, last)
        table = state.table(call.schema, call.table)
        start = _first_snapshot(lake, connection, call.start, last.snapshot_id)
        plan = plan_feed(lake, connection, state, table, start, last.snapshot_id)
    columns = [column.name for column in table.columns]
    if call.name == "table_insertions":
        return changes.insertions(spark, plan, columns, row_id=ROW_ID, snapshot_id=SNAPSHOT_ID)
    if call.name == "table_deletions":
        return changes.deletions(spark, plan, columns, row_id=ROW_ID, snapshot_id=SNAPSHOT_ID)
    return changes.feed(spark, plan, columns, row_id=ROW_ID, snapshot_id=SNAPSHOT_ID)


def _first_snapshot(lake: Lake, connection: sa.Connection, start: int | datetime, end: int) -> int:
    if isinstance(start, datetime):
        return lake.snapshot(connection, start).snapshot_id
    if start > end:
        raise SnapshotNotFoundError(f"The first snapshot, {start}, is after the last, {end}; swap them.")
    return start
