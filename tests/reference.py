"""The reference implementation: DuckDB with its own extensions, as they come as Python packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb

#: What attaches lakes with every kind of catalog.
EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")


def extension(name: str) -> str:
    """The path of an extension for the DuckDB that is installed."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"pip install duckdb-extension-{name.replace('_', '-')}=={duckdb.__version__}")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return str(folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension")


def connect(*more: str) -> duckdb.DuckDBPyConnection:
    """A connection in which lakes can be attached, and UTC is the time zone.

    Args:
        more: names of further extensions.
    """
    connection = duckdb.connect()
    for name in (*EXTENSIONS, *more):
        connection.execute(f"LOAD '{extension(name)}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
