"""Reads added files: columns by their names in the file, or from the file's path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.model.entries import Column
from ducklake_lab.model.mapping import ColumnMapping, NameMapping
from ducklake_lab.model.quoting import quote_for_spark
from ducklake_lab.scan.footers import file_schemas
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.spark.types import cut, from_stored, spark_type, stored_type
from ducklake_lab.storage import Storage

#: Column with the texts from a file's path, by column id.
PATH_VALUES = "_ducklake_path_values"

#: Column types that accept file types which Spark does not widen -> whether a file type is one of them.
_BEYOND: dict[str, Callable[[pa.DataType], bool]] = {
    "uint64": lambda kind: kind != pa.uint64(),
    "timestamp": lambda kind: kind == pa.timestamp("ns"),
    "timestamp_ns": lambda kind: kind != pa.timestamp("ns"),
}
#: Most footers that are read to find such files; Spark refuses a file that is missed.
_LOOKED_AT = 1_000
_CUT = {"timestamp_s": "1", "timestamp_ms": "0.001"}


def beyond_spark(columns: Sequence[Column], files: Sequence[ScanFile], storage: Storage) -> set[str]:
    """Returns the paths of added files with types that Spark does not convert to the columns' types.

    It checks the first thousand, and the others only if one of these matches: one writer makes many files.

    Raises:
        DataFileError: a footer cannot be read.
    """
    leaves = {part.column_id: part for column in columns for part in column.walk() if not part.children}
    if _BEYOND.keys().isdisjoint(part.type for part in leaves.values()):
        return set()
    mapped = ((file.path, file.data_file.mapping) for file in files)
    added = {path: mapping.columns for path, mapping in mapped if mapping is not None}

    def beyond(paths: Sequence[str]) -> set[str]:
        return {
            path
            for path, schema in file_schemas(paths, storage).items()
            if _is_beyond(added[path], dict(zip(schema.names, schema.types, strict=True)), leaves)
        }

    paths = list(added)
    first = beyond(paths[:_LOOKED_AT])
    return first | beyond(paths[_LOOKED_AT:]) if first else first


def _is_beyond(entries: Sequence[NameMapping], kinds: Mapping[str, pa.DataType], leaves: Mapping[int, Column]) -> bool:
    for entry in entries:
        kind = kinds.get(entry.source_name)
        if kind is None:
            continue  # the value is in the file's path
        leaf = leaves.get(entry.target_field_id)
        if leaf is None:
            if _is_beyond(entry.children, _parts(kind, entry), leaves):
                return True
        elif leaf.type in _BEYOND and _BEYOND[leaf.type](kind):
            return True
    return False


def _parts(kind: pa.DataType, entry: NameMapping) -> dict[str, pa.DataType]:
    """Returns the types of a nested column's parts in a file, by their names in the mapping."""
    if pa.types.is_map(kind):
        return {"key": kind.key_type, "value": kind.item_type}
    if pa.types.is_list(kind):
        return {child.source_name: kind.value_type for child in entry.children}
    return {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}


def read_fields(columns: Sequence[Column], mapping: ColumnMapping) -> list[T.StructField]:
    """Returns the read schema of added files: the columns that they have, under their names in the file."""
    by_target = mapping.by_target()
    return [
        T.StructField(entry.source_name, _stored(column, entry))
        for column in columns
        if (entry := by_target.get(column.column_id)) is not None and not entry.is_partition
    ]


def _stored(column: Column, entry: NameMapping) -> T.DataType:
    if not column.children:
        return stored_type(column.data_type)
    by_target = {child.target_field_id: child for child in entry.children}
    if column.type == "struct":
        return T.StructType(
            [
                T.StructField(by_target[child.column_id].source_name, _stored(child, by_target[child.column_id]))
                for child in column.children
                if child.column_id in by_target
            ]
        )
    if column.type == "list":
        return T.ArrayType(_stored(column.children[0], entry.children[0]))
    key, value = column.children
    return T.MapType(_stored(key, by_target[key.column_id]), _stored(value, by_target[value.column_id]))


def output(column: Column, mapping: ColumnMapping, frame: DataFrame, default: SparkColumn | None) -> SparkColumn:
    """Returns a column of the table.

    Args:
        default: the value for files without the column; None for NULL.
    """
    entry = mapping.by_target().get(column.column_id)
    kind = spark_type(column.data_type)
    if entry is None:
        value = F.lit(None).cast(kind) if default is None else default
    elif entry.is_partition:
        value = F.col(PATH_VALUES)[str(column.column_id)].cast(kind)
    else:
        value = from_stored(_shaped(frame[quote_for_spark(entry.source_name)], column, entry), column.data_type)
    return value.alias(column.name)


def _shaped(value: SparkColumn, column: Column, entry: NameMapping) -> SparkColumn:
    """Returns a nested value with the table's fields, in order."""
    if column.type in _CUT:
        # the file's type may be more precise
        return cut(value, _CUT[column.type])
    if not column.children:
        return value
    by_target = {child.target_field_id: child for child in entry.children}
    if column.type == "struct":
        return F.when(value.isNotNull(), F.struct(*(_field(value, child, by_target) for child in column.children)))
    if column.type == "list":
        return F.transform(value, lambda item: _shaped(item, column.children[0], entry.children[0]))
    key, item = column.children
    keys = F.transform(F.map_keys(value), lambda part: _shaped(part, key, by_target[key.column_id]))
    items = F.transform(F.map_values(value), lambda part: _shaped(part, item, by_target[item.column_id]))
    return F.map_from_arrays(keys, items)


def _field(value: SparkColumn, child: Column, by_target: dict[int, NameMapping]) -> SparkColumn:
    entry = by_target.get(child.column_id)
    if entry is not None:
        return _shaped(value[entry.source_name], child, entry).alias(child.name)
    return F.lit(None).cast(stored_type(child.data_type)).alias(child.name)
