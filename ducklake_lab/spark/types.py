"""Conversion between DuckLake's types and Spark's.

A type has up to two Spark forms: the one in a DataFrame, and the one in which Spark's vectorised
Parquet reader reads it from a file. They differ for types that Spark lacks, which get a type that holds every value:

============  ======================  =====================  ===============================================
DuckLake      DataFrame               in the Parquet file    note
============  ======================  =====================  ===============================================
uint8/16/32   SMALLINT, INT, BIGINT   the same
uint64        DECIMAL(20,0)           the same
uuid          STRING                  BINARY                 lower case, with hyphens
json          STRING                  the same
time          TIME(6)                 the same               from Spark 4.1; `spark.sql.timeType.enabled`
timestamp*    TIMESTAMP_NTZ           the same               timestamp_s, timestamp_ms too
timestamp_ns  TIMESTAMP_NTZ           BIGINT                 cut to microseconds
timestamptz   TIMESTAMP               the same
int128        DECIMAL(38,0)           DOUBLE                 files hold doubles; 39 digits are an error
uint128       DECIMAL(38,0)           DOUBLE                 as int128
timetz        STRING                  TIME(6)                DuckDB's text; files are always in UTC
interval      STRING                  BINARY                 DuckDB's text; files have no microseconds
geometry      BINARY                  the same               WKB
variant       VARIANT                 the same               shredded too
null          INT                     the same               NULL is its only value
============  ======================  =====================  ===============================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import ON_SPARK, DataType

FIELD_ID = "parquet.field.id"

#: TIME exists from Spark 4.1 on.
_TIME: type[T.DataType] | None = getattr(T, "TimeType", None)

#: Spark's types by the model's type names.
_BY_NAME: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "DECIMAL(20,0)": T.DecimalType(20, 0),
    "DECIMAL(38,0)": T.DecimalType(38, 0),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(),
    "TIMESTAMP_NTZ": T.TimestampNTZType(),
    "STRING": T.StringType(),
    "BINARY": T.BinaryType(),
    "VARIANT": T.VariantType(),
}
#: Types of the Parquet reader that differ from the DataFrame's.
_STORED: dict[str, T.DataType] = {
    "uuid": T.BinaryType(),
    "timestamp_ns": T.LongType(),
    "int128": T.DoubleType(),
    "uint128": T.DoubleType(),
    "interval": T.BinaryType(),
}

#: Spark type -> DuckLake type, for columns made from a DataFrame.
_FROM_SPARK: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.ByteType: "int8",
    T.ShortType: "int16",
    T.IntegerType: "int32",
    T.LongType: "int64",
    T.FloatType: "float32",
    T.DoubleType: "float64",
    T.StringType: "varchar",
    T.CharType: "varchar",
    T.VarcharType: "varchar",
    T.BinaryType: "blob",
    T.DateType: "date",
    T.TimestampType: "timestamptz",
    T.TimestampNTZType: "timestamp",
    T.VariantType: "variant",
    # DuckDB's type for a column with only NULLs
    T.NullType: "int32",
}
#: Spark type -> Arrow type.
_ARROW: dict[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    # Spark recognises a variant by the mark on its second field
    T.VariantType: pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    ),
}
if _TIME is not None:
    _ARROW[_TIME] = pa.time64("ns")
    _BY_NAME["TIME(6)"] = _STORED["timetz"] = _TIME(6)  # type: ignore[call-arg]
    _FROM_SPARK[_TIME] = "time"


def spark_type(data_type: DataType) -> T.DataType:
    """Returns the type of values in a DataFrame.

    Raises:
        UnsupportedFeatureError: Spark has no such type here.
    """
    return _spark_type(data_type, stored=False)


def arrow_type(spark: T.DataType) -> pa.DataType:
    """Returns the Arrow type in which Spark's workers return values of a type."""
    if isinstance(spark, T.StructType):
        return pa.struct([pa.field(field.name, arrow_type(field.dataType)) for field in spark.fields])
    if isinstance(spark, T.ArrayType):
        return pa.list_(pa.field("element", arrow_type(spark.elementType)))
    if isinstance(spark, T.MapType):
        return pa.map_(arrow_type(spark.keyType), arrow_type(spark.valueType))
    if isinstance(spark, T.DecimalType):
        return pa.decimal128(spark.precision, spark.scale)
    return _ARROW[type(spark)]


def stored_type(data_type: DataType) -> T.DataType:
    """Returns the type in which the Parquet reader reads values, without field ids.

    Raises:
        UnsupportedFeatureError: Spark has no such type here.
    """
    return _spark_type(data_type, stored=True)


def _spark_type(data_type: DataType, *, stored: bool) -> T.DataType:
    if data_type.name == "struct":
        return T.StructType([T.StructField(n, _spark_type(c, stored=stored)) for n, c in data_type.children])
    if data_type.name == "list":
        return T.ArrayType(_spark_type(data_type.children[0][1], stored=stored))
    if data_type.name == "map":
        key, value = (_spark_type(child, stored=stored) for _, child in data_type.children)
        return T.MapType(key, value)
    if data_type.decimal is not None:
        return T.DecimalType(*data_type.decimal)
    if data_type.name in ("time", "timetz") and _TIME is None:
        raise UnsupportedFeatureError(f"Columns of type {data_type.sql()} need Spark 4.1 or newer.")
    kind = _STORED.get(data_type.name) if stored else None
    kind = kind or _BY_NAME.get(ON_SPARK.get(data_type.name, ""))
    if kind is None:
        raise UnsupportedFeatureError(f"Columns of type {data_type.sql()} are not supported on Spark yet.")
    return kind


def from_spark(spark: T.DataType) -> DataType:
    """Returns the DuckLake type for a column of a DataFrame.

    Raises:
        UnsupportedFeatureError: DuckLake has no such type.
    """
    if isinstance(spark, T.StructType):
        return DataType("struct", tuple((field.name, from_spark(field.dataType)) for field in spark.fields))
    if isinstance(spark, T.ArrayType):
        return DataType("list", (("element", from_spark(spark.elementType)),))
    if isinstance(spark, T.MapType):
        return DataType("map", (("key", from_spark(spark.keyType)), ("value", from_spark(spark.valueType))))
    if isinstance(spark, T.DecimalType):
        return DataType(f"decimal({spark.precision},{spark.scale})")
    name = _FROM_SPARK.get(type(spark))
    if name is None:
        raise UnsupportedFeatureError(f"Spark type {spark.simpleString()} has no DuckLake type.")
    return DataType(name)


def from_json(text: str) -> DataType:
    """Returns the DuckLake type for a type of Spark in JSON.

    Raises:
        UnsupportedFeatureError: DuckLake has no such type.
    """
    field = {"name": "v", "type": json.loads(text), "nullable": True, "metadata": {}}
    return from_spark(T.StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType)


def table_schema(columns: Sequence[Column]) -> T.StructType:
    """Returns the schema of a DataFrame with these columns.

    Raises:
        UnsupportedFeatureError: Spark has no type for a column.
    """
    return T.StructType([T.StructField(column.name, spark_type(column.data_type)) for column in columns])


def stored_field(column: Column, name: str, *, with_ids: bool = True) -> T.StructField:
    """Returns the field of a read schema for one column, under the caller's name."""
    try:
        data_type = _with_ids(column) if with_ids else stored_type(column.data_type)
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"Column {column.name}: {error}") from None
    return T.StructField(name, data_type, True, {FIELD_ID: column.column_id} if with_ids else None)


def _with_ids(column: Column) -> T.DataType:
    if column.type == "struct":
        return T.StructType([stored_field(child, child.name) for child in column.children])
    # parts of lists and maps have no Spark field for an id: they are found by position
    if column.type == "list":
        return T.ArrayType(_with_ids(column.children[0]))
    if column.type == "map":
        return T.MapType(_with_ids(column.children[0]), _with_ids(column.children[1]))
    return stored_type(column.data_type)


def from_stored(value: SparkColumn, data_type: DataType) -> SparkColumn:
    """Converts a value of the Parquet reader to its DataFrame form; returns the same expression if they agree."""
    if not differs(data_type):
        return value
    if data_type.name == "uuid":
        digits = F.lower(F.hex(value))
        parts = [F.substring(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
        return F.when(value.isNotNull(), F.concat_ws("-", *parts))
    if data_type.name == "timestamp_ns":
        # rounds down, also before 1970
        return from_micros(F.call_function("div", value - F.pmod(value, F.lit(1000)), F.lit(1000)))
    if data_type.name in ("int128", "uint128"):
        return _whole(value)
    if data_type.name == "timetz":
        return F.concat(value.cast("string"), F.lit("+00"))
    if data_type.name == "interval":
        return _interval_text(value)
    if data_type.name == "variant":
        # a NULL variant in a file is always a variant null, and DuckDB does not distinguish them
        return F.when(~F.is_variant_null(value), value)
    return _through(value, data_type, from_stored)


def from_micros(micros: SparkColumn) -> SparkColumn:
    """Returns the TIMESTAMP_NTZ that many microseconds after 1970-01-01, in any session time zone."""
    seconds = F.call_function("div", micros - F.pmod(micros, F.lit(1_000_000)), F.lit(1_000_000))
    days = F.call_function("div", seconds - F.pmod(seconds, F.lit(86400)), F.lit(86400))
    rest = (micros - days * F.lit(86_400_000_000)).cast("decimal(18,0)") / F.lit(1_000_000)
    midnight = F.date_from_unix_date(days.cast("int")).cast(T.TimestampNTZType())
    return midnight + F.make_dt_interval(secs=rest.cast("decimal(18,6)"))


def micros_of(value: SparkColumn) -> SparkColumn:
    """Returns the microseconds of a timestamp, the inverse of `from_micros`."""
    seconds = F.unix_date(value.cast("date")).cast("bigint") * F.lit(86400)
    seconds = seconds + F.hour(value) * F.lit(3600) + F.minute(value) * F.lit(60)
    return seconds * F.lit(1_000_000) + (F.extract(F.lit("SECOND"), value) * F.lit(1_000_000)).cast("bigint")


def cut(value: SparkColumn, unit: str) -> SparkColumn:
    """Truncates a TIMESTAMP_NTZ to a unit in seconds: "1", "0.001"."""
    rest = F.extract(F.lit("SECOND"), value) % F.lit(unit).cast("decimal(8,6)")
    return value - F.make_dt_interval(secs=rest.cast("decimal(18,6)"))


def _whole(value: SparkColumn) -> SparkColumn:
    """Returns a whole double as DECIMAL(38,0) with all digits; raises an error, never NULL, for more digits.

    A cast would use the shortest digits that identify the double, which are another number.
    """
    problem = F.concat(F.lit("The number "), value.cast("string"), F.lit(" has more than the 38 digits of a DECIMAL."))
    size = F.abs(value)
    high = F.floor(size / F.lit(2.0**64)).cast("bigint")
    rest = size - high.cast("double") * F.lit(2.0**64)
    middle = F.floor(rest / F.lit(2.0**32)).cast("bigint")
    low = (rest - middle.cast("double") * F.lit(2.0**32)).cast("bigint")
    digits = (
        high.cast("decimal(19,0)") * F.lit(str(2**64)).cast("decimal(20,0)")
        + middle.cast("decimal(10,0)") * F.lit(2**32).cast("decimal(10,0)")
        + low.cast("decimal(10,0)")
    )
    whole = F.when(value.isNull() | (size < F.lit(1e38)), F.when(value < 0, -digits).otherwise(digits)).otherwise(
        F.raise_error(problem)
    )
    return whole.cast(T.DecimalType(38, 0))


def _interval_text(value: SparkColumn) -> SparkColumn:
    """Converts the twelve bytes of Parquet's interval (months, days, milliseconds; little-endian) to DuckDB's text."""
    digits = F.hex(value)

    def number(start: int) -> SparkColumn:
        turned = F.concat(*(F.substring(digits, start + 2 * byte, 2) for byte in (3, 2, 1, 0)))
        return F.conv(turned, 16, 10).cast("bigint")

    def unit(count: SparkColumn, name: str) -> SparkColumn:
        text = F.concat(count.cast("string"), F.when(count == 1, F.lit(f" {name}")).otherwise(F.lit(f" {name}s")))
        return F.when(count != 0, text)

    def whole(count: SparkColumn, of: int) -> SparkColumn:
        return F.floor(count / F.lit(of)).cast("bigint")

    months, days, millis = number(1), number(9), number(17)
    seconds = whole(millis, 1000)
    clock = F.concat_ws(
        ":",
        F.lpad(
            whole(seconds, 3600).cast("string"),
            F.greatest(F.lit(2), F.length(whole(seconds, 3600).cast("string"))),
            F.lit("0"),
        ),
        F.lpad(F.pmod(whole(seconds, 60), F.lit(60)).cast("string"), 2, "0"),
        F.lpad(F.pmod(seconds, F.lit(60)).cast("string"), 2, "0"),
    )
    fraction = F.rtrim(F.lpad(F.pmod(millis, F.lit(1000)).cast("string"), 3, "0"), F.lit("0"))
    time = F.concat(clock, F.when(fraction != "", F.concat(F.lit("."), fraction)).otherwise(F.lit("")))
    parts = [unit(whole(months, 12), "year"), unit(F.pmod(months, F.lit(12)), "month"), unit(days, "day")]
    nothing = (months == 0) & (days == 0)
    text = F.concat_ws(" ", *parts, F.when((millis != 0) | nothing, time))
    return F.when(value.isNotNull(), text)


def to_stored(value: SparkColumn, data_type: DataType) -> SparkColumn:
    """Converts a DataFrame's value to its form in a file: the inverse of `from_stored`, except for nanoseconds.

    Those stay timestamps. Seconds are truncated here, because Spark has no type for them.
    """
    if data_type.name == "uuid":
        return F.unhex(F.replace(value, F.lit("-"), F.lit("")))
    if data_type.name == "timestamp_s":
        return cut(value, "1")
    if data_type.is_nested and any(part.name in ("uuid", "timestamp_s") for part in data_type.walk()):
        return _through(value, data_type, to_stored)
    return value


def differs(data_type: DataType) -> bool:
    """Whether the Parquet reader's values differ from a DataFrame's."""
    return any(part.name in _STORED or part.name == "variant" for part in data_type.walk())


def _through(
    value: SparkColumn, data_type: DataType, convert: Callable[[SparkColumn, DataType], SparkColumn]
) -> SparkColumn:
    """Converts the parts of a nested value."""
    if data_type.name == "struct":
        fields = [convert(value[name], child).alias(name) for name, child in data_type.children]
        return F.when(value.isNotNull(), F.struct(*fields))
    if data_type.name == "list":
        element = data_type.children[0][1]
        return F.transform(value, lambda item: convert(item, element))
    key, item = data_type.children[0][1], data_type.children[1][1]
    values = F.transform(F.map_values(value), lambda part: convert(part, item))
    return F.map_from_arrays(F.transform(F.map_keys(value), lambda part: convert(part, key)), values)
