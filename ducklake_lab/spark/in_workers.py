"""Data files that Spark's own reader does not take, read by DuckDB in Spark's Python workers.

These are encrypted files, and files added from outside with types that Spark does not widen. A task reads one file, or
a few, and hands its rows to Spark as they come. Keys travel in the function that the tasks run, not in rows, so that no
plan shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ducklake_lab.files.reader import stream_file
from ducklake_lab.model.entries import Column
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import Positions
from ducklake_lab.spark.frames import arrow_for_spark
from ducklake_lab.spark.types import spark_type

_MAX_TASKS = 1000


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
    shown = [replace(file, snapshot_id=snapshots.get(file.path, file.snapshot_id)) for file in files]
    pieces = [(file, positions.get(file.path)) for file in shown]
    numbers = spark.range(0, len(pieces), 1, min(len(pieces), _MAX_TASKS))
    return numbers.mapInArrow(_task(tuple(columns), pieces, virtual, keep_deleted), T.StructType(fields))


def _task(
    columns: tuple[Column, ...],
    pieces: Sequence[tuple[ScanFile, Positions | None]],
    virtual: bool,
    keep_deleted: bool,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            file, positions = pieces[number]
            for rows in stream_file(columns, file, positions, virtual, keep_deleted):
                yield from arrow_for_spark(rows).to_batches()

    return run
