"""Reads and writes name mappings (spec: ducklake_column_mapping, ducklake_name_mapping)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.model.mapping import ColumnMapping, NameMapping


def read_mappings(connection: sa.Connection, table_id: int) -> dict[int, ColumnMapping]:
    """The mappings of a table's files, by id."""
    m, n = t.column_mapping, t.name_mapping
    query = (
        sa.select(n)
        .join(m, m.c.mapping_id == n.c.mapping_id)
        .where(m.c.table_id == table_id)
        .order_by(n.c.mapping_id, n.c.column_id)
    )
    rows: dict[tuple[int, int | None], list[Any]] = defaultdict(list)
    ids: dict[int, None] = {}
    for row in connection.execute(query).mappings():
        rows[row["mapping_id"], row["parent_column"]].append(row)
        ids[row["mapping_id"]] = None

    def build(mapping_id: int, parent: int | None) -> tuple[NameMapping, ...]:
        return tuple(
            NameMapping(
                row["source_name"],
                row["target_field_id"],
                bool(row["is_partition"]),
                build(mapping_id, row["column_id"]),
            )
            for row in rows.get((mapping_id, parent), ())
        )

    return {mapping_id: ColumnMapping(build(mapping_id, None)) for mapping_id in ids}


def insert_mapping(writes: Writes, table_id: int, mapping_id: int, mapping: ColumnMapping) -> None:
    """Writes a mapping."""
    writes.insert(t.column_mapping, mapping_id=mapping_id, table_id=table_id, type="map_by_name")
    rows: list[dict[str, object]] = [
        {
            "mapping_id": mapping_id,
            "column_id": number,
            "source_name": column.source_name,
            "target_field_id": column.target_field_id,
            "parent_column": parent,
            "is_partition": column.is_partition,
        }
        for number, parent, column in mapping.rows()
    ]
    writes.insert_many(t.name_mapping, rows)
