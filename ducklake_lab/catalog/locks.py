"""The lock of a catalog's database that commits take."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import servers
from ducklake_lab.catalog.engines import SERVER
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.catalog.servers import Server


def lock_for_commit(connection: sa.Connection, *, queue: bool = True) -> None:
    """Make this transaction the only one of ours that commits: two would read the same ids, and one would fail.

    It must be the transaction's first statement. A wait that ends in vain is an error, see `races.is_lock_timeout`.

    Args:
        queue: wait for other commits; without it, the key of snapshots decides. SQLite's commits always wait.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    # no default: with an engine made elsewhere, commits would take no lock, unnoticed
    server: Server | None = connection.get_execution_options()[SERVER]
    if server is None or server.lock is None:
        return
    if server.bound is not None:
        connection.exec_driver_sql(server.bound.format(seconds=servers.LOCK_SECONDS), execution_options=UNREAD)
    if queue and server.dialect == "postgresql":
        connection.exec_driver_sql(server.lock, execution_options=UNREAD)
    elif queue:
        connection.exec_driver_sql(server.lock).all()
