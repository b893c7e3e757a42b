"""Reads data files with DuckDB in Spark's Python workers, if Spark's own reader cannot, or would be slower.

Spark cannot read encrypted files, nor added files with types that it does not widen. It is slower for rows
that a statement changes: few match, and DuckDB reads all columns of them in a fraction of Spark's time.
A task reads several files, one, or a part of one, and streams the rows to Spark. Encryption keys are part of the
tasks' function, not of rows, so that no plan shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ducklake_lab.files.reader import RowQuery, stream_file, stream_query
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.object_access import granted
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.positions import check_files, deleted_positions, distinct_paths
from ducklake_lab.spark.errors import marking
from ducklake_lab.spark.frames import arrow_for_spark
from ducklake_lab.spark.types import spark_type
from ducklake_lab.spark.workers import packages
from ducklake_lab.spark.workers.start import begin_task
from ducklake_lab.storage import Storage

_MAX_TASKS = 1000
#: Approximate bytes of a file that one task reads. Two tasks both read the row group at their boundary.
_TASK_BYTES = 512 << 20
#: Bytes of small files that one task reads; a task's start takes about as long as this read.
_SMALL_BYTES = 16 << 20

#: Reads some rows, in tables.
Piece = Callable[[], Iterator[pa.Table]]
#: Makes batches for Spark of rows.
Packing = Callable[[pa.Table], Iterator[pa.RecordBatch]]

_storage = Storage()


def scan(
    spark: SparkSession,
    plan: ScanPlan,
    files: Sequence[ScanFile],
    virtual: bool,
    positions: Mapping[str, Positions],
    keep_deleted: bool,
    snapshots: Mapping[str, int],
) -> DataFrame:
    """Returns the rows of such files; the arguments are those of `reader.scans`."""
    columns = plan.columns
    fields = [T.StructField(column.name, spark_type(column.data_type)) for column in columns]
    fields += [T.StructField(name, T.LongType()) for name in VIRTUAL_COLUMNS] if virtual else []
    pieces = [
        partial(
            stream_file,
            columns,
            replace(file, snapshot_id=snapshots.get(file.path, file.snapshot_id)),
            positions.get(file.path),
            virtual,
            keep_deleted,
            plan.time_zone,
        )
        for file in files
    ]
    return in_tasks(spark, pieces, T.StructType(fields), _plain)


def pieces_of(plan: ScanPlan, query: RowQuery) -> list[Piece]:
    """Returns the pieces of a query over the rows of a plan's files, without inlined rows; each is for one task.

    Raises:
        UnsupportedFeatureError: a feature of a file is not supported.
        DataFileError: a delete file is missing.
    """
    check_files(plan.files)
    pieces: list[Piece] = []
    for files in distinct_paths(plan.files):
        positions = deleted_positions(files, _storage)
        for group, rows in _shares(files):
            deleted = {file.path: _within(positions[file.path], rows) for file in group if file.path in positions}
            pieces.append(partial(stream_query, query, plan.columns, group, deleted, rows))
    return pieces


def _shares(files: Sequence[ScanFile]) -> Iterator[tuple[list[ScanFile], tuple[int, int | None]]]:
    """Yields the share of each task: some whole small files, or some rows of a large one, see `stream_query`."""
    small: list[ScanFile] = []
    for file in files:
        parts = file.data_file.file_size_bytes // _TASK_BYTES
        starts = [file.data_file.record_count * i // parts for i in range(parts)]
        for start, end in zip(starts, [*starts[1:], None], strict=False):
            yield [file], (start, end)
        if parts:
            continue
        if sum(other.data_file.file_size_bytes for other in (*small, file)) > _SMALL_BYTES and small:
            yield small, (0, None)
            small = []
        small.append(file)
    if small:
        yield small, (0, None)


def _within(positions: Positions, rows: tuple[int, int | None]) -> Positions:
    first, end = rows
    last = len(positions) if end is None else np.searchsorted(positions, end)
    return positions[np.searchsorted(positions, first) : last]


def in_tasks(
    spark: SparkSession, pieces: Sequence[Piece], schema: T.StructType | str, packing: Callable[[], Packing]
) -> DataFrame:
    """Returns the rows of pieces.

    Args:
        packing: returns, for each task, the function that makes batches of the schema from rows.
    """
    packages.check(spark)
    numbers = spark.range(0, len(pieces), 1, min(len(pieces), _MAX_TASKS))
    return numbers.mapInArrow(_task(pieces, packing), schema)


def _plain() -> Packing:
    return lambda rows: iter(arrow_for_spark(rows).to_batches())


def _task(
    pieces: Sequence[Piece], packing: Callable[[], Packing]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    accesses = granted()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(accesses)
        batches_of = packing()
        with marking():
            for number in (n for batch in batches for n in batch.column(0).to_pylist()):
                for rows in pieces[number]():
                    yield from batches_of(rows)

    return run
