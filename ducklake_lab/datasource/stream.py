"""Streams: the rows that each new snapshot inserts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.reader import PlanPartition, split
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark.types import table_schema

_NOTHING = -1


class TableStreamReader(ds.DataSourceStreamReader):
    """Rows as they are inserted; an updated row comes again with its new values, a deletion is not seen.

    An offset is `{"snapshot": id}`: everything up to that snapshot has been read. The first batch is the table as it
    is; with `starting_version`, what that snapshot and those after it inserted.
    """

    def __init__(self, target: Target, schema: StructType) -> None:
        self._target = target
        self._schema = schema

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first snapshot that is read."""
        first = self._target.starting_version
        return {"snapshot": _NOTHING if first is None else first - 1}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The newest snapshot."""
        with self._target.open() as lake, lake.connect() as connection:
            return {"snapshot": lake.snapshot(connection).snapshot_id}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[PlanPartition]:
        """What was inserted after `start`, up to and with `end`.

        Raises:
            DuckLakeError: the table's columns are no longer those the stream began with.
        """
        target = self._target
        with target.open() as lake, lake.connect() as connection:
            state = lake.state(connection, lake.snapshot(connection, end["snapshot"]))
            table = state.table(target.schema, target.table)
            if table_schema(table.columns) != self._schema:
                raise DuckLakeError(
                    f"The columns of {target.schema}.{target.table} changed at or before snapshot {end['snapshot']}; "
                    "start the stream again to read it under its new columns."
                )
            if start["snapshot"] == _NOTHING:
                return split(plan_scan(lake, connection, state, table))
            feed = plan_feed(lake, connection, state, table, start["snapshot"] + 1, end["snapshot"])
            return split(feed.inserted)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, PlanPartition)  # what partitions() made
        return partition.read()
