"""Statements as texts and DuckDB's own connection, where SQLAlchemy's expressions do not suffice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ducklake_lab.duckdb.results import complete


def run_text(
    connection: sa.Connection, statement: str, options: Mapping[str, object] | None = None
) -> sa.CursorResult[Any]:
    """Runs a statement as written. A `%` in a quoted name stays; some drivers take it for a parameter."""
    formats = connection.dialect.name in ("postgresql", "mysql")
    text = statement.replace("%", "%%") if formats else statement
    return connection.exec_driver_sql(text, execution_options=options)


def raw_duckdb(connection: sa.Connection) -> Any:
    """The DuckDB connection below a SQLAlchemy one: for Arrow in and out."""
    wrapper: Any = connection.connection.driver_connection
    raw = getattr(wrapper, "c", wrapper)
    complete(raw)
    return raw
