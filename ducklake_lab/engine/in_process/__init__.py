"""Rows worked in process, by DuckDB."""
