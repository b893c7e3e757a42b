"""Spec 1.1-dev1: read, never written. It adds columns, and prefixes the format's own ones in inlined data tables."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t

VERSION = "1.1-dev1"
_OWN = ("row_id", "begin_snapshot", "end_snapshot")


def views(connection: sa.Connection, schema: str) -> dict[str, str]:
    """SELECTs that show the inlined data tables as 1.0 has them, by their names."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    own = ", ".join(f"rows._ducklake_{name} AS {name}" for name in _OWN)
    names = connection.execute(sa.select(t.inlined_data_tables.c.table_name).distinct()).scalars()
    return {quote(name): f"SELECT {own}, rows.* FROM {schema}.{quote(name)} AS rows" for name in names}
