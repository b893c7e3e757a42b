"""Rows that Spark's Python workers find in data files, kept by Spark as Arrow bytes until it is known how many they are.

The bytes keep the types of the lake, and Spark converts none of them. Few rows come back with the first job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.files.reader import RowQuery
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.spark import duckdb_reads
from ducklake_lab.spark.frames import arrow_for_spark
from ducklake_lab.spark.types import spark_type
from ducklake_lab.spark.workers.start import begin_task

#: Most bytes of rows in one value.
_PART_BYTES = 8 << 20
_SCHEMA = "rows bigint, size bigint, is_near boolean, data binary"


@dataclass(frozen=True, eq=False)
class FoundRows:
    """Rows that a query finds in the files of a plan.

    Attributes:
        parts: one row for some found rows: their number, their bytes, and the rows.
        columns: names and types of the found rows.
        most: most bytes of rows that are fetched.
    """

    parts: DataFrame
    columns: tuple[tuple[str, T.DataType], ...]
    schema: pa.Schema
    most: int

    @cached_property
    def _first(self) -> pa.Table:
        near = F.when(F.col("is_near"), F.col("data")).alias("data")
        return self.parts.select("rows", "size", near).toArrow()

    @property
    def count(self) -> int:
        """The number of found rows; computes them."""
        return sum(self._first.column("rows").to_pylist())

    def fetched(self) -> pa.Table | None:
        """Returns all rows; None if they are more than `most` bytes."""
        first = self._first
        if sum(first.column("size").to_pylist()) > self.most:
            return None
        if first.column("data").null_count:
            first = self.parts.select("data").toArrow()
        tables = [pa.ipc.open_stream(data.as_buffer()).read_all() for data in first.column("data")]
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def frame(self) -> DataFrame:
        """Returns all rows as a DataFrame, in types that Spark has."""
        schema = T.StructType([T.StructField(name, kind) for name, kind in self.columns])
        return self.parts.select("data").mapInArrow(_unpacked, schema)

    def forget(self) -> None:
        self.parts.unpersist()


def find(spark: SparkSession, plan: ScanPlan, query: RowQuery, most: int) -> FoundRows:
    """Returns the rows that a query finds in a plan's files, without inlined rows; runs nothing yet.

    Args:
        most: as in `FoundRows`.

    Raises:
        UnsupportedFeatureError: a column's type, or a feature of a file, is not supported.
        DataFileError: a delete file is missing.
    """
    columns = tuple((name, spark_type(kind)) for name, kind in query.columns)
    schema = pa.schema([kind.field(name) for name, kind in query.columns])
    pieces = duckdb_reads.pieces_of(plan, query)
    share = most // max(len(pieces), 1)
    parts = duckdb_reads.in_tasks(spark, pieces, _SCHEMA, lambda: _packing(share))
    return FoundRows(parts.persist(), columns, schema, most)


def _packing(share: int) -> Callable[[pa.Table], Iterator[pa.RecordBatch]]:
    """Returns a function that packs the rows of a task.

    Args:
        share: most bytes of a task that come back with the first job.
    """
    sent = 0

    def pack(rows: pa.Table) -> Iterator[pa.RecordBatch]:
        nonlocal sent
        if not rows.num_rows:
            return
        step = -(-rows.num_rows // max(1, -(-rows.nbytes // _PART_BYTES)))
        for start in range(0, rows.num_rows, step):
            part = rows.slice(start, step)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                writer.write_table(part)
            size = max(part.nbytes, 1)
            sent += size
            values = [part.num_rows], [size], [sent <= share], [sink.getvalue().to_pybytes()]
            yield pa.record_batch([pa.array(value) for value in values], names=["rows", "size", "is_near", "data"])

    return pack


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for data in batch.column(0):
            rows = pa.ipc.open_stream(data.as_buffer()).read_all()
            yield from arrow_for_spark(rows).to_batches()
