"""Looks for the damage of a catalog, after reading it has failed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from ducklake_lab.duckdb import library as duckdb

#: Columns that may be NULL; all others of the metadata tables must not.
_MAY_BE_NULL = frozenset(
    "end_snapshot changes_made author commit_message commit_extra_info file_order footer_size row_id_start partition_id "
    "encryption_key mapping_id partial_max column_size_bytes value_count null_count min_value max_value contains_nan "
    "contains_null extra_stats initial_default default_value nulls_allowed parent_column default_value_type "
    "default_value_dialect scope scope_id column_aliases partition_value is_partition target_field_id parameter_type "
    "path_is_relative file_format sort_direction null_order dialect value schema_uuid table_uuid view_uuid "
    "table_id variant_path shredded_type parent_schema_id row_group_count min_is_exact max_is_exact".split()
)
#: Columns of these tables that must not be NULL, although those of other tables with their names may.
_NEVER_NULL = frozenset({("ducklake_inlined_data_tables", "table_id")})


def find_damage(connection: sa.Connection, tables: sa.MetaData) -> str | None:
    """The first fault found in the metadata tables, as a clause; None where none is found.

    It ends the connection's transaction.
    """
    if connection.invalidated or not _runs(connection, sa.select(sa.literal(1))):
        return None  # the connection takes no query any more
    for table in tables.sorted_tables:
        fault = _unreadable(connection, table) or _misfit(connection, table)
        if fault is not None:
            return fault
    return None


def _unreadable(connection: sa.Connection, table: sa.Table) -> str | None:
    """Find a table or column that is missing."""
    if _runs(connection, sa.select(table).limit(0)):
        return None
    if not _runs(connection, sa.select(sa.literal(1)).select_from(table).limit(0)):
        return f"its table {table.name} is missing or cannot be read"
    missing = next((c.name for c in table.columns if not _runs(connection, sa.select(c).limit(0))), None)
    return f"the column {missing} of {table.name} is missing" if missing else None


def _misfit(connection: sa.Connection, table: sa.Table) -> str | None:
    """Find a forbidden NULL, or in SQLite a value of another type."""
    for column in table.columns:
        may_be_null = column.name in _MAY_BE_NULL and (table.name, column.name) not in _NEVER_NULL
        if not may_be_null and _holds(connection, column, column.is_(None)):
            return f"{column.name} is NULL in a row of {table.name}"
        if connection.dialect.name == "sqlite" and isinstance(column.type, sa.BigInteger):
            kind = sa.func.typeof(column, type_=sa.String)
            if _holds(connection, column, kind.not_in(("integer", "null"))):
                return f"{column.name} is not a number in a row of {table.name}"
    return None


def _holds(connection: sa.Connection, column: sa.ColumnElement[object], condition: sa.ColumnElement[bool]) -> bool:
    query = sa.select(sa.literal(1)).select_from(column.table).where(condition).limit(1)
    return _runs(connection, query, rows=True)


def _runs(connection: sa.Connection, query: sa.Select[Any], *, rows: bool = False) -> bool:
    """Returns whether a query runs; with `rows`, whether it also finds a row."""
    try:
        row = connection.execute(query).first()
    except (sa.exc.SQLAlchemyError, duckdb.Error):
        with suppress(sa.exc.SQLAlchemyError, duckdb.Error):
            connection.rollback()
        return False
    return row is not None or not rows
