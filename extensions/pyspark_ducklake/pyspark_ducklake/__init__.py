"""Makes `format("ducklake")` known to Spark, which looks for a `DefaultSource` in modules named `pyspark_*`."""

from ducklake_lab.datasource import DuckLakeDataSource as DefaultSource

__all__ = ["DefaultSource"]
