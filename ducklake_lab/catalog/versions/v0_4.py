"""Spec 0.4: macros, sort keys, variant statistics, merged files, schema versions table by table."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.versions.version import Changes, Version, definition

_VERSIONS_BY_TABLE = (
    "SELECT v.begin_snapshot, v.schema_version, t.table_id FROM {ducklake_schema_versions} AS v "
    "JOIN {ducklake_table} AS t ON v.begin_snapshot BETWEEN t.begin_snapshot "
    "AND COALESCE(t.end_snapshot, v.begin_snapshot)"
)

_DIGITS = "'0123456789'"
_BEFORE_COUNT = f"rtrim(rtrim(rest, {_DIGITS}), ':')"
#: `partial_file_info` of a merged file is `partial_max:9`, or `2:5|4:9`: 5 rows of snapshot 2, then 4 of snapshot 4.
#: Both say that snapshot 9, or 4, is the last of its rows. The file has the snapshot of each row in either case.
_LAST_SNAPSHOTS = (
    "WITH RECURSIVE parts(data_file_id, rest) AS ("
    "SELECT data_file_id, CAST(partial_file_info AS TEXT) FROM {ducklake_data_file} AS merged "
    # UNION ends on a text of another form, which stays as it is
    f"WHERE partial_file_info IS NOT NULL UNION SELECT data_file_id, rtrim(rtrim({_BEFORE_COUNT}, {_DIGITS}), '|') "
    "FROM parts WHERE rest LIKE '%:%') "
    "SELECT data_file_id, max(CASE WHEN rest LIKE 'partial_max:%' THEN CAST(substr(rest, 13) AS BIGINT) ELSE "
    f"CAST(NULLIF(substr({_BEFORE_COUNT}, length(rtrim({_BEFORE_COUNT}, {_DIGITS})) + 1), '') AS BIGINT) END) "
    "AS partial_max FROM parts WHERE rest LIKE '%:%' GROUP BY data_file_id"
)


def _convert(writes: Changes) -> None:
    _convert_partial_files(writes)
    by_table = _VERSIONS_BY_TABLE.format(
        ducklake_schema_versions="ducklake_schema_versions", ducklake_table="ducklake_table"
    )
    writes.text(
        "INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id) "
        f"{by_table} WHERE v.table_id IS NULL"
    )
    writes.text("DELETE FROM ducklake_schema_versions WHERE table_id IS NULL")


def _convert_partial_files(writes: Changes) -> None:
    """The reference forgets `2:5|4:9`, and with it at which snapshots the rows were there."""
    last_snapshots = writes.connection.execute(
        sa.text(_LAST_SNAPSHOTS.format(ducklake_data_file="ducklake_data_file"))
    ).all()
    writes.text("ALTER TABLE ducklake_data_file DROP COLUMN partial_file_info")
    writes.text(f"ALTER TABLE ducklake_data_file ADD COLUMN {definition(writes.connection, t.data_file.c.partial_max)}")
    f = t.data_file
    for file_id, last in last_snapshots:
        writes.write_to_earlier(f.update().where(f.c.data_file_id == file_id).values(partial_max=last))


VERSION = Version(
    "0.4",
    after=("0.3",),
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
        "ducklake_data_file": "SELECT f.*, last.partial_max FROM {ducklake_data_file} AS f "
        f"LEFT JOIN ({_LAST_SNAPSHOTS}) AS last ON last.data_file_id = f.data_file_id",
    },
    convert=_convert,
)
