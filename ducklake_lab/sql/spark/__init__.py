"""Bound queries to Spark SQL with DuckDB's meaning."""
