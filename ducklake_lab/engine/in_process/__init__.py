"""Processes rows with DuckDB in this process."""
