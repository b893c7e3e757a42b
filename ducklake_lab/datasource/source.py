"""The data source that Spark knows as `ducklake`."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping

from pyspark.sql import datasource as ds
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ducklake_lab.datasource.change_feed import FeedReader, schema_of_feed
from ducklake_lab.datasource.options import Target, chosen_columns
from ducklake_lab.datasource.reader import EntryReader
from ducklake_lab.datasource.stream import FeedStreamReader, TableStreamReader
from ducklake_lab.datasource.writer import TableWriter
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.spark.types import table_schema

#: The part of PySpark that a worker runs in which Spark hands on filters.
_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"


def _hands_on_filters() -> bool:
    """Whether Spark asks for a reader to give it filters; it refuses such a reader elsewhere where its setting is off."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN in sys.modules or getattr(main, "name", None) == _PUSHDOWN


class DuckLakeDataSource(DataSource):
    """A table of a lake. A write makes the table where it is not there.

    `.schema(…)` chooses columns by name; it cannot change their types. Case does not matter in names of options.

    Options:
        path or uri: the lake, e.g. `ducklake:flights.ducklake`; the argument of `load`.
        table: `table` or `schema.table`.
        data_path: where the data is, for a lake that does not say.
        columns: names of the columns to read, with commas between them.
        version or versionAsOf: read as of this snapshot id or tag.
        timestamp or timestampAsOf: read as of this time (ISO 8601, with its offset).
        filter_pushdown: `false` reads files that the query's filters would skip. They do where
            `spark.sql.python.filterPushdown.enabled` is set; PySpark 4.1.
        readChangeFeed: `true` reads the rows that snapshots changed: `snapshot_id`, `rowid`, `change_type` (insert, delete,
            update_preimage, update_postimage), then the columns of the last snapshot. One task pairs the updates.
        starting_version or startingVersion, startingTimestamp: the first snapshot of a change feed, or the first that a
            stream reads: an id, a tag, or `latest` for the one after the newest. A stream begins with the table as it
            is by default.
        endingVersion, endingTimestamp: the last snapshot of a change feed, inclusive; the newest by default.
        maxFilesPerTrigger, maxBytesPerTrigger, maxRowsPerTrigger: limits of a stream's batch, from PySpark 4.2 on. Files
            are read whole, and so are the snapshots of a change feed.
        ignoreDeletes, ignoreChanges, skipChangeCommits: what a stream does with snapshots that delete rows, which stop it
            by default: pass over those that only delete, read the new versions of updated rows, or leave such
            snapshots out.
        stream_id: only to continue a stream that had this option under an earlier release. A stream is known by the
            id that Spark keeps in its checkpoint, so that no batch is committed twice.
        partitionOverwriteMode: `static` replaces all rows, `dynamic` those of the partitions that receive rows; by
            default, Spark's setting.
        author, message, userMetadata: for the snapshot that a write becomes.
        txnAppId, txnVersion: a write with a version that is not above the application's last one changes nothing.
        maxRecordsPerFile, compression: of the written files.
        mergeSchema: `true` adds columns that only the rows have, widens types, and fills columns that the rows lack.
        overwriteSchema: `true` lets an overwrite replace the table's columns and partition keys.
        replaceWhere: an overwrite replaces the rows for which this condition in Spark SQL is true.
        partitionBy: the partition keys of a table that the write makes, such as `day, bucket(16, id)`.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._target = Target.of(dict(options.items()))

    @classmethod
    def name(cls) -> str:
        """The name to give to `format`."""
        return "ducklake"

    def schema(self) -> StructType:
        """The table's columns at the snapshot that is read."""
        target = self._target
        if target.change_feed:
            return schema_of_feed(target)
        with target.open() as lake, lake.connect() as connection:
            state = lake.state(connection, lake.snapshot(connection, target.at))
            columns = state.table(target.schema, target.table).columns
            if target.columns is not None:
                columns = chosen_columns(columns, target.columns, target.table)
            return table_schema(columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        if self._target.change_feed:
            return FeedReader(self._target, schema)
        if self._target.filter_pushdown and _hands_on_filters():
            from ducklake_lab.datasource.filtering import FilteringReader

            return FilteringReader(self._target, schema)
        return EntryReader(self._target, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A read of the rows that each snapshot inserts, or of all that it changes."""
        if self._target.change_feed:
            return FeedStreamReader(self._target, schema)
        return TableStreamReader(self._target, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A write of one snapshot; `overwrite` deletes the table's rows in it."""
        return TableWriter(self._target, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """A write of one snapshot for each micro-batch; in output mode `complete` each replaces all rows.

        Raises:
            UnsupportedFeatureError: PySpark is older than 4.1.
        """
        if not hasattr(ds, "DataSourceStreamArrowWriter"):
            raise UnsupportedFeatureError(
                'Streams are written to format("ducklake") from PySpark 4.1 on; '
                "write each batch by session.write in foreachBatch, or update pyspark."
            )
        from ducklake_lab.datasource.stream_writer import TableStreamWriter

        return TableStreamWriter(self._target, schema, overwrite)
