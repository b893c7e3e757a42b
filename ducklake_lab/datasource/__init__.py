"""`spark.read.format("ducklake")`: lakes for PySpark code that has no session of ours.

    spark.dataSource.register(DuckLakeDataSource)
    spark.read.format("ducklake").option("table", "main.flights").load("ducklake:flights.ducklake")

`Session.spark` has it registered. Rows pass through Python workers here; `Session.sql` and `Session.table` read
with Spark's own Parquet reader and are several times faster.
"""

from __future__ import annotations

from weakref import WeakSet

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ducklake_lab.datasource.source import DuckLakeDataSource
from ducklake_lab.spark.workers import packages

__all__ = ["DuckLakeDataSource", "register"]

_registered: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> SparkSession:
    """Registers `format("ducklake")` with a SparkSession, once: Spark takes a second for it."""
    if spark not in _registered:
        packages.send(spark)
        try:
            spark.dataSource.register(DuckLakeDataSource)
        except AnalysisException as error:
            # PySpark 4.0 replaces no format that it found by itself
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        _registered.add(spark)
    return spark
