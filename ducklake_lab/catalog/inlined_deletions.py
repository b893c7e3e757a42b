"""Deletions from data files that are kept in the catalog (spec: advanced_features/data_inlining)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.catalog.races import is_before_table
from ducklake_lab.model.quoting import quote_identifier


def table_name(table_id: int) -> str:
    return f"ducklake_inlined_delete_{table_id}"


def tables(connection: sa.Connection, database: CatalogDatabase) -> dict[int, str]:
    """The inlined delete tables there are, by table id."""
    prefix = "ducklake_inlined_delete_"
    names = database.tables_with_prefix(connection, prefix)
    return {int(name[len(prefix) :]): name for name in names if name[len(prefix) :].isdigit()}


def read(
    connection: sa.Connection, database: CatalogDatabase, table_id: int, up_to: int
) -> dict[int, list[tuple[int, int]]]:
    """Inlined deletions from data files by snapshots up to and including one: file id -> [(position, snapshot id)], sorted."""
    condition = f"begin_snapshot <= {up_to:d} ORDER BY file_id, row_id"
    deletes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for file_id, position, begin in _rows(connection, database, table_id, "file_id, row_id, begin_snapshot", condition):
        deletes[file_id].append((position, begin))
    return dict(deletes)


def files_since(connection: sa.Connection, database: CatalogDatabase, table_id: int, since: int) -> frozenset[int]:
    """The data files from which snapshots after one deleted rows, as inlined deletions."""
    found = _rows(connection, database, table_id, "DISTINCT file_id", f"begin_snapshot > {since:d}")
    return frozenset(file_id for (file_id,) in found)


def _rows(
    connection: sa.Connection, database: CatalogDatabase, table_id: int, columns: str, condition: str
) -> Sequence[Sequence[Any]]:
    """The rows of a table's inlined delete table for which a condition holds; none where there is no such table."""
    name = table_name(table_id)
    if not database.has_table(connection, name):
        return ()
    try:
        return connection.execute(sa.text(f"SELECT {columns} FROM {quote_identifier(name)} WHERE {condition}")).all()
    except sa.exc.DBAPIError as error:
        if is_before_table(error):
            return ()
        raise


def create_table(connection: sa.Connection, database: CatalogDatabase, table_id: int) -> None:
    """Creates the table that takes inlined deletions from a table's files."""
    definitions = "file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT"
    database.create_table(connection, table_name(table_id), definitions)


def insert(
    connection: sa.Connection, table_id: int, deletes: Sequence[tuple[int, Sequence[int]]], snapshot_id: int
) -> None:
    """Records deletions (file id, positions) in the table's inlined delete table."""
    name = quote_identifier(table_name(table_id))
    connection.execute(
        sa.text(f"INSERT INTO {name} VALUES (:file, :position, :snapshot)"),
        [
            {"file": file_id, "position": position, "snapshot": snapshot_id}
            for file_id, positions in deletes
            for position in positions
        ],
        execution_options=UNREAD,
    )


def remove(connection: sa.Connection, table_id: int, up_to: int) -> None:
    """Removes the inlined deletions of a table by snapshots up to and including one."""
    name = quote_identifier(table_name(table_id))
    run_text(connection, f"DELETE FROM {name} WHERE begin_snapshot <= {up_to:d}")
