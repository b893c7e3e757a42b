"""Catalogs that a DuckDB serves by its extension quack: a dialect of SQLAlchemy, and logins."""

from __future__ import annotations

import os
from typing import Any, cast

import duckdb_engine
import sqlalchemy as sa
from duckdb_engine import ConnectionWrapper

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.duckdb.remote import RemoteConnection
from ducklake_lab.errors import CatalogError

#: The environment variable with the token of servers for which there is no secret.
TOKEN = "QUACK_TOKEN"
_AWAITED = "ducklake_awaited"
#: Execution options of a statement that is run at once, rather than with the commit: its errors or counts are wanted.
AWAITED = {_AWAITED: True}


class QuackConnection(ConnectionWrapper):
    """A connection of the driver, over a session on the server."""

    def __init__(self, remote: RemoteConnection) -> None:
        super().__init__(cast(Any, remote))
        self.remote = remote

    def prepare(self, statements: str) -> None:
        """Create the connection's temporary objects, such as views."""
        self.remote.prepare(statements)


def expect(connection: sa.Connection, query: sa.Select[Any], value: int) -> None:
    """Have a commit on a served catalog refused, as one that lost a race, unless a query gives a value at its begin.

    Reads are no part of the commit's transaction there. Elsewhere nothing is to be done.
    """
    driver = connection.connection.driver_connection
    if isinstance(driver, QuackConnection):
        text = query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
        driver.remote.expect(f"({text}) = {value:d}")


def is_lost(connection: sa.Connection) -> bool:
    """Return whether the server of a catalog was lost, so that nobody knows whether it ran the last text."""
    driver = None if connection.invalidated or connection.closed else connection.connection.driver_connection
    return driver is None or (isinstance(driver, QuackConnection) and driver.remote.is_broken)


class QuackDialect(duckdb_engine.Dialect):
    """The dialect of duckdb_engine over a server: statements that write go with the commit."""

    supports_statement_cache = True

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        remote: RemoteConnection = cursor.connection.remote
        options = context.execution_options if context is not None else {}
        if _is_snapshot(context):
            # of two commits at once the server refuses one, and DuckDB's own client is to see that with its first statement
            remote.write_first(statement, parameters or ())
        else:
            remote.execute(statement, parameters or (), awaited=bool(options.get(_AWAITED)))

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        return connection is not None and bool(connection.remote.is_broken)

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        cursor.connection.remote.executemany(statement, parameters)


def _is_snapshot(context: Any) -> bool:
    """Return whether a statement inserts a snapshot."""
    compiled = getattr(context, "compiled", None)
    return compiled is not None and compiled.isinsert and compiled.statement.table is t.snapshot


#: The dialect's name in URLs.
DRIVER = "duckdb+ducklake_lab_quack"
sa.dialects.registry.register("duckdb.ducklake_lab_quack", __name__, "QuackDialect")


def connect(location: CatalogLocation) -> QuackConnection:
    """Opens a session on the server of a catalog.

    Raises:
        CatalogError: there is no token for it.
        duckdb.Error: see `RemoteConnection`.
    """
    token = location.url.password or os.environ.get(TOKEN)
    if not token:
        raise CatalogError(
            f"The catalog {location.display} needs the token of its server: CREATE SECRET (TYPE quack, TOKEN '…'), or set "
            f"{TOKEN}."
        )
    plain = str(location.url.query.get("disable_ssl", "")).casefold() in ("true", "1")
    return QuackConnection(RemoteConnection(location.address, str(token), plain=plain))
