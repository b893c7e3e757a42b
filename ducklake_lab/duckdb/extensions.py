"""Loads extensions of DuckDB: those of Python packages, then DuckDB's own."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import duckdb

from ducklake_lab.model.quoting import quote_text


def load(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Load an extension into a database; returns whether it is installed."""
    for source in _sources(name):
        try:
            connection.execute(f"LOAD {source}")
        except duckdb.Error:
            continue
        return True
    return False


def _sources(name: str) -> Iterator[str]:
    """Yield the names under which LOAD may find an extension: a Python package's file, then DuckDB's own."""
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in (package.submodule_search_locations if package is not None else None) or ():
        path = Path(folder) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        yield quote_text(str(path))
    yield name
