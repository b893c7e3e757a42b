"""The reference implementation: DuckDB with its own extensions, as they come as Python packages."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path

import duckdb
import pytest

#: The newest DuckDB for which there are packages of its extensions.
PUBLISHED = (1, 5, 5)
#: The first DuckDB for which there is a package of an extension, of those that are younger than the others.
_FIRST = {"quack": (1, 5, 3)}
#: What attaches lakes with every kind of catalog.
EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")
#: Lakes of tests are small: sharing a query out among threads takes longer, and leaves the ids of files to chance.
_THREADS = {"threads": 1} if "PYTEST_VERSION" in os.environ else {}


def is_published(version: str, name: str = "ducklake") -> bool:
    """Whether there is a package of an extension for a DuckDB."""
    return _FIRST.get(name, (0,)) <= tuple(map(int, version.split("."))) <= PUBLISHED


@cache
def installed(name: str) -> bool:
    """Whether an extension for the DuckDB that is installed is here."""
    return importlib.util.find_spec(f"duckdb_extension_{name}") is not None and Path(_path(name)).exists()


def extension(name: str) -> str:
    """The path of an extension for the DuckDB that is installed.

    Skips where there is none, except in CI with a DuckDB for which they are published.
    """
    if not installed(name):
        reason = f"needs duckdb-extension-{name.replace('_', '-')}=={duckdb.__version__}"
        if os.environ.get("CI") and is_published(duckdb.__version__, name):
            pytest.fail(reason)
        pytest.skip(reason)
    return _path(name)


@cache
def _path(name: str) -> str:
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations)))
    return str(folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension")


def loaded(*more: str) -> duckdb.DuckDBPyConnection:
    """A connection in which lakes can be attached.

    Args:
        more: names of further extensions.
    """
    # what comes with a package that pip has checked need not be checked again by each test, which takes 0.1 s apiece
    connection = duckdb.connect(config={"allow_unsigned_extensions": True, **_THREADS})
    for name in (*EXTENSIONS, *more):
        connection.execute(f"LOAD '{extension(name)}'")
    if "QUACK_TOKEN" in os.environ:
        for name in ("httpfs", "quack"):
            connection.execute(f"LOAD '{extension(name)}'")
        connection.execute(f"CREATE SECRET (TYPE quack, TOKEN '{os.environ['QUACK_TOKEN']}')")
    return connection


def connect(*more: str) -> duckdb.DuckDBPyConnection:
    """A connection in which lakes can be attached, and UTC is the time zone.

    Args:
        more: names of further extensions.
    """
    connection = loaded(*more)
    connection.execute("SET TimeZone = 'UTC'")
    return connection
