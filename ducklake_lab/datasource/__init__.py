"""`spark.read.format("ducklake")`: lakes for PySpark code that has no session of ours.

    spark.dataSource.register(DuckLakeDataSource)
    spark.read.format("ducklake").option("table", "main.flights").load("ducklake:flights.ducklake")

`Session.spark` has it registered. Rows pass through Python workers here; `Session.sql` and `Session.table` read
with Spark's own Parquet reader and are several times faster.
"""

from __future__ import annotations

from ducklake_lab.datasource.source import DuckLakeDataSource

__all__ = ["DuckLakeDataSource"]
