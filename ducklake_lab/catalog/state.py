"""Reads all entries at a snapshot: a fixed, small number of set-based queries, whatever the number of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import attachments, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.columns import Connect, columns_by_table, columns_of, flag
from ducklake_lab.catalog.tables import visible
from ducklake_lab.collecting import without_collecting
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Schema, Snapshot, Table, View
from ducklake_lab.model.quoting import schema_path
from ducklake_lab.model.state import CatalogState, Tables

#: Up to so many tables, the columns of all of them are read at once.
_FEW_TABLES = 100
#: With UUIDs as texts, which drivers make objects of.
_TABLES = sa.select(
    t.table.c.table_id,
    t.table.c.schema_id,
    t.table.c.table_name,
    sa.cast(t.table.c.table_uuid, sa.String),
    t.table.c.path,
    t.table.c.path_is_relative,
)


@without_collecting()
def read_state(connection: sa.Connection, snapshot: Snapshot, connect: Connect) -> CatalogState:
    """All entries at the snapshot.

    Args:
        connect: opens the catalog again for columns of many tables, which are read when they are first asked for.
    """
    at = snapshot.snapshot_id
    partitions = attachments.partitions(connection, at)
    sorts = attachments.sorts(connection, at)
    comments, live, tags = attachments.comments_and_tags(connection, at)
    column_comments = attachments.view_column_comments(connection, at)
    schemas, hidden = _schemas(connection, at)
    tables = {
        table_id: row
        for table_id, *row in connection.execute(_TABLES.where(visible(t.table, at))).all()
        if row[0] not in hidden
    }
    columns = columns_of(connection, at) if len(tables) <= _FEW_TABLES else columns_by_table(snapshot, connect)

    def make(table_id: int) -> Table:
        schema_id, name, uuid, path, path_is_relative = tables[table_id]
        return Table(
            table_id=table_id,
            uuid=uuid,
            schema_id=schema_id,
            name=name,
            path=path or "",
            columns=columns(table_id),
            path_is_relative=flag(path_is_relative),
            partition=partitions.get(table_id),
            sort=sorts.get(table_id),
            comment=comments.get(table_id),
            is_live=table_id in live,
            tags=tags.get(table_id, ()),
        )

    names = {table_id: (row[0], row[1]) for table_id, row in tables.items()}
    views = {
        row["view_id"]: View(
            row["view_id"],
            row["view_uuid"],
            row["schema_id"],
            row["view_name"],
            row["dialect"],
            row["sql"],
            row["column_aliases"] or "",
            comments.get(row["view_id"]),
            column_comments.get(row["view_id"], {}),
        )
        for row in _rows(connection, sa.select(t.view).where(visible(t.view, at)))
        if row["schema_id"] not in hidden
    }
    macros = {i: macro for i, macro in attachments.macros(connection, at).items() if macro.schema_id not in hidden}
    return CatalogState(snapshot, schemas, Tables(names, make, tagged=tags.keys() & names.keys()), views, macros)


def _schemas(connection: sa.Connection, at: int) -> tuple[dict[int, Schema], set[int]]:
    """Return the schemas of a snapshot by id, and the ids of invisible ones, whose parent is not visible."""
    s = t.schema
    parent = versions.column(connection, s.c.parent_schema_id)
    query = sa.select(s.c.schema_id, s.c.schema_name, parent, s.c.schema_uuid, s.c.path, s.c.path_is_relative)
    rows = {schema_id: row for schema_id, *row in connection.execute(query.where(visible(s, at))).all()}
    schemas, hidden = {}, set()
    for schema_id, (own, above, uuid, path, relative) in rows.items():
        names, parent_id, seen = [own], above, {schema_id}
        while parent_id in rows and parent_id not in seen:
            seen.add(parent_id)
            names.insert(0, rows[parent_id][0])
            parent_id = rows[parent_id][1]
        if parent_id in seen:
            raise CatalogError(
                f"The catalog is damaged: the schema {own} is inside of itself; restore it from a backup."
            )
        if parent_id is None:
            schemas[schema_id] = Schema(schema_id, uuid, schema_path(names), path or "", flag(relative), above)
        else:
            hidden.add(schema_id)
    return schemas, hidden


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[Any]:
    return connection.execute(query).mappings().all()
