"""Reads the rows that snapshots changed, in one task, which pairs the old and the new version of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as T

from ducklake_lab.datasource.options import Target
from ducklake_lab.engine import changes
from ducklake_lab.errors import UsageError
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.spark.frames import arrow_for_spark
from ducklake_lab.spark.types import table_schema
from ducklake_lab.spark.workers.start import begin_task

#: Columns before those of the table.
_BEFORE = (
    T.StructField("snapshot_id", T.LongType()),
    T.StructField("rowid", T.LongType()),
    T.StructField("change_type", T.StringType()),
)


class FeedPartition(ds.InputPartition):
    """All changes of a range of snapshots."""

    def __init__(self, plan: ChangePlan) -> None:
        self.plan = plan


class FeedReader(ds.DataSourceReader):
    """A batch read of the changes of one table between two snapshots, both inclusive."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._plan = self._planned()

    def schema(self) -> T.StructType:
        """The columns of the feed: those of the table as of the last snapshot, after the three of the change."""
        return T.StructType([*_BEFORE, *table_schema(self._plan.inserted.columns).fields])

    def _planned(self) -> ChangePlan:
        target = self._target
        with target.open() as lake, lake.connect() as connection:
            start = target.snapshots.first(lake)
            if start is None:
                raise UsageError("A change feed needs the option startingVersion or startingTimestamp.")
            last = lake.snapshot(connection, target.snapshots.end)
            if start > last.snapshot_id:
                raise UsageError(
                    f"The first snapshot, {start}, is after the last, {last.snapshot_id}; swap startingVersion and endingVersion."
                )
            state = lake.state(connection, last)
            table = state.table(target.schema, target.table)
            return plan_feed(lake, connection, state, table, start, last.snapshot_id)

    def partitions(self) -> Sequence[FeedPartition]:
        """Return one partition."""
        return [FeedPartition(self._plan)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, FeedPartition)  # partitions() made it
        begin_task()
        rows = changes.feed(partition.plan, None, ordered=True).arrow()
        yield from arrow_for_spark(rows.rename_columns(self.schema().names)).to_batches()
