"""Every connection to DuckDB: databases in memory, most of which reach nothing outside of them, and files that are served."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable

import duckdb

from ducklake_lab.model.quoting import quote_text

_local = threading.local()

_IS_UNSOUND = duckdb.__version__.startswith("1.")
#: Optimizers that answer wrongly in DuckDB 1. The first filters rows of a join before the LIMIT of a query within it.
#: The second confuses the columns of two joins in UNION ALL. The third loses rows of windows that sort by NULL.
UNSOUND_OPTIMIZERS = ("join_filter_pushdown", "common_subplan", "top_n_window_elimination") if _IS_UNSOUND else ()
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # else DuckDB looks for a name without a table among the variables of our own functions
    "python_enable_replacements": False,
    "disabled_optimizers": ",".join(UNSOUND_OPTIMIZERS),
}
#: Settings of a database: (name, value), the name after `GLOBAL` where it holds for all cursors.
Settings = Iterable[tuple[str, str]]


def in_memory(threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A new database in memory, with access to files; the caller closes it.

    Args:
        threads: that run its queries; as many as there are cores by default.
    """
    config = dict(_CONFIG)
    if threads is not None:
        config["threads"] = threads
    return duckdb.connect(":memory:", config=config)


def of_file(path: str) -> duckdb.DuckDBPyConnection:
    """A database file, held by this process until the caller closes it."""
    return duckdb.connect(path, config=dict(_CONFIG))


def sealed(settings: Settings, *, threads: int | None = None, locked: bool = True) -> duckdb.DuckDBPyConnection:
    """A new database in memory that reaches nothing outside of it.

    Args:
        locked: no setting of it can be changed.
    """
    connection = in_memory(threads)
    for name, value in settings:
        connection.execute(f"SET {name} = {quote_text(value)}")
    connection.execute("SET enable_external_access = false")
    if locked:
        connection.execute("SET lock_configuration = true")
    return connection


def of_thread(purpose: Hashable, settings: Settings = (), *, locked: bool = True) -> duckdb.DuckDBPyConnection:
    """Return this thread's sealed database for a purpose."""
    kept: dict[Hashable, duckdb.DuckDBPyConnection] = _local.__dict__.setdefault("kept", {})
    if purpose not in kept:
        kept[purpose] = sealed(settings, locked=locked)
    return kept[purpose]


def scratch() -> duckdb.DuckDBPyConnection:
    """Return this thread's database that computes single values and casts columns."""
    return of_thread("scratch", [("TimeZone", "UTC")], locked=False)
