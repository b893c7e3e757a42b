"""The lock of a catalog's database that commits take."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog.engines import SERVER
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.catalog.servers import Server


def lock_for_commit(connection: sa.Connection) -> None:
    """Makes this transaction the only one of ours that commits: two would read the same ids, and one of them lose.

    It must be the transaction's first statement.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    # no default: on an engine made elsewhere, commits would not be locked, and nobody would notice
    server: Server | None = connection.get_execution_options()[SERVER]
    if server is None:
        return
    if server.dialect == "postgresql":
        connection.exec_driver_sql(server.lock, execution_options=UNREAD)
    else:
        connection.exec_driver_sql(server.lock).all()
