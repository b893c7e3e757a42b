"""Writes data files with DuckDB in Spark's Python workers: exact Parquet types and field ids, at 1.3 times the cost.

Each task writes files with unique names and reports them with their partition keys and statistics. No folder is
listed, so files of a repeated task are not mistaken for data.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ducklake_lab.duckdb import variants
from ducklake_lab.duckdb.casting import through, typed_sql
from ducklake_lab.files.constraints import uncounted
from ducklake_lab.files.options import DEFAULT_TARGET_FILE_SIZE, WriteOptions
from ducklake_lab.files.writer import Writer
from ducklake_lab.model.entries import ROW_ID_COLUMN, Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.model.types import DataType
from ducklake_lab.object_access import granted
from ducklake_lab.spark.errors import marking
from ducklake_lab.spark.workers import packages
from ducklake_lab.spark.workers.start import begin_task
from ducklake_lab.storage import Storage

#: Types that Spark's own writer stores as the format requires; the parts of lists and maps would have no field ids.
_BY_SPARK = frozenset(
    (
        "boolean",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_s",
        "varchar",
        "json",
        "blob",
        "null",
        "struct",
    )
)


def is_needed(table: Table, options: WriteOptions) -> bool:
    """Whether Spark's own writer cannot write the table's columns or the options as required.

    Spark's writer has no maximum file size and no row count for row groups, and sets the level of only one codec.
    None of its files shows whether a struct is NULL.
    """
    levels = options.compression_level is not None and options.compression != "zstd"
    sizes = options.row_group_size is not None or options.target_file_size < DEFAULT_TARGET_FILE_SIZE
    types = (column.data_type for column in table.all_columns())
    others = any(kind.name not in _BY_SPARK and kind.decimal is None for kind in types)
    return options.encrypted or sizes or levels or others or bool(uncounted(table))


def from_spark_sql(expression: str, data_type: DataType) -> str:
    """Returns DuckDB's SQL of a value in its type, from the form in Spark's Python workers."""
    if data_type.name == "variant":
        joined = f"{expression}.metadata || {expression}.value"
        return f"CASE WHEN {expression} IS NOT NULL THEN {variants.from_bytes_sql(joined)} END"
    if data_type.name == "timestamp_s":
        return f"CAST(date_trunc('second', CAST({expression} AS TIMESTAMP)) AS TIMESTAMP_S)"
    if data_type.is_nested:
        return through(expression, data_type, from_spark_sql)
    return typed_sql(expression, data_type)


def write(
    frame: DataFrame, table: Table, folder: str, keys: Sequence[str], keeps_ids: bool, options: WriteOptions
) -> list[tuple[tuple[str, ...], WrittenFile]]:
    """Writes the rows below a folder.

    Args:
        frame: columns `c0`, `c1`, … of the table, the row ids if they are kept, then the key texts. The rows
            of each task are sorted by the key texts.

    Returns:
        One entry per file, with the texts of its keys; paths are relative to the folder.
    """
    packages.check(frame.sparkSession)
    ids = [F.col(ROW_ID_COLUMN).alias(f"c{len(table.columns)}")] if keeps_ids else []
    prepared = frame.select(*(f"c{i}" for i in range(len(table.columns))), *ids, *keys)
    task = _task(table, folder, len(keys), keeps_ids, options)
    rows = prepared.mapInArrow(task, "keys array<string>, file binary").toArrow().to_pylist()
    return [(tuple(row["keys"]), pickle.loads(row["file"])) for row in rows]


def _task(
    table: Table, folder: str, key_count: int, keeps_ids: bool, options: WriteOptions
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    accesses = granted()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(accesses)
        storage = Storage()
        written: list[tuple[list[str], WrittenFile]] = []
        with (
            marking(),
            Writer(table, options, keeps_ids, convert=from_spark_sql, is_new=True) as writer,
        ):
            runs = (run for batch in batches for run in _runs(batch, key_count))
            for keys, group in groupby(runs, key=lambda item: item[0]):
                files = writer.write_split(_reader(rows for _, rows in group), folder, storage)
                written += [(keys, file) for file in files]
        yield pa.record_batch(
            [
                pa.array([keys for keys, _ in written], pa.list_(pa.string())),
                pa.array([pickle.dumps(file) for _, file in written], pa.binary()),
            ],
            names=["keys", "file"],
        )

    return run


def _reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    first = next(batches)

    def all_batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    return pa.RecordBatchReader.from_batches(first.schema, all_batches())


def _runs(rows: pa.RecordBatch, key_count: int) -> Iterator[tuple[list[str], pa.RecordBatch]]:
    """Yields the rows, sorted by their last columns, in batches with equal keys."""
    if not rows.num_rows:
        return
    data = rows.select(range(rows.num_columns - key_count))
    if not key_count:
        yield [], data
        return
    keys = list(
        zip(*(rows.column(rows.num_columns - key_count + i).to_pylist() for i in range(key_count)), strict=True)
    )
    start = 0
    for end in range(1, len(keys) + 1):
        if end == len(keys) or keys[end] != keys[start]:
            yield list(keys[start]), data.slice(start, end - start)
            start = end
