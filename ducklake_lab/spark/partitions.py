"""Partition keys in writes: key columns for Spark, and folder names converted back to the catalog's texts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from ducklake_lab.duckdb.casting import cast_columns, texts
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.files.partitions import Values, partition_keys
from ducklake_lab.model.entries import Table
from ducklake_lab.model.transforms import Bucket, CalendarPart, EpochCount, Identity, Transform
from ducklake_lab.model.transforms.bucket import hashed_form
from ducklake_lab.model.types import DataType
from ducklake_lab.spark.types import from_micros, micros_of
from ducklake_lab.spark.workers import packages
from ducklake_lab.spark.workers.start import begin_task

# Spark reads an empty text in folder names as NULL, so values have a prefix
_VALUE, _NULL = "v", "n"


def key_names(table: Table) -> list[str]:
    """Returns the names of the temporary key columns, one per partition key; [] for a table without keys."""
    return [f"_ducklake_key_{i}" for i in range(len(table.partition.fields))] if table.partition else []


def check_partition(table: Table) -> None:
    """Raises if Spark cannot write rows by the table's partition keys.

    Raises:
        UnsupportedFeatureError: a key is not supported; the error names it.
    """
    for column, transform in partition_keys(table):
        if isinstance(transform, Bucket) and column.type in ("time", "timestamp_ns"):
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by {transform} of {column.name} ({column.data_type.sql()}) "
                "is not supported on Spark."
            )
        if column not in table.columns or column.data_type.is_nested or column.type == "blob":
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by {column.name} ({column.data_type.sql()}) is not supported yet."
            )


def with_keys(frame: DataFrame, table: Table) -> DataFrame:
    """Returns the frame with the key columns added as text; its first columns are the table's."""
    if table.partition is None:
        return frame
    keys = []
    for name, (column, transform) in zip(key_names(table), partition_keys(table), strict=True):
        value = F.col(frame.columns[table.columns.index(column)])
        if isinstance(transform, Bucket):
            packages.check(frame.sparkSession)
        text = F.concat(F.lit(_VALUE), _key(value, transform, column.data_type).cast("string"))
        keys.append(F.when(value.isNull(), F.lit(_NULL)).otherwise(text).alias(name))
    return frame.select("*", *keys)


def _key(value: SparkColumn, transform: Transform, data_type: DataType) -> SparkColumn:
    """Returns the key of values that are not NULL."""
    match transform:
        case Identity() if data_type.name == "timestamptz":
            return F.concat(from_micros(F.unix_micros(value)).cast("string"), F.lit("+00"))
        case Identity():
            return value
        case CalendarPart():
            return F.call_function(transform.name, value)
        case EpochCount():
            return _since_epoch(value, transform.unit, data_type)
        case Bucket():
            return _bucket(value, transform, data_type)
    raise UnsupportedFeatureError(f"Writing rows by the partition transform {transform} is not supported on Spark.")


def _since_epoch(value: SparkColumn, unit: str, data_type: DataType) -> SparkColumn:
    if data_type.name == "date":
        day = value
    else:
        value = from_micros(F.unix_micros(value)) if data_type.name == "timestamptz" else value
        day = value.cast("date")
    if unit == "hour":
        return F.unix_date(day).cast("bigint") * F.lit(24) + F.hour(value)
    if unit == "day":
        return F.unix_date(day)
    years = F.year(day) - F.lit(1970)
    return years if unit == "year" else years * F.lit(12) + F.month(day) - F.lit(1)


def _bucket(value: SparkColumn, transform: Bucket, data_type: DataType) -> SparkColumn:
    """Returns the bucket from a Python function: Spark's own hash has another seed."""
    form = hashed_form(data_type)
    match form:
        case "double":
            hashed = value.cast("double")
        case "unscaled" if data_type.decimal is not None:
            scale = data_type.decimal[1]
            hashed = (value.cast(f"decimal(38,{scale})") * F.lit(10**scale)).cast("bigint")
        case "days":
            hashed = F.unix_date(value).cast("bigint")
        case "seconds" | "millis" | "micros":
            micros = F.unix_micros(value) if data_type.name == "timestamptz" else micros_of(value)
            size = F.lit({"seconds": 1_000_000, "millis": 1000}.get(form, 1))
            hashed = F.call_function("div", micros - F.pmod(micros, size), size)
        case "long":
            hashed = value.cast("int").cast("bigint") if data_type.name == "boolean" else value.cast("bigint")
        case _:
            hashed = value.cast("string")
    # pandas would convert integers with NULLs to floats
    filled = F.coalesce(hashed, F.lit("") if form == "text" else F.lit(0))

    @pandas_udf("string")  # type: ignore[call-overload, untyped-decorator]
    def of(values: pd.Series) -> pd.Series:
        begin_task()
        return pd.Series(transform.keys(pa.chunked_array([pa.Array.from_pandas(values)])))

    result: SparkColumn = of(filled)
    return result


def values_of(keys: DataFrame, table: Table) -> list[Values]:
    """Returns the catalog's texts of partition keys; a frame has the key columns alone."""
    return decode_keys(table, [tuple(row) for row in keys.collect()])


def decode_keys(table: Table, keys: Sequence[Sequence[str]]) -> list[Values]:
    """Returns the catalog's texts for the key texts of some files, in DuckDB's form."""
    if table.partition is None:
        return [() for _ in keys]
    columns = []
    for i, (column, transform) in enumerate(partition_keys(table)):
        values = [None if key[i] == _NULL else key[i].removeprefix(_VALUE) for key in keys]
        is_value = isinstance(transform, Identity)
        columns.append(_as_duckdb_writes(values, column.data_type) if is_value else values)
    return list(zip(*columns, strict=True))


def _as_duckdb_writes(values: list[str | None], data_type: DataType) -> list[str | None]:
    column = pa.table({"v": pa.array(values, pa.string())})
    types = {"v": data_type}
    return [row[0] for row in texts(cast_columns(column, types), types)]


def keys_of_path(path: str, names: Sequence[str]) -> tuple[str, ...]:
    """Returns the key texts from the folders of a file."""
    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return tuple(unquote(folders[name]) for name in names)
