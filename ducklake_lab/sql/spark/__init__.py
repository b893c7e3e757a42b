"""Translates bound queries to Spark SQL with DuckDB's meaning."""
