"""Spec 0.2: paths of schemas and tables, scoped options, column mappings; partition keys by column id."""

from __future__ import annotations

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.versions.version import Changes, Version

#: 0.1 counts the columns of a partition key from 0, among those the table has now.
_POSITIONS = (
    "SELECT table_id, column_id, row_number() OVER (PARTITION BY table_id ORDER BY column_order) - 1 AS position "
    "FROM {ducklake_column} WHERE parent_column IS NULL AND end_snapshot IS NULL"
)


def _convert(writes: Changes) -> None:
    positions = _POSITIONS.format(ducklake_column="ducklake_column")
    writes.text(
        f"UPDATE ducklake_partition_column SET column_id = (SELECT c.column_id FROM ({positions}) AS c "
        "WHERE c.table_id = ducklake_partition_column.table_id AND c.position = ducklake_partition_column.column_id)"
    )


VERSION = Version(
    "0.2",
    after=("0.1",),
    created={
        "ducklake_column_mapping": t.column_mapping.columns.values(),
        "ducklake_name_mapping": [column for column in t.name_mapping.columns if column.name != "is_partition"],
    },
    added=[
        (t.schema.c.path, "''"),
        (t.schema.c.path_is_relative, "TRUE"),
        (t.table.c.path, "''"),
        (t.table.c.path_is_relative, "TRUE"),
        (t.lake_metadata.c.scope, None),
        (t.lake_metadata.c.scope_id, None),
        (t.data_file.c.mapping_id, None),
    ],
    views={
        "ducklake_partition_column": "SELECT p.partition_id, p.table_id, p.partition_key_index, c.column_id, "
        f"p.transform AS transform FROM {{ducklake_partition_column}} AS p JOIN ({_POSITIONS}) AS c "
        "ON c.table_id = p.table_id AND c.position = p.column_id"
    },
    convert=_convert,
)
