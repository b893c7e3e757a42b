"""Versions of this package and of the installed DuckDB."""

import re
from importlib.metadata import version

__version__ = "0.1.0"

_DUCKDB = tuple(map(int, re.findall(r"\d+", version("duckdb"))[:3]))

#: Whether the installed DuckDB is 2.0 or newer.
SINCE_DUCKDB_2 = _DUCKDB >= (2,)
#: Whether it makes variants of the bytes of Parquet's.
READS_VARIANT_BYTES = _DUCKDB >= (1, 5, 4)
