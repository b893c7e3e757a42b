"""Reading files that were added from outside: columns by the names they have there, or from the files' paths."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.mapping import ColumnMapping, NameMapping
from ducklake_lab.spark.types import from_stored, spark_type, stored_type

#: The column of the texts from a file's path, by column id.
PATH_VALUES = "_ducklake_path_values"

_CUT = {"timestamp_s": "second", "timestamp_ms": "millisecond"}


def read_fields(columns: Sequence[Column], mapping: ColumnMapping) -> list[T.StructField]:
    """The schema to read such files by: the columns of the table that they have, under their names there."""
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
    """A column of the table.

    Args:
        default: what rows of files without the column have in it; None for NULL.
    """
    entry = mapping.by_target().get(column.column_id)
    kind = spark_type(column.data_type)
    if entry is None:
        value = F.lit(None).cast(kind) if default is None else default
    elif entry.is_partition:
        value = F.col(PATH_VALUES)[str(column.column_id)].cast(kind)
    else:
        name = entry.source_name.replace("`", "``")
        value = from_stored(_shaped(frame[f"`{name}`"], column, entry), column.data_type)
    return value.alias(column.name)


def _shaped(value: SparkColumn, column: Column, entry: NameMapping) -> SparkColumn:
    """A nested value with the table's fields in their order."""
    if column.type in _CUT:
        # the file may have a finer unit
        return F.date_trunc(_CUT[column.type], value).cast(T.TimestampNTZType())
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
    if child.initial_default is not None:
        raise UnsupportedFeatureError(f"The default of the added field {child.name} is not supported yet.")
    return F.lit(None).cast(stored_type(child.data_type)).alias(child.name)
