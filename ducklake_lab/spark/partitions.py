"""Partition keys while writing: key columns for Spark, and back from folder names to the catalog's texts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ducklake_lab.catalog.casting import cast_columns, texts
from ducklake_lab.catalog.paths import hive_segment
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column, PartitionField, Table
from ducklake_lab.model.types import DataType

_TRANSFORMS = ("year", "month", "day", "hour")
# Spark takes an empty text for NULL in folder names, so a value is marked as one
_VALUE, _NULL = "v", "n"

#: The values of one file, one per partition key, as the catalog stores them.
Values = tuple[str | None, ...]


def key_names(table: Table) -> list[str]:
    """The names of the temporary key columns, one per partition key; [] for a table without keys."""
    return [f"_ducklake_key_{i}" for i in range(len(table.partition.fields))] if table.partition else []


def check_partition(table: Table) -> None:
    """Raises what keeps rows from being written by the table's partition keys.

    Raises:
        UnsupportedFeatureError: names the key.
    """
    for field in table.partition.fields if table.partition else ():
        column = _column(table, field)
        name = column.name
        if field.transform.startswith("bucket"):
            raise UnsupportedFeatureError(
                f"Writing to a table partitioned by {field.transform} of {name} is not supported yet."
            )
        if field.transform != "identity" and field.transform not in _TRANSFORMS:
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
        keys.append(_key(F.col(frame.columns[index]), field.transform).alias(name))
    return frame.select("*", *keys)


def _key(value: SparkColumn, transform: str) -> SparkColumn:
    part = value if transform == "identity" else F.call_function(transform, value)
    return F.when(part.isNull(), F.lit(_NULL)).otherwise(F.concat(F.lit(_VALUE), part.cast("string")))


def decode_keys(table: Table, keys: Sequence[Sequence[str]]) -> list[Values]:
    """The catalog's texts for the key texts of some files: as DuckDB writes the values."""
    if table.partition is None:
        return [() for _ in keys]
    columns = []
    for i, field in enumerate(table.partition.fields):
        values = [None if key[i] == _NULL else key[i].removeprefix(_VALUE) for key in keys]
        data_type = _column(table, field).data_type
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


def hive_folder(table: Table, values: Values) -> str:
    """The folder, ending in `/`, of files with these values; "" for a table without keys."""
    if table.partition is None:
        return ""
    used: set[str] = set()
    segments = []
    for field, value in zip(table.partition.fields, values, strict=True):
        column = _column(table, field)
        name = column.name if field.transform == "identity" else field.transform
        if name.casefold() in used:
            name = f"{name}_{column.name}"
        used.add(name.casefold())
        segments.append(hive_segment(name, value) + "/")
    return "".join(segments)


def _column(table: Table, field: PartitionField) -> Column:
    column = table.column_by_id(field.column_id)
    if column is None:
        raise UnsupportedFeatureError(f"Table {table.name} is partitioned by a column it does not have.")
    return column
