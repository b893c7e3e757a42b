"""Reads the rows that snapshots changed; one task pairs the old and the new version of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as T

from ducklake_lab.datasource.options import Target
from ducklake_lab.engine import changes
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Column
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


def feed_schema(columns: Sequence[Column]) -> T.StructType:
    """The columns of a feed: those of the table after the three of the change."""
    return T.StructType([*_BEFORE, *table_schema(columns).fields])


def schema_of_feed(target: Target) -> T.StructType:
    """The columns of a feed, with those of the table as of the last snapshot."""
    with target.open() as lake, lake.connect() as connection:
        state = lake.state(connection, lake.snapshot(connection, target.snapshots.end))
        return feed_schema(state.table(target.schema, target.table).columns)


def check_whole(target: Target, schema: T.StructType) -> None:
    """Raises UsageError where a schema chooses columns of a feed."""
    if schema.names != schema_of_feed(target).names:
        raise UsageError("A change feed reads all columns; leave out the schema, and select columns of the rows.")


class FeedPartition(ds.InputPartition):
    """All changes of a range of snapshots; the columns have the given names."""

    def __init__(self, plan: ChangePlan, names: Sequence[str]) -> None:
        self.plan = plan
        self.names = list(names)

    def read(self) -> Iterator[pa.RecordBatch]:
        """The changes in their order, in types that Spark takes."""
        begin_task()
        rows = changes.feed(self.plan, None, ordered=True).arrow()
        yield from arrow_for_spark(rows.rename_columns(self.names)).to_batches()


class FeedReader(ds.DataSourceReader):
    """A batch read of the changes of one table between two snapshots, both inclusive."""

    def __init__(self, target: Target, schema: T.StructType) -> None:
        check_whole(target, schema)
        self._names = schema.names
        self._plan = _planned(target)

    def partitions(self) -> Sequence[FeedPartition]:
        """Return one partition."""
        return [FeedPartition(self._plan, self._names)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, FeedPartition)  # partitions() made it
        return partition.read()


def _planned(target: Target) -> ChangePlan:
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
