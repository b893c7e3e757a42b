"""The version, in one place, and which DuckDB is installed."""

from importlib.metadata import version

__version__ = "0.1.0"

#: Whether the installed DuckDB is 2.0 or newer.
SINCE_DUCKDB_2 = int(version("duckdb").partition(".")[0]) >= 2
