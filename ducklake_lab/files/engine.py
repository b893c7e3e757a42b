"""DuckDB with access to files, for reading and writing those of a lake."""

from __future__ import annotations

import threading

import duckdb

_local = threading.local()


def connect() -> duckdb.DuckDBPyConnection:
    """A connection of its own to this thread's in-memory database; whoever asks closes it."""
    base: duckdb.DuckDBPyConnection | None = getattr(_local, "base", None)
    if base is None:
        base = duckdb.connect(":memory:", config={"threads": 1})
        _local.base = base
    connection = base.cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection
