"""Catalog URIs as DuckLake writes them, and their meaning (spec: usage/connecting)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from ducklake_lab.catalog.servers import QUACK, QUACK_PORT, SERVERS, Server
from ducklake_lab.errors import UnsupportedFeatureError, UsageError

Backend = Literal["duckdb", "sqlite", "postgresql", "mysql"]

#: `host`, `host:port`, `[::1]:port`.
_HOST = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?")
#: `password=…` of a connection string, and `user:password@` of a URL.
_PASSWORD = re.compile(r"""passw\w*["']?\s*=\s*["']?(?!\$\{)[^\s&]|(?:^|//)[^\s/@:]*:(?!\$\{)[^\s/]+@""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CatalogLocation:
    """Location of a catalog.

    Attributes:
        url: SQLAlchemy URL; its repr hides the password.
        path: absolute path of the catalog file, for DuckDB and SQLite.
        default_alias: the name the lake gets when none is given.
        display: short form without secrets, for people.
        schema: the schema the metadata tables are in; None for the database's usual one.
        storage_version: DuckDB's name of the storage of a file that is created; None for the usual one.
        kind: the name of the server in URIs; "" for a file.
    """

    backend: Backend
    url: sa.URL = field(repr=False)
    path: Path | None
    default_alias: str
    display: str
    schema: str | None = None
    storage_version: str | None = None
    kind: str = ""

    @property
    def default_data_path(self) -> str | None:
        """`<catalog file>.files/`, as the reference chooses; None for server catalogs."""
        return f"{self.path}.files/" if self.path is not None else None

    @property
    def uri(self) -> str | None:
        """URI of the catalog from any folder, without passwords and keys; None where a URI cannot name it."""
        if self.schema is not None:
            return None
        if self.path is not None:
            return f"ducklake:{'sqlite:' if self.backend == 'sqlite' else ''}{self.path}"
        url, server = self.url, self.server
        assert server is not None  # a catalog without a file has a server
        if server is QUACK:
            return f"ducklake:{self.address}"
        parts = {server.database: url.database, "host": url.host, "port": url.port, "user": url.username}
        if server.socket in url.query:
            parts[server.socket] = str(url.query[server.socket])
        words = (f"{name}={shlex.quote(str(value))}" for name, value in parts.items() if value is not None)
        return f"ducklake:{server.kinds[0]}:{' '.join(words)}"

    @property
    def address(self) -> str:
        """Address of a server of quack, as DuckDB attaches it: `quack:host:port`."""
        host = self.url.host or ""
        return f"quack:{f'[{host}]' if ':' in host else host}:{self.url.port}"

    @property
    def type(self) -> str:
        """Name of the kind of catalog, as the reference names it: that of the database, or `quack`."""
        return self.kind if self.server is QUACK else self.backend

    @property
    def server(self) -> Server | None:
        """Server that keeps the catalog; None for a file."""
        return SERVERS.get(self.kind)


def parse_uri(uri: str) -> CatalogLocation:
    """Parses a DuckLake URI or a SQLAlchemy URL.

    DuckLake's are `ducklake:x.ducklake`, `ducklake:sqlite:x`, `ducklake:postgres:dbname=… host=…`,
    `ducklake:mysql:db=… host=…` and `ducklake:quack:host:port`.

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
    folded = kind.casefold()
    if folded == "quack":
        return _quack(rest.strip())
    if folded in SERVERS:
        return _server(SERVERS[folded], _url(SERVERS[folded], rest))
    match folded:
        case "duckdb":
            return _file("duckdb", rest)
        case "sqlite":
            return _file("sqlite", rest)
        case "md" | "motherduck":
            raise UnsupportedFeatureError(
                "Lakes hosted by MotherDuck (md:) are not supported, as their catalogs are reached by MotherDuck's own extension "
                f"alone; use {_supported()}."
            )
    return _file("duckdb", text)


def without_secrets(url: sa.URL, text: str) -> str:
    """A text without the password of a URL, or without its user where a lost `:` made one of both."""
    for secret in (str(url.password or url.username or ""), str(url.query.get("password", ""))):
        text = text.replace(secret, "***") if secret else text
    return text


def _file(backend: Literal["duckdb", "sqlite"], text: str) -> CatalogLocation:
    if _PASSWORD.search(text) is not None:
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


def _quack(text: str) -> CatalogLocation:
    host = _HOST.fullmatch(text)
    port = int(host["port"] or QUACK_PORT) if host is not None else 0
    if host is None or not 0 < port < 65536:
        # not the text: it may hold a token
        raise UsageError("The URI of a server of quack is ducklake:quack:host:port; its token is in a secret.")
    return _served(sa.URL.create(QUACK.driver, host=host["host"].strip("[]"), port=port))


def _served(url: sa.URL) -> CatalogLocation:
    """The location of the catalog that a server of quack serves."""
    host = url.host or ""
    address = f"{f'[{host}]' if ':' in host else host}:{url.port}"
    return CatalogLocation("duckdb", url, None, _alias(host), f"{address} ({QUACK.label})", kind="quack")


def _unsupported(kind: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Catalogs in {kind} are not supported; use {_supported()}.")


def _supported() -> str:
    labels = list(dict.fromkeys(server.label for server in SERVERS.values()))
    return f"{', '.join(('DuckDB', 'SQLite', *labels[:-1]))} or {labels[-1]}"


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


def _url(server: Server, text: str) -> sa.URL:
    """The URL of a connection string."""
    parts, query = _words(text, server.label, server.words)
    if server.socket == "host" and parts.get("host", "").startswith("/"):
        parts["socket"] = parts.pop("host")
    if "socket" in parts:
        query[server.socket] = parts.pop("socket")
    port = parts.pop("port", None)
    if port is not None and not port.isdigit():
        raise UsageError("The port in the connection string is not a number.")
    return sa.URL.create(
        server.driver,
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
    if backend in ("duckdb", "sqlite"):
        return _file("sqlite" if backend == "sqlite" else "duckdb", url.database or "")
    server = SERVERS.get(backend)
    if server is None:
        raise _unsupported(backend)
    if server is QUACK:
        if not url.host or url.database or url.username:
            raise UsageError("The URL of a server of quack is quack://:token@host:port.")
        return _served(url.set(drivername=server.driver, port=url.port or QUACK_PORT))
    return _server(server, url.set(drivername=server.driver))


def _server(server: Server, url: sa.URL) -> CatalogLocation:
    name = url.database or server.default_database
    if name is None:
        raise UsageError(f"The {server.label} connection string names no database; add {server.database}=….")
    return CatalogLocation(server.dialect, url, None, _alias(name), f"{name} ({server.label})", kind=server.kinds[0])


def _alias(name: str) -> str:
    return re.sub(r"\W+", "_", name) or "lake"
