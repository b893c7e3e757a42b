"""Catalog URIs as DuckLake writes them, and what they mean (spec: usage/connecting)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from ducklake_lab.errors import UnsupportedFeatureError, UsageError

Backend = Literal["duckdb", "sqlite", "postgresql", "mysql"]

_LIBPQ_TO_URL = {
    "host": "host",
    "hostaddr": "host",
    "port": "port",
    "dbname": "database",
    "user": "username",
    "password": "password",
}
#: `password=…` in a connection string, quoted or not, and `user:password@` in a URL.
_PASSWORD_WORD = re.compile(
    r"""(passw\w*["']?\s*=\s*["']?)(?!\$\{)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'&]+)""", re.IGNORECASE
)
_PASSWORD_IN_URL = re.compile(r"(//[^\s/@:]*:)(?!\$\{)[^\s/]+@")
#: as DuckDB's mysql extension names them
_MYSQL_TO_URL = {
    "host": "host",
    "port": "port",
    "db": "database",
    "database": "database",
    "user": "username",
    "password": "password",
    "passwd": "password",
    "socket": "socket",
    "unix_socket": "socket",
}


@dataclass(frozen=True, slots=True)
class CatalogLocation:
    """Where a catalog is.

    Attributes:
        url: SQLAlchemy URL; its repr hides the password.
        path: absolute path of the catalog file, for DuckDB and SQLite.
        default_alias: the name the lake gets when none is given.
        display: short form without secrets, for people.
        schema: the schema the metadata tables are in; None for the database's usual one.
        storage_version: DuckDB's name of the storage of a file that is created; None for the usual one.
    """

    backend: Backend
    url: sa.URL = field(repr=False)
    path: Path | None
    default_alias: str
    display: str
    schema: str | None = None
    storage_version: str | None = None

    @property
    def default_data_path(self) -> str | None:
        """`<catalog file>.files/`, as the reference chooses; None for server catalogs."""
        return f"{self.path}.files/" if self.path is not None else None

    @property
    def uri(self) -> str | None:
        """A URI that leads here from any folder, without passwords and keys; None where a URI cannot say it all."""
        if self.schema is not None:
            return None
        if self.path is not None:
            return f"ducklake:{'sqlite:' if self.backend == 'sqlite' else ''}{self.path}"
        url = self.url
        kind, database, socket = (
            ("mysql", "db", "unix_socket") if self.backend == "mysql" else ("postgres", "dbname", "host")
        )
        known = {database: url.database, "host": url.host, "port": url.port, "user": url.username}
        if socket in url.query:
            known[socket] = str(url.query[socket])
        words = (f"{name}={shlex.quote(str(value))}" for name, value in known.items() if value is not None)
        return f"ducklake:{kind}:{' '.join(words)}"


def parse_uri(uri: str) -> CatalogLocation:
    """Parses a DuckLake URI or a SQLAlchemy URL.

    DuckLake's are `ducklake:x.ducklake`, `ducklake:sqlite:x`, `ducklake:postgres:dbname=… host=…` and
    `ducklake:mysql:db=… host=…`.

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
        case "mysql" | "mariadb":
            return _mysql(rest)
        case "md" | "quack":
            raise UnsupportedFeatureError(
                f"Catalogs in {kind} are not supported; use DuckDB, SQLite, PostgreSQL or MySQL."
            )
    return _file("duckdb", text)


def without_secrets(url: sa.URL, text: str) -> str:
    """A text without the password of a URL, or without its user where a lost `:` made one of both."""
    for secret in (str(url.password or url.username or ""), str(url.query.get("password", ""))):
        text = text.replace(secret, "***") if secret else text
    return text


def hide_passwords(text: str) -> str:
    """A URI, or a text with URIs in it, with `***` for passwords; `${NAME}` stays."""
    text = _PASSWORD_WORD.sub(r"\1***", text)
    return _PASSWORD_IN_URL.sub(r"\1***@", text)


def _file(backend: Literal["duckdb", "sqlite"], text: str) -> CatalogLocation:
    if hide_passwords(f"//{text}") != f"//{text}":
        # a letter of the server's kind may be missing, and the whole would be the name of a file
        raise UsageError(
            "The lake's URI holds a password and names no server; write ducklake:postgres:dbname=… or ducklake:mysql:db=…."
        )
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
    parts, query = _words(text, "PostgreSQL", _LIBPQ_TO_URL)
    host = parts.get("host")
    if host is not None and host.startswith("/"):
        query["host"] = parts.pop("host")
    return _server(_url("postgresql+psycopg", parts, query))


def _mysql(text: str) -> CatalogLocation:
    parts, query = _words(text, "MySQL", _MYSQL_TO_URL)
    if "socket" in parts:
        query["unix_socket"] = parts.pop("socket")
    return _server(_url("mysql+pymysql", parts, query))


def _words(text: str, database: str, names: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The words `key=value` of a connection string: those of a URL's own parts, and the others."""
    parts: dict[str, str] = {}
    query: dict[str, str] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The {database} connection string cannot be read: {error}.") from None
    for number, word in enumerate(words, 1):
        key, separator, value = word.partition("=")
        if not separator:
            # the word itself may be part of a password with a space in it
            raise UsageError(f"Word {number} of the {database} connection string is not of the form key=value.")
        if "passw" in value.partition("=")[0].casefold() and "=" in value:
            raise UsageError(
                f"Word {number} of the {database} connection string holds two; put a blank before password=."
            )
        if key in names:
            parts[names[key]] = value
        else:
            query[key] = value
    return parts, query


def _url(driver: str, parts: dict[str, str], query: dict[str, str]) -> sa.URL:
    port = parts.pop("port", None)
    if port is not None and not port.isdigit():
        raise UsageError("The port in the connection string is not a number.")
    return sa.URL.create(
        driver,
        username=parts.get("username"),
        password=parts.get("password"),
        host=parts.get("host"),
        port=int(port) if port is not None else None,
        database=parts.get("database"),
        query=query,
    )


def _from_url(text: str) -> CatalogLocation:
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise UsageError("The lake's URI is neither a DuckLake URI nor a SQLAlchemy URL.") from None
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return _server(url.set(drivername="postgresql+psycopg"))
    if backend in ("duckdb", "sqlite"):
        return _file("sqlite" if backend == "sqlite" else "duckdb", url.database or "")
    if backend in ("mysql", "mariadb"):
        return _server(url.set(drivername="mysql+pymysql"))
    raise UnsupportedFeatureError(f"Catalogs in {backend} are not supported; use DuckDB, SQLite, PostgreSQL or MySQL.")


def _server(url: sa.URL) -> CatalogLocation:
    if url.get_backend_name() == "mysql":
        if not url.database:
            raise UsageError("The MySQL connection string names no database; add db=….")
        return CatalogLocation("mysql", url, None, _alias(url.database), f"{url.database} (MySQL)")
    name = url.database or "postgres"
    return CatalogLocation("postgresql", url, None, _alias(name), f"{name} (PostgreSQL)")


def _alias(name: str) -> str:
    return re.sub(r"\W+", "_", name) or "lake"
