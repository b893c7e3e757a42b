"""Partition keys while writing: key columns for Spark, and back from folder names to the catalog's texts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from ducklake_lab.catalog.casting import cast_columns, texts
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.files.partitions import (
    TRANSFORMS,
    Values,
    bucket_count,
    buckets_of,
    is_hashed_as_integer,
    partition_column,
)
from ducklake_lab.model.entries import Table
from ducklake_lab.model.types import FLOATS, TIMESTAMPS, DataType
from ducklake_lab.spark import workers
from ducklake_lab.spark.types import from_micros, micros_of

# Spark takes an empty text for NULL in folder names, so a value is marked as one
_VALUE, _NULL = "v", "n"


def key_names(table: Table) -> list[str]:
    """The names of the temporary key columns, one per partition key; [] for a table without keys."""
    return [f"_ducklake_key_{i}" for i in range(len(table.partition.fields))] if table.partition else []


def check_partition(table: Table) -> None:
    """Raises what keeps rows from being written by the table's partition keys.

    Raises:
        UnsupportedFeatureError: names the key.
    """
    for field in table.partition.fields if table.partition else ():
        column = partition_column(table, field)
        name = column.name
        is_bucket = bucket_count(field.transform) is not None
        if is_bucket and column.type in ("time", "timestamp_ns"):
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by {field.transform} of {name} ({column.data_type.sql()}) "
                "is not supported on Spark."
            )
        if field.transform != "identity" and not is_bucket and field.transform not in TRANSFORMS:
            raise UnsupportedFeatureError(f"The partition transform {field.transform} of {name} is not supported.")
        if column not in table.columns or column.data_type.is_nested or column.type == "blob":
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by {name} ({column.data_type.sql()}) is not supported yet."
            )


def with_keys(frame: DataFrame, table: Table) -> DataFrame:
    """The frame, whose columns start with the table's, with the key columns added as text."""
    if table.partition is None:
        return frame
    keys = []
    for name, field in zip(key_names(table), table.partition.fields, strict=True):
        index = next(i for i, column in enumerate(table.columns) if column.column_id == field.column_id)
        value = F.col(frame.columns[index])
        buckets = bucket_count(field.transform)
        part = value
        if buckets is not None:
            workers.check(frame.sparkSession)
            part = _bucket(value, table.columns[index].data_type, buckets)
        elif field.transform != "identity":
            part = F.call_function(field.transform, value)
        if field.transform == "identity" and table.columns[index].type == "timestamptz":
            part = F.concat(from_micros(F.unix_micros(value)).cast("string"), F.lit("+00"))
        text = F.concat(F.lit(_VALUE), part.cast("string"))
        keys.append(F.when(value.isNull(), F.lit(_NULL)).otherwise(text).alias(name))
    return frame.select("*", *keys)


def _bucket(value: SparkColumn, data_type: DataType, buckets: int) -> SparkColumn:
    """The bucket of values that are not NULL, by a function in Python: Spark's own hash has another seed."""
    name = data_type.name
    if name in FLOATS:
        hashed = value.cast("double")
    elif not is_hashed_as_integer(data_type):
        hashed = value.cast("string")
    elif data_type.decimal is not None:
        hashed = (value.cast(f"decimal(38,{data_type.decimal[1]})") * F.lit(10 ** data_type.decimal[1])).cast("bigint")
    elif name == "date":
        hashed = F.unix_date(value).cast("bigint")
    elif name in TIMESTAMPS:
        micros = F.unix_micros(value) if name == "timestamptz" else micros_of(value)
        size = F.lit({"timestamp_s": 1_000_000, "timestamp_ms": 1000}.get(name, 1))
        hashed = F.call_function("div", micros - F.pmod(micros, size), size)
    else:
        hashed = value.cast("int").cast("bigint") if name == "boolean" else value.cast("bigint")
    # pandas would make floats of integers with NULLs among them
    filled = hashed if hashed is value else F.coalesce(hashed, F.lit("") if _is_text(data_type) else F.lit(0))

    @pandas_udf("string")  # type: ignore[call-overload, untyped-decorator]
    def of(values: pd.Series) -> pd.Series:
        return pd.Series(buckets_of(pa.chunked_array([pa.Array.from_pandas(values)]), buckets))

    result: SparkColumn = of(filled)
    return result


def _is_text(data_type: DataType) -> bool:
    return data_type.name not in FLOATS and not is_hashed_as_integer(data_type)


def decode_keys(table: Table, keys: Sequence[Sequence[str]]) -> list[Values]:
    """The catalog's texts for the key texts of some files: as DuckDB writes the values."""
    if table.partition is None:
        return [() for _ in keys]
    columns = []
    for i, field in enumerate(table.partition.fields):
        values = [None if key[i] == _NULL else key[i].removeprefix(_VALUE) for key in keys]
        data_type = partition_column(table, field).data_type
        columns.append(values if field.transform != "identity" else _as_duckdb_writes(values, data_type))
    return list(zip(*columns, strict=True))


def _as_duckdb_writes(values: list[str | None], data_type: DataType) -> list[str | None]:
    column = pa.table({"v": pa.array(values, pa.string())})
    types = {"v": data_type}
    return [row[0] for row in texts(cast_columns(column, types), types)]


def keys_of_path(path: str, names: Sequence[str]) -> tuple[str, ...]:
    """The key texts in the folders that Spark made for a file."""
    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return tuple(unquote(folders[name]) for name in names)
