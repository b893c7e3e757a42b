"""DuckDB with access to files, for reading and writing those of a lake."""

from __future__ import annotations

import threading

import duckdb

from ducklake_lab.duckdb.connections import in_memory
from ducklake_lab.duckdb.extensions import load
from ducklake_lab.errors import UnsupportedFeatureError

_local = threading.local()
_lock = threading.Lock()
_parallel: duckdb.DuckDBPyConnection | None = None


def connect(*, parallel: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection of its own to an in-memory database; the caller closes it.

    Args:
        parallel: queries use all cores; without it one thread, of this thread's own database.
    """
    global _parallel
    if parallel:
        with _lock:
            base = _parallel = _parallel or in_memory()
    else:
        base = getattr(_local, "base", None) or in_memory(threads=1)
        _local.base = base
    connection = base.cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def load_encryption(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes a connection able to write encrypted files; reading needs nothing. DuckDB brings no secure random numbers.

    Raises:
        UnsupportedFeatureError: its extension that has them is not installed.
    """
    if getattr(_local, "encrypts", False):
        return
    if not load(connection, "httpfs"):
        raise UnsupportedFeatureError(
            f"Writing encrypted files needs an extension of DuckDB: pip install duckdb-extension-httpfs=={duckdb.__version__}"
        )
    _local.encrypts = True
