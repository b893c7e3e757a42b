"""Streams: the rows that each new snapshot inserts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from ducklake_lab.catalog.reader import read_history
from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.reader import PlanPartition, split
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.entries import Column
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark.types import table_schema

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ModuleNotFoundError:

        class SupportsTriggerAvailableNow:
            """PySpark before 4.2 runs one batch with availableNow, the one that an earlier run planned if there is one."""


_NOTHING = -1


class TableStreamReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows as they are inserted; an updated row comes again with its new values, a deletion is not seen.

    An offset is `{"snapshot": id}`: everything up to that snapshot has been read. The first batch is the table as it
    is; with `starting_version`, what that snapshot and those after it inserted.
    """

    def __init__(self, target: Target, schema: StructType) -> None:
        self._target = target
        self._schema = schema
        self._last: int | None = None
        #: The snapshot before the first that is read, once it is known; Spark asks all the time.
        self._first: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first snapshot that is read."""
        if self._first is None:
            with self._target.open() as lake:
                first = self._target.snapshots.first(lake)
            self._first = _NOTHING if first is None else first - 1
        return {"snapshot": self._first}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The newest snapshot, or the last that the query reads.

        Raises:
            DuckLakeError: the lake has gone back to before `start`.
        """
        latest = self._newest() if self._last is None else self._last
        first: int = self.initialOffset()["snapshot"]
        if start is not None and latest < start["snapshot"] and start["snapshot"] != first:
            raise DuckLakeError(
                f"The lake is at snapshot {latest}, and the stream has read up to {start['snapshot']}: the lake is "
                "another one, or an earlier copy. Start the stream with a new checkpoint."
            )
        return {"snapshot": max(latest, first)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The query ends with the snapshot that is the newest now, whatever batches an earlier run has planned."""
        self._last = self._newest()

    def _newest(self) -> int:
        with self._target.open() as lake, lake.connect() as connection:
            return lake.snapshot(connection).snapshot_id

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[PlanPartition]:
        """Plan the rows inserted after `start`, up to and including `end`.

        Raises:
            DuckLakeError: the table's columns are no longer those the stream began with, or snapshots have expired.
        """
        if start == end:
            return []
        target = self._target
        with target.open() as lake, lake.connect() as connection:
            unread = start["snapshot"] + 1, end["snapshot"]
            if start["snapshot"] != _NOTHING and len(read_history(connection, between=unread)) <= unread[1] - unread[0]:
                raise DuckLakeError(
                    f"Snapshots {unread[0]} to {unread[1]} have not been read, and some have expired: the rows "
                    "that they inserted cannot be found. Start the stream with a new checkpoint."
                )
            state = lake.state(connection, lake.snapshot(connection, end["snapshot"]))
            table = state.table(target.schema, target.table)
            if table_schema(_selected(table.columns, self._schema.names)) != self._schema:
                raise DuckLakeError(
                    f"The columns of {target.schema}.{target.table} changed at or before snapshot {end['snapshot']}; "
                    "start the stream again to read it under its new columns."
                )
            if start["snapshot"] == _NOTHING:
                return split(plan_scan(lake, connection, state, table), self._schema)
            feed = plan_feed(lake, connection, state, table, *unread)
            return split(feed.inserted, self._schema)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a Python worker."""
        assert isinstance(partition, PlanPartition)  # partitions() made it
        return partition.read()


def _selected(columns: tuple[Column, ...], names: Sequence[str]) -> tuple[Column, ...]:
    """The columns with these names, as they name them; all columns where one is missing."""
    known = {column.name.casefold(): column for column in columns}
    if any(name.casefold() not in known for name in names):
        return columns
    return tuple(replace(known[name.casefold()], name=name) for name in names)
