"""Serves a catalog in a DuckDB file to other processes and machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.served import served
from ducklake_lab.errors import CatalogError, CatalogLockedError, UnsupportedFeatureError

#: Hosts that other machines do not reach.
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def check_can_be_served(location: CatalogLocation) -> None:
    """Raises UnsupportedFeatureError where a catalog is no DuckDB file."""
    if location.backend != "duckdb" or location.path is None:
        raise UnsupportedFeatureError(
            f"Only catalogs in DuckDB files are served, and {location.display} is not in one; a catalog in PostgreSQL or MySQL "
            "has a server of its own."
        )


@contextmanager
def serving(location: CatalogLocation, host: str, port: int, token: str) -> Iterator[str]:
    """Serves a catalog in the block, whose file this process holds meanwhile; yields its address, `quack:host:port`.

    Raises:
        UnsupportedFeatureError: it is no DuckDB file, or an extension is not installed.
        CatalogLockedError: another process holds the file.
        CatalogError: nobody can listen at that host and port.
    """
    check_can_be_served(location)
    with _served(location, host, port, token) as address:
        yield address


@contextmanager
def _served(location: CatalogLocation, host: str, port: int, token: str) -> Iterator[str]:
    entered = False
    try:
        with served(str(location.path), host, port, token, elsewhere=host not in LOOPBACK) as address:
            entered = True
            yield address
    except OSError as error:
        if entered:
            raise
        raise CatalogError(
            f"Nothing can be served at {host}:{port}: {error.strerror}; choose another --port."
        ) from None
    except duckdb.Error as error:
        if entered:
            raise
        reason = str(error).partition("\n")[0]
        if "Could not set lock" in reason:
            raise CatalogLockedError(
                f"The catalog {location.display} is in use by another process; close it there first."
            ) from None
        raise CatalogError(f"The catalog {location.display} cannot be served: {reason}") from None
