"""Data files read by DuckDB in Spark's Python workers: what Spark's own reader does not take, or takes longer for.

The former are encrypted files, and files added from outside with types that Spark does not widen. The latter are rows
that a statement changes: Spark's reader makes all columns of all rows, where DuckDB's makes those of the rows that match.
A task reads one file, or a part of it, and hands the rows to Spark as they come. Keys travel in the function that the
tasks run, not in rows, so that no plan shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.files.reader import RowQuery, stream_file, stream_query
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.object_access import adopt, granted
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.positions import Positions, check_files, deleted_positions, distinct_paths
from ducklake_lab.spark.errors import marked
from ducklake_lab.spark.frames import arrow_for_spark
from ducklake_lab.spark.types import spark_type
from ducklake_lab.storage import Storage

_MAX_TASKS = 1000
#: Bytes of a file that one task reads, about: as many as one of Spark's own reader.
_TASK_BYTES = 128 << 20

_storage = Storage()


def scan(
    spark: SparkSession,
    columns: Sequence[Column],
    files: Sequence[ScanFile],
    virtual: bool,
    positions: Mapping[str, Positions],
    keep_deleted: bool,
    snapshots: Mapping[str, int],
) -> DataFrame:
    """The rows of such files; the arguments are those of `reader._scans`."""
    fields = [T.StructField(column.name, spark_type(column.data_type)) for column in columns]
    fields += [T.StructField(name, T.LongType()) for name in VIRTUAL_COLUMNS] if virtual else []
    columns = tuple(columns)
    pieces = [
        partial(
            stream_file,
            columns,
            replace(file, snapshot_id=snapshots.get(file.path, file.snapshot_id)),
            positions.get(file.path),
            virtual,
            keep_deleted,
        )
        for file in files
    ]
    return _in_tasks(spark, pieces, T.StructType(fields))


def select(spark: SparkSession, plan: ScanPlan, query: RowQuery) -> DataFrame:
    """The result of a query over the rows of a plan's files; inlined rows are left out.

    Raises:
        UnsupportedFeatureError: a column's type, or a feature of a file, is not supported.
        DataFileError: a delete file is missing.
    """
    fields = [T.StructField(name, spark_type(kind)) for name, kind in query.columns]
    check_files(plan.files)
    pieces = []
    for files in distinct_paths(plan.files):
        positions = deleted_positions(files, _storage)
        pieces += [
            partial(stream_query, query, plan.columns, file, positions.get(file.path), rows)
            for file in files
            for rows in _row_ranges(file)
        ]
    return _in_tasks(spark, pieces, T.StructType(fields))


def _row_ranges(file: ScanFile) -> Iterator[tuple[int, int | None]]:
    """The position of the first row of each task, and that after its last one; None where it reads to the end."""
    count = file.data_file.record_count
    tasks = max(1, file.data_file.file_size_bytes // _TASK_BYTES)
    starts = [count * i // tasks for i in range(tasks)]
    yield from zip(starts, [*starts[1:], None], strict=True)


def _in_tasks(
    spark: SparkSession, pieces: Sequence[Callable[[], Iterator[pa.Table]]], schema: T.StructType
) -> DataFrame:
    numbers = spark.range(0, len(pieces), 1, min(len(pieces), _MAX_TASKS))
    return numbers.mapInArrow(_task(pieces), schema)


def _task(
    pieces: Sequence[Callable[[], Iterator[pa.Table]]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    accesses = granted()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        adopt(accesses)
        try:
            for number in (n for batch in batches for n in batch.column(0).to_pylist()):
                for rows in pieces[number]():
                    yield from arrow_for_spark(rows).to_batches()
        except DuckLakeError as error:
            raise marked(error) from None

    return run
