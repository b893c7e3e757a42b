"""Arrow tables as Spark DataFrames."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ducklake_lab.model.types import from_arrow
from ducklake_lab.spark.types import spark_type


def from_arrow_table(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of an Arrow table, held by Spark; types as DuckLake maps them.

    Raises:
        UnsupportedFeatureError: a column's type has no Spark type.
    """
    from pyspark.sql.types import StructField, StructType

    schema = StructType([StructField(field.name, spark_type(from_arrow(field.type))) for field in table.schema])
    return spark.createDataFrame(table, schema)
