"""Converts Arrow tables to Spark DataFrames, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ducklake_lab.duckdb.casting import carried_as, decimal_sql, through, typed_values_sql
from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import ON_SPARK, DataType, from_field
from ducklake_lab.spark import unreadable
from ducklake_lab.spark.runtime import is_connect
from ducklake_lab.spark.types import arrow_type, from_spark, spark_type
from ducklake_lab.spark.workers.start import begin_task

#: DuckDB types for values that Spark accepts, by the name of a type that it does not accept.
_CASTS = {
    "uint8": "SMALLINT",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "timestamp_s": "TIMESTAMP",
    "timestamp_ms": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP",
    **{name: "VARCHAR" for name, spark in ON_SPARK.items() if spark == "STRING" and name != "varchar"},
}
#: Types whose largest values no Spark type holds.
_LONG = ("int128", "uint128")
#: Spark's Arrow form of a variant.
_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def of_session(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Returns the same rows as a DataFrame of this session.

    Its plan keeps the settings with which it was made. A global view would do the same in ten times the time. Spark counts
    and groups rows with a TIME only in a session with `spark.sql.timeType.enabled`, which such a DataFrame turns on.
    """
    if frame.sparkSession is spark or is_connect(spark):
        return frame
    assert spark._jvm is not None
    classic = spark._jvm.org.apache.spark.sql.classic
    if _has_time(frame.schema):
        spark.conf.set("spark.sql.timeType.enabled", "true")
    return DataFrame(classic.Dataset.ofRows(spark._jsparkSession, frame._jdf.logicalPlan()), spark)


def _has_time(kind: T.DataType) -> bool:
    """Whether values of a type hold a TIME."""
    parts: list[T.DataType] = []
    if isinstance(kind, T.StructType):
        parts = [field.dataType for field in kind.fields]
    elif isinstance(kind, T.ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, T.MapType):
        parts = [kind.keyType, kind.valueType]
    return kind.typeName() == "time" or any(map(_has_time, parts))


def from_arrow_table(spark: SparkSession, table: pa.Table, *, lazily: bool = False) -> DataFrame:
    """Returns the rows of an Arrow table as a DataFrame, with the types of spark/types.py.

    Args:
        lazily: a column with a value that Spark lacks is refused only where it is read, see `unreadable`.

    Raises:
        UnsupportedFeatureError: a column's type has no Spark type, or Spark lacks a value.
    """
    kinds = [from_field(field) for field in table.schema]
    schema = T.StructType(
        [T.StructField(field.name, spark_type(kind)) for field, kind in zip(table.schema, kinds, strict=True)]
    )
    if table.num_rows == 0:
        return spark.createDataFrame([], schema)  # PySpark fails on columns without chunks
    refused: dict[int, str] = {}
    frame = spark.createDataFrame(arrow_for_spark(table, refused if lazily else None), schema)
    return unreadable.without(frame, refused) if refused else frame


def arrow_for_spark(table: pa.Table, refused: dict[int, str] | None = None) -> pa.Table:
    """Returns the rows with Arrow types that Spark accepts.

    Args:
        refused: gets the errors of columns with unfit values, by position; these become NULL. VARIANTs are refused at once.

    Raises:
        UnsupportedFeatureError: an integer has more than 38 digits, or Parquet's form of a VARIANT, which Spark uses,
            cannot hold a value.
    """
    for index, kind in enumerate([from_field(field) for field in table.schema]):
        if not any(part.name in (*_CASTS, *_LONG, "variant", "geometry") for part in kind.walk()):
            continue
        values = table.column(index)
        name = table.schema.field(index).name
        try:
            values = carried_as(values, kind, for_spark_sql(typed_values_sql("v", kind, values), kind))
        except UnsupportedFeatureError as error:
            message = f"Spark cannot read column {name}: {str(error).rstrip('.')}. Read it in process, with arrow() or engine='duckdb'."
            # Spark's variant has no NULL that a whole column could be
            if refused is None or any(part.name == "variant" for part in kind.walk()):
                raise UnsupportedFeatureError(message) from None
            refused[index] = message
            values = pa.nulls(table.num_rows, arrow_type(spark_type(kind)))
            table = table.set_column(index, name, values)
            continue
        table = table.set_column(index, name, with_variants(values, kind))
    return table


def for_spark_sql(expression: str, kind: DataType) -> str:
    """Returns DuckDB's SQL of a value in a type that Spark accepts."""
    if kind.name == "variant":
        return (
            f"CASE WHEN {expression} IS NOT NULL THEN "
            f"CAST(variant_to_parquet_variant({expression}) AS STRUCT(metadata BLOB, value BLOB)) END"
        )
    if kind.name == "geometry":
        return f"ST_AsWKB({expression})"
    if kind.name in _LONG:
        return decimal_sql(expression)
    if kind.is_nested:
        return through(expression, kind, for_spark_sql)
    if kind.name == "interval":
        # DuckDB misreads texts with more hours than its type holds
        parts = ("year", "month", "day", "hour", "minute", "microsecond")
        year, month, day, hour, minute, micros = (f"date_part('{part}', {expression})" for part in parts)
        clock = f"({hour} * 3600000000 + {minute} * 60000000 + {micros})"
        long = f"({year} * 12 + {month}) || ' months ' || {day} || ' days ' || {clock} || ' microseconds'"
        return f"CASE WHEN abs({hour}) < 500000 THEN CAST({expression} AS VARCHAR) ELSE {long} END"
    return f"CAST({expression} AS {_CASTS[kind.name]})" if kind.name in _CASTS else expression


def with_variants(values: pa.ChunkedArray | pa.Array, kind: DataType) -> pa.Array:
    """Returns the values with variants in Spark's form, at any depth."""
    array = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) and values.num_chunks else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.array([], array.type)
    if kind.name == "variant":
        # Spark requires bytes for a NULL variant, too
        parts = [array.field(name).fill_null(b"") for name in ("value", "metadata")]
        return pa.StructArray.from_arrays(parts, fields=list(_VARIANT), mask=array.is_null())
    if not any(part.name == "variant" for part in kind.walk()):
        return array
    if kind.name == "struct":
        parts = [with_variants(array.field(i), child) for i, (_, child) in enumerate(kind.children)]
        return pa.StructArray.from_arrays(parts, [name for name, _ in kind.children], mask=array.is_null())
    if kind.name == "list":
        return pa.ListArray.from_arrays(
            array.offsets, with_variants(array.values, kind.children[0][1]), mask=array.is_null()
        )
    (_, key), (_, value) = kind.children
    return pa.MapArray.from_arrays(
        array.offsets, with_variants(array.keys, key), with_variants(array.items, value), mask=array.is_null()
    )


def to_arrow_table(frame: DataFrame) -> pa.Table:
    """Returns all rows of a DataFrame, with variants in the model's Arrow form."""
    kinds = [from_spark(field.dataType) for field in frame.schema.fields]
    variants = [i for i, kind in enumerate(kinds) if any(part.name == "variant" for part in kind.walk())]
    if not variants:
        return in_zone(frame.toArrow(), "UTC")
    # PySpark's own conversion fails on NULL variants, and on names with dots
    names = [f"c{i}" for i in range(len(kinds))]
    schema = T.StructType(
        [
            T.StructField(name, _with_bytes(field.dataType))
            for name, field in zip(names, frame.schema.fields, strict=True)
        ]
    )

    def joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            columns = list(batch.columns)
            for i in variants:
                columns[i] = _bytes_of_variants(columns[i], kinds[i])
            yield pa.record_batch(columns, names=names)

    table = in_zone(frame.toDF(*names).mapInArrow(joined, schema).toArrow(), "UTC").rename_columns(frame.columns)
    for i in variants:
        field = kinds[i].field(frame.columns[i])
        table = table.set_column(i, field, table.column(i).cast(field.type))
    return table


def _with_bytes(kind: T.DataType) -> T.DataType:
    """Returns a type with bytes in place of variants."""
    if isinstance(kind, T.VariantType):
        return T.BinaryType()
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_bytes(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_with_bytes(kind.keyType), _with_bytes(kind.valueType))
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(field.name, _with_bytes(field.dataType)) for field in kind.fields])
    return kind


def _bytes_of_variants(array: pa.Array, kind: DataType) -> pa.Array:
    """Returns the values with bytes in place of Spark's variants, at any depth."""
    if kind.name == "variant":
        return pc.binary_join_element_wise(array.field("metadata"), array.field("value"), b"")
    if not any(part.name == "variant" for part in kind.walk()):
        return array
    if kind.name == "struct":
        parts = [_bytes_of_variants(array.field(i), child) for i, (_, child) in enumerate(kind.children)]
        return pa.StructArray.from_arrays(parts, [name for name, _ in kind.children], mask=array.is_null())
    if kind.name == "list":
        values = _bytes_of_variants(array.values, kind.children[0][1])
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
    (_, key), (_, value) = kind.children
    keys, items = _bytes_of_variants(array.keys, key), _bytes_of_variants(array.items, value)
    return pa.MapArray.from_arrays(array.offsets, keys, items, mask=array.is_null())
