"""Spec 0.3 to 0.4: macros, sort keys, variant statistics, merged files, schema versions table by table."""

from __future__ import annotations

import re

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.migrations.step import Step, definition

_VERSIONS_BY_TABLE = (
    "SELECT v.begin_snapshot, v.schema_version, t.table_id FROM {ducklake_schema_versions} AS v "
    "JOIN {ducklake_table} AS t ON v.begin_snapshot BETWEEN t.begin_snapshot "
    "AND COALESCE(t.end_snapshot, v.begin_snapshot)"
)


def _convert(connection: sa.Connection) -> None:
    _convert_partial_files(connection)
    by_table = _VERSIONS_BY_TABLE.format(
        ducklake_schema_versions="ducklake_schema_versions", ducklake_table="ducklake_table"
    )
    connection.exec_driver_sql(
        "INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id) "
        f"{by_table} WHERE v.table_id IS NULL"
    )
    connection.exec_driver_sql("DELETE FROM ducklake_schema_versions WHERE table_id IS NULL")


def _convert_partial_files(connection: sa.Connection) -> None:
    """`partial_max:9` becomes 9. The older `2:5|4:9` has no counterpart; the reference drops it too."""
    rows = connection.exec_driver_sql(
        "SELECT data_file_id, partial_file_info FROM ducklake_data_file WHERE partial_file_info IS NOT NULL"
    ).all()
    connection.exec_driver_sql("ALTER TABLE ducklake_data_file DROP COLUMN partial_file_info")
    connection.exec_driver_sql(
        f"ALTER TABLE ducklake_data_file ADD COLUMN {definition(connection, t.data_file.c.partial_max)}"
    )
    for file_id, info in rows:
        highest = re.search(r"partial_max:(\d+)", info)
        if highest is not None:
            f = t.data_file
            connection.execute(f.update().where(f.c.data_file_id == file_id).values(partial_max=int(highest[1])))


STEP = Step(
    "0.3",
    "0.4",
    created={
        table.name: table.columns.values()
        for table in (t.macro, t.macro_impl, t.macro_parameters, t.sort_info, t.sort_expression, t.file_variant_stats)
    },
    added=[
        (t.column.c.default_value_type, "'literal'"),
        (t.column.c.default_value_dialect, None),
        (t.schema_versions.c.table_id, None),
        (t.delete_file.c.partial_max, None),
    ],
    views={
        "ducklake_schema_versions": _VERSIONS_BY_TABLE,
        "ducklake_data_file": "SELECT f.*, CASE WHEN f.partial_file_info LIKE 'partial_max:%' "
        "THEN CAST(substr(f.partial_file_info, 13) AS BIGINT) END AS partial_max FROM {ducklake_data_file} AS f",
    },
    convert=_convert,
)
