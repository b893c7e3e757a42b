"""Catalog URIs as DuckLake writes them, and what they mean (spec: usage/connecting)."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from ducklake_lab.errors import UnsupportedFeatureError, UsageError

Backend = Literal["duckdb", "sqlite", "postgresql"]

_LIBPQ_TO_URL = {
    "host": "host",
    "hostaddr": "host",
    "port": "port",
    "dbname": "database",
    "user": "username",
    "password": "password",
}


@dataclass(frozen=True, slots=True)
class CatalogLocation:
    """Where a catalog is.

    Attributes:
        url: SQLAlchemy URL; its repr hides the password.
        path: absolute path of the catalog file, for DuckDB and SQLite.
        default_alias: the name the lake gets when none is given.
        display: short form without secrets, for people.
    """

    backend: Backend
    url: sa.URL = field(repr=False)
    path: Path | None
    default_alias: str
    display: str

    @property
    def default_data_path(self) -> str | None:
        """`<catalog file>.files/`, as the reference chooses; None for server catalogs."""
        return f"{self.path}.files/" if self.path is not None else None


def parse_uri(uri: str) -> CatalogLocation:
    """Parses `ducklake:x.ducklake`, `ducklake:sqlite:x`, `ducklake:postgres:dbname=… host=…` or a SQLAlchemy URL.

    Raises:
        UsageError: it is none of these.
        UnsupportedFeatureError: the catalog database is not supported.
    """
    text = uri.removeprefix("ducklake:").strip()
    if not text:
        raise UsageError("The lake's URI is empty; write e.g. ducklake:metadata.ducklake.")
    if "://" in text:
        return _from_url(text)
    kind, separator, rest = text.partition(":")
    if not separator or (len(kind) == 1 and os.name == "nt"):
        return _file("duckdb", text)
    match kind.casefold():
        case "duckdb":
            return _file("duckdb", rest)
        case "sqlite":
            return _file("sqlite", rest)
        case "postgres" | "postgresql":
            return _postgres(rest)
        case "mysql" | "md" | "quack":
            raise UnsupportedFeatureError(
                f"Catalogs in {kind} are not supported yet; use DuckDB, SQLite or PostgreSQL."
            )
    return _file("duckdb", text)


def _file(backend: Literal["duckdb", "sqlite"], text: str) -> CatalogLocation:
    if text in ("", ":memory:"):
        raise UnsupportedFeatureError("A catalog in memory is not supported; name a file, e.g. ducklake:lake.ducklake.")
    path = Path(text).expanduser().absolute()
    return CatalogLocation(
        backend=backend,
        url=sa.URL.create(backend, database=str(path)),
        path=path,
        default_alias=_alias(path.stem),
        display=path.name,
    )


def _postgres(text: str) -> CatalogLocation:
    parts: dict[str, str] = {}
    query: dict[str, str] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The PostgreSQL connection string cannot be read: {error}.") from None
    for word in words:
        key, separator, value = word.partition("=")
        if not separator:
            raise UsageError(f'"{key}" in the PostgreSQL connection string is not of the form key=value.')
        if key in _LIBPQ_TO_URL:
            parts[_LIBPQ_TO_URL[key]] = value
        else:
            query[key] = value
    host = parts.get("host")
    if host is not None and host.startswith("/"):
        query["host"] = parts.pop("host")
    port = parts.pop("port", None)
    if port is not None and not port.isdigit():
        raise UsageError(f'"{port}" is not a port number.')
    url = sa.URL.create(
        "postgresql+psycopg",
        username=parts.get("username"),
        password=parts.get("password"),
        host=parts.get("host"),
        port=int(port) if port is not None else None,
        database=parts.get("database"),
        query=query,
    )
    return _server(url)


def _from_url(text: str) -> CatalogLocation:
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise UsageError("The lake's URI is neither a DuckLake URI nor a SQLAlchemy URL.") from None
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return _server(url.set(drivername="postgresql+psycopg"))
    if backend in ("duckdb", "sqlite"):
        return _file("sqlite" if backend == "sqlite" else "duckdb", url.database or "")
    raise UnsupportedFeatureError(f"Catalogs in {backend} are not supported yet; use DuckDB, SQLite or PostgreSQL.")


def _server(url: sa.URL) -> CatalogLocation:
    name = url.database or "postgres"
    return CatalogLocation("postgresql", url, None, _alias(name), f"{name} (PostgreSQL)")


def _alias(name: str) -> str:
    return re.sub(r"\W+", "_", name) or "lake"
