"""A table of a lake, at the newest snapshot or at an older one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.diff.compute import diff_states
from ducklake_lab.diff.diff import Diff
from ducklake_lab.errors import SnapshotNotFoundError
from ducklake_lab.local import reader as local_reader
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.scan.history import lake_history, table_files
from ducklake_lab.session.engine import SparkEngine
from ducklake_lab.session.feed import feed_frame
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.lakes import At, Lakes, Place
from ducklake_lab.session.listings import FileListing, History
from ducklake_lab.session.result import Result
from ducklake_lab.session.sources import Scan, Sources

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


class TableHandle:
    """One table; what it reads is fixed by `at`, and without it is the newest state when it is asked."""

    def __init__(self, lakes: Lakes, sources: Sources, engine: SparkEngine, name: str, at: At = None) -> None:
        self._lakes = lakes
        self._sources = sources
        self._engine = engine
        self._name = name
        self.at = at
        self._entry()  # a wrong name is told at once

    def _place(self, at: At = None) -> Place:
        return self._lakes.parse(self._name, self.at if at is None else at)

    def _entry(self) -> Table:
        return self._place().table()

    @property
    def name(self) -> str:
        """`schema.table`."""
        place = self._place()
        return place.state.qualified_name(place.table())

    @property
    def schema(self) -> tuple[Column, ...]:
        """The columns, nested ones below theirs."""
        return self._entry().columns

    def spark(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """A lazy Spark DataFrame of the table.

        Args:
            where: a condition in Spark SQL.
            columns: names of the columns wanted, in order; all for None.
        """
        place = self._place()
        plan = self._sources.scan(place, place.table())
        with self._engine.running():
            frame = self._sources.frame_of(Scan(plan, virtual=False))
        if where is not None:
            frame = frame.where(where)
        return frame.select(*(f"`{name.replace('`', '``')}`" for name in columns)) if columns is not None else frame

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table, read in process."""
        place = self._place()
        return local_reader.read(self._sources.scan(place, place.table()))

    def pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame."""
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    def files(self) -> FileListing:
        """The data files with sizes, deletions, partition values and column statistics."""
        place = self._place()
        with place.lake.connect() as connection:
            entries = table_files(place.lake, connection, place.state, place.table())
        return FileListing(self.name, place.state.snapshot.snapshot_id, entries)

    def history(self) -> History:
        """The snapshots that touched the table, oldest first."""
        place = self._place()
        with place.lake.connect() as connection:
            entries = lake_history(place.lake, connection, table_id=place.table().table_id)
        return History(self.name, entries)

    def changes(self, start: int | datetime, end: int | datetime) -> Result:
        """The change feed of snapshots `start` to `end`, both inclusive: snapshot_id, rowid, change_type, columns."""
        place = self._place(end)
        call = FeedCall("table_changes", place.lake, place.schema, place.name, start, end)
        return Result(frame=feed_frame(self._lakes, call, self._engine()), engine=self._engine)

    def diff(self, start: int | datetime, end: int | datetime | None = None) -> Diff:
        """What differs between two snapshots; the newest for `end` left out."""
        before, after = self._place(start), self._place(end)
        table = after.table()
        old = before.state.tables.get(table.table_id)
        if old is None:
            raise SnapshotNotFoundError(
                f"{self.name} did not exist at snapshot {before.state.snapshot.snapshot_id}; choose a later one."
            )
        return diff_states(before.lake, before.state, after.state, old, table, self.name)

    def __repr__(self) -> str:
        at = f" at {self.at}" if self.at is not None else ""
        return f"<Table {self.name}{at}: {', '.join(column.name for column in self.schema)}>"
