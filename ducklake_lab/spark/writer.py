"""Writes a DataFrame to Parquet data files with field ids and statistics, ready for a commit.

The schema chooses between two writers. Spark's own Parquet writer is faster. It has no unsigned
integers, UUIDs, milliseconds and nanoseconds, intervals or shredded variants, and gives the parts of lists and maps no
field ids: DuckDB in Python workers writes tables with any of those (see arrow_writer), encrypted files, and
files with sizes set by the lake. It also writes all in object stores, where a move is a copy: Spark's writer moves
each file, and checks all folders on the path, with a dozen requests per file. Both write into a temporary folder below
the table's, so that a failure leaves no file in the table's. Then files are renamed, or stay in place in object stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.file_paths import is_local, join
from ducklake_lab.files.constraints import check_statistics
from ducklake_lab.files.options import WriteOptions
from ducklake_lab.files.partitions import hive_folder
from ducklake_lab.model.entries import ROW_ID_COLUMN, ROW_ID_FIELD, Column, Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.parallel import in_parallel
from ducklake_lab.spark import arrow_writer
from ducklake_lab.spark.frames import of_session
from ducklake_lab.spark.objects import reach
from ducklake_lab.spark.partitions import (
    check_partition,
    decode_keys,
    key_names,
    keys_of_path,
    with_keys,
)
from ducklake_lab.spark.statistics import column_statistics, leaf_columns, read_footer
from ducklake_lab.spark.types import FIELD_ID, spark_type, stored_field, to_stored
from ducklake_lab.storage import Storage


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A file from a task of Spark's writer, with the key texts of its partition."""

    path: str
    keys: tuple[str, ...] = ()


_storage = Storage()
#: Column with the position of a row, during a shuffle.
_ORDER = "_ducklake_order"


def write(
    spark: SparkSession,
    df: DataFrame,
    table: Table,
    folder: str,
    *,
    options: WriteOptions | None = None,
    ordered: bool = False,
    compact: bool = False,
) -> list[WrittenFile]:
    """Writes rows as data files of a table. Runs the query; creates no snapshot.

    Args:
        df: the table's columns in order, cast to their types here; then `_ducklake_internal_row_id`
            if the rows keep their ids.
        folder: the table's folder, an absolute path or URL.
        options: codec, sizes and names of the files.
        ordered: the rows are in an order that each file keeps.
        compact: shuffles the rows into few files; for results that are spread over many tasks. Tables with
            partition keys are always shuffled, by their keys.

    Returns:
        One entry per file; none without rows. Paths are relative to `folder`.

    Raises:
        UnsupportedFeatureError: a column or a partition key cannot be written; nothing has run.
        ConstraintError: a NOT NULL column has a NULL; the written files are removed.
    """
    options = options or WriteOptions()
    check_partition(table)
    for column in table.columns:
        spark_type(column.data_type)
    keeps_ids = len(df.columns) > len(table.columns)
    frame = with_keys(_cast(of_session(spark, df), table, keeps_ids), table)
    names = key_names(table)
    if names:
        order = [_ORDER] if ordered else []
        frame = frame.withColumn(_ORDER, F.monotonically_increasing_id()) if ordered else frame
        frame = frame.hint("rebalance", *names).sortWithinPartitions(*names, *order).drop(*order)
    elif compact or (options.per_thread_output is False and not ordered):
        frame = frame.hint("rebalance")
    temporary = join(folder, f"ducklake-{new_uuid()}")
    reach(spark, [temporary])
    try:
        if not is_local(folder) or arrow_writer.is_needed(table, options):
            written = arrow_writer.write(frame, table, temporary, names, keeps_ids, options)
            check_statistics(table, [file.column_stats for _, file in written])
            values = decode_keys(table, [keys for keys, _ in written])
            files = [replace(file, partition_values=value) for (_, file), value in zip(written, values, strict=True)]
        else:
            parts = _write_native(frame, table, temporary, names, keeps_ids, options)
            files = _describe(parts, table, temporary, keeps_ids)
    except BaseException:
        _storage.discard_folder(temporary)
        raise
    return _publish(files, table, folder, temporary, hive=options.hive_file_pattern)


def _cast(df: DataFrame, table: Table, keeps_ids: bool) -> DataFrame:
    """Returns the columns by position, under unique names, with the types to write."""
    columns: list[Column] = list(table.columns)
    unique = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    if not keeps_ids and [field.dataType for field in unique.schema] == [spark_type(c.data_type) for c in columns]:
        return unique
    values = []
    for i, column in enumerate(columns):
        value = F.col(f"c{i}")
        wanted = spark_type(column.data_type)
        given = unique.schema[i].dataType
        if isinstance(wanted, T.VariantType) and isinstance(given, T.StructType | T.ArrayType | T.MapType):
            value = F.to_variant_object(value)
        elif given != wanted:
            value = value.cast(wanted)
        values.append(value.alias(f"c{i}"))
    if keeps_ids:
        values.append(F.col(f"c{len(columns)}").cast("bigint").alias(ROW_ID_COLUMN))
    return unique.select(*values)


def _write_native(
    frame: DataFrame, table: Table, temporary: str, keys: Sequence[str], keeps_ids: bool, options: WriteOptions
) -> list[WrittenPart]:
    outputs = []
    for i, column in enumerate(table.columns):
        field = stored_field(column, column.name)
        value = to_stored(F.col(f"c{i}"), column.data_type)
        if field.dataType != spark_type(column.data_type):
            value = value.cast(field.dataType)  # the cast also gives the fields of structs their ids
        outputs.append(value.alias(column.name, metadata=field.metadata))
    if keeps_ids:
        outputs.append(F.col(ROW_ID_COLUMN).alias(ROW_ID_COLUMN, metadata={FIELD_ID: ROW_ID_FIELD}))
    writer = (
        frame.select(*outputs, *keys)
        .write.option("compression", options.compression)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    )
    for name, setting in _parquet_options(options).items():
        writer = writer.option(name, setting)
    (writer.partitionBy(*keys) if keys else writer).parquet(temporary)
    files = [path for path in _storage.list_files(temporary) if path.endswith(".parquet")]
    return [WrittenPart(path, keys_of_path(path[len(temporary) :], keys)) for path in files]


def _describe(parts: Sequence[WrittenPart], table: Table, temporary: str, keeps_ids: bool) -> list[WrittenFile]:
    """Returns the files that have rows; paths are relative to the temporary folder."""
    leaves = leaf_columns(table.columns)
    types = [leaf.data_type for leaf in leaves]
    footers = in_parallel(parts, lambda part: read_footer(part.path, _storage, types))
    statistics = column_statistics(leaves, footers)
    check_statistics(table, statistics)
    values = decode_keys(table, [part.keys for part in parts])
    return [
        WrittenFile(
            path=part.path[len(temporary) + 1 :],
            record_count=footer.record_count,
            file_size_bytes=footer.file_size_bytes,
            footer_size=footer.footer_size,
            column_stats=stats,
            partition_values=value,
            has_row_ids=keeps_ids,
            row_group_count=len(footer.row_groups),
        )
        for part, value, footer, stats in zip(parts, values, footers, statistics, strict=True)
        if footer.record_count
    ]


def _parquet_options(options: WriteOptions) -> dict[str, str]:
    """Returns options for Parquet's own writer; it limits a row group by bytes, not by rows."""
    settings: dict[str, object] = {
        "parquet.block.size": options.row_group_size_bytes,
        "parquet.writer.version": options.version,
        "parquet.compression.codec.zstd.level": options.compression_level if options.compression == "zstd" else None,
    }
    return {name: str(value) for name, value in settings.items() if value is not None}


def _publish(
    files: Sequence[WrittenFile], table: Table, folder: str, temporary: str, *, hive: bool
) -> list[WrittenFile]:
    """Renames the files where that is cheap, and cleans up; returns the files with paths below `folder`."""
    published: list[WrittenFile] = []
    try:
        for file in files:
            subfolder = hive_folder(table, file.partition_values) if hive else ""
            path = f"{subfolder}ducklake-{new_uuid()}.parquet"
            if is_local(folder):
                published.append(replace(file, path=path))
                _storage.move(join(temporary, file.path), join(folder, path))
            else:
                published.append(replace(file, path=f"{temporary.rpartition('/')[2]}/{file.path}"))
        if is_local(folder):
            _storage.delete_folder(temporary)
        else:
            kept = {join(folder, file.path) for file in published}
            _storage.discard(path for path in _storage.list_files(temporary) if path not in kept)
    except BaseException:
        _storage.discard(join(folder, file.path) for file in published)
        _storage.discard_folder(temporary)
        raise
    return published
