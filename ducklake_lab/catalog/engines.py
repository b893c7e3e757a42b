"""Engines of SQLAlchemy for catalogs' databases, with the settings of each kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import duckdb_engine
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ducklake_lab.catalog import postgresql, quack
from ducklake_lab.catalog.duckdb_files import FILES
from ducklake_lab.catalog.servers import LOCK_SECONDS, QUACK
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import CatalogError

#: Identifiers in double quotes, as everywhere else; a text that does not fit is an error.
_MYSQL_SESSION = (
    "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', "
    f"innodb_lock_wait_timeout = {LOCK_SECONDS}, lock_wait_timeout = {LOCK_SECONDS}"
)
#: The option of an engine that holds its server.
SERVER = "ducklake_server"


class DuckDBDialect(duckdb_engine.Dialect):
    """The dialect of duckdb_engine, with statements compiled once: that takes longer than running them."""

    supports_statement_cache = True


sa.dialects.registry.register("duckdb.ducklake_lab", __name__, "DuckDBDialect")


@lru_cache(maxsize=32)
def engine_of(location: CatalogLocation, _process: int) -> sa.Engine:
    """The engine for a catalog, kept for when it is attached again: it has compiled its statements then.

    Raises:
        CatalogError: there is no driver for it.
    """
    # parameters hold keys of encrypted files
    server = location.server
    url, options = location.url, dict[str, Any](hide_parameters=True, execution_options={SERVER: server})
    path = location.path
    if server is QUACK:
        # a session that a server has lost is begun anew when it is used
        url = url.set(drivername=quack.DRIVER)
        options["creator"] = lambda: quack.connect(location)
    elif path is None:
        options["pool_pre_ping"] = True
    else:
        options["poolclass"] = NullPool
    if location.backend == "postgresql":
        url = url.set(drivername=postgresql.DRIVER)
        # prepared statements are forgotten at each rollback, which takes a message to the server
        options["connect_args"] = {"prepare_threshold": None}
    if location.backend == "mysql":
        # a socket is not encrypted: to prepare for it takes ten times as long as to connect
        local = "unix_socket" in url.query
        options["connect_args"] = {"init_command": _MYSQL_SESSION, "charset": "utf8mb4", "ssl_disabled": local}
    if location.backend == "duckdb" and path is not None:
        url = url.set(drivername="duckdb+ducklake_lab")
        options["creator"] = lambda: FILES.open(path, location.storage_version)
    try:
        engine = sa.create_engine(url, **options)
    except ImportError:
        if server is None:
            raise
        driver, extra = server.package
        raise CatalogError(
            f"{server.label} catalogs need the {driver} driver: pip install 'ducklake-lab[{extra}]'."
        ) from None
    if location.backend == "sqlite":
        _take_over_sqlite_transactions(engine)
    return engine


def _take_over_sqlite_transactions(engine: sa.Engine) -> None:
    """Let BEGIN IMMEDIATE take the write lock at once, so that nobody else takes the same ids."""

    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout = 3000")

    def began(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    listen: Callable[..., Any] = sa.event.listen
    listen(engine, "connect", connected)
    listen(engine, "begin", began)
