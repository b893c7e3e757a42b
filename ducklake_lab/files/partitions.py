"""Partition keys of data files: their values as the catalog stores them, and the folders they lie in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.paths import hive_segment
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column, PartitionField, Table
from ducklake_lab.model.identifiers import quote_identifier
from ducklake_lab.model.murmur import bucket, hash_integers, hash_texts
from ducklake_lab.model.types import FLOATS, TIMESTAMPS, DataType

#: Transforms that are functions of DuckDB and of Spark, by the same name.
TRANSFORMS = ("year", "month", "day", "hour")

#: Digits of a decimal that fits into 64 bits.
_LONG_DIGITS = 18

#: The values of one file, one per partition key, as the catalog stores them.
Values = tuple[str | None, ...]


def partition_column(table: Table, field: PartitionField) -> Column:
    """The column of a partition key.

    Raises:
        UnsupportedFeatureError: the table has none such.
    """
    column = table.column_by_id(field.column_id)
    if column is None:
        raise UnsupportedFeatureError(f"Table {table.name} is partitioned by a column it does not have.")
    return column


def hive_folder(table: Table, values: Values) -> str:
    """The folder, ending in `/`, of files with these values; "" for a table without keys."""
    if table.partition is None:
        return ""
    used: set[str] = set()
    segments = []
    for field, value in zip(table.partition.fields, values, strict=True):
        column = partition_column(table, field)
        name = column.name if field.transform == "identity" else field.transform.partition("(")[0]
        if name.casefold() in used:
            name = f"{name}_{column.name}"
        used.add(name.casefold())
        segments.append(hive_segment(name, value) + "/")
    return "".join(segments)


def key_sql(table: Table, time_zone: str) -> list[str]:
    """DuckDB's SQL of the partition keys' texts over the table's columns; for a bucket, of what is hashed.

    Args:
        time_zone: in which the day or hour is that of a time with a zone.

    Raises:
        UnsupportedFeatureError: names a key that is not computed here.
    """
    texts = []
    for field in table.partition.fields if table.partition else ():
        column = partition_column(table, field)
        value = quote_identifier(column.name)
        if column not in table.columns:
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by the nested field {column.name} is not supported."
            )
        if bucket_count(field.transform) is not None:
            texts.append(_hashed_sql(column, value))
            continue
        if field.transform != "identity":
            if field.transform not in TRANSFORMS:
                raise UnsupportedFeatureError(
                    f"The partition transform {field.transform} of {column.name} is not supported."
                )
            if column.type == "timestamptz":
                value = f"timezone('{time_zone}', {value})"
            value = f"{field.transform}({value})"
        texts.append(f"CAST({value} AS VARCHAR)")
    return texts


def bucket_count(transform: str) -> int | None:
    """The N of `bucket(N)`; None for other transforms."""
    match = re.fullmatch(r"bucket\((\d+)\)", transform)
    return int(match[1]) if match else None


def is_hashed_as_integer(data_type: DataType) -> bool:
    """Whether values are hashed as 64-bit integers, as the reference keeps them; else as text or bytes."""
    name = data_type.name
    if data_type.decimal is not None:
        return data_type.decimal[0] <= _LONG_DIGITS
    return name in ("boolean", "int8", "int16", "int32", "int64", "date", "time", *TIMESTAMPS)


def _hashed_sql(column: Column, value: str) -> str:
    """DuckDB's SQL of what is hashed: BIGINT, DOUBLE, BLOB or VARCHAR."""
    kind = column.data_type
    name = kind.name
    if name in FLOATS:
        return f"CAST({value} AS DOUBLE)"
    if name == "blob":
        return value
    if not is_hashed_as_integer(kind):
        return f"CAST({value} AS VARCHAR)"
    if kind.decimal is not None:
        return f"CAST(CAST({value} AS DECIMAL(38,{kind.decimal[1]})) * {10 ** kind.decimal[1]} AS BIGINT)"
    if name == "date":
        return f"CAST({value} - DATE '1970-01-01' AS BIGINT)"
    if name == "time":
        return f"date_diff('microsecond', TIME '00:00:00', {value})"
    if name in TIMESTAMPS:
        scale = {
            "timestamp_s": "epoch_us({}) // 1000000",
            "timestamp_ms": "epoch_ms({})",
            "timestamp_ns": "epoch_ns({})",
        }
        return scale.get(name, "epoch_us({})").format(value)
    return f"CAST({value} AS BIGINT)"


def buckets_of(values: pa.ChunkedArray, count: int) -> list[str | None]:
    """The buckets, as texts, of what is hashed; None for NULL."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        filled = pc.fill_null(values, 0).to_numpy()
        if pa.types.is_floating(values.type):
            filled = (filled.astype(np.float64) + 0.0).view(np.int64)  # no negative zero
        hashed: list[int | None] = [int(value) for value in hash_integers(filled)]
        nulls = values.is_null().to_pylist()
        hashed = [None if null else value for null, value in zip(nulls, hashed, strict=True)]
    else:
        hashed = hash_texts(values.to_pylist())
    return [None if value is None else str(bucket(value, count)) for value in hashed]


def groups(keys: pa.Table, table: Table) -> Iterator[tuple[Values, pa.Array]]:
    """The rows, by number, of each combination of key texts, in the order in which those come first.

    Args:
        keys: the values of `key_sql`.
    """
    rows: dict[Values, list[int]] = {}
    columns = []
    for field, column in zip(table.partition.fields if table.partition else (), keys.columns, strict=True):
        count = bucket_count(field.transform)
        columns.append(column.to_pylist() if count is None else buckets_of(column, count))
    for number, values in enumerate(zip(*columns, strict=True)):
        rows.setdefault(values, []).append(number)
    for values, numbers in rows.items():
        yield values, pa.array(np.asarray(numbers, np.int64))
