"""Locks of a catalog's database that commits take, and statements that run again."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog.postgresql import UNREAD

#: What commits lock in PostgreSQL, beside the schema of the catalog (ADR 0052).
_COMMITS = 0x6C616B65
#: What takes the lock of statements that run again, waiting some seconds at most, and what gives it back.
TURNS = {
    "postgresql": (f"SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock({_COMMITS + 1}, 0)", "ROLLBACK"),
    "mysql": (
        "SELECT GET_LOCK(CONCAT('ducklake ', MD5(DATABASE())), 10)",
        "SELECT RELEASE_LOCK(CONCAT('ducklake ', MD5(DATABASE())))",
    ),
}


def lock_for_commit(connection: sa.Connection) -> None:
    """Makes this transaction the only one of ours that commits: two would read the same ids, and one of them lose.

    It must be the transaction's first statement.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif connection.dialect.name == "mysql":
        connection.exec_driver_sql("SELECT 1 FROM ducklake_metadata FOR UPDATE").all()
    elif connection.dialect.name == "postgresql":
        # no lock on a table: other clients, which take them in another order, could wait for us and we for them
        connection.exec_driver_sql(
            f"SELECT pg_advisory_xact_lock({_COMMITS}, hashtext(current_schema()))", execution_options=UNREAD
        )
