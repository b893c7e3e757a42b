"""Spec 1.1: schemas in schemas, comments of view columns, exact bounds, counts of row groups."""

from __future__ import annotations

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.versions.version import Version

VERSION = Version(
    "1.1",
    created={"ducklake_view_column_tag": t.view_column_tag.columns.values()},
    added=[
        (t.data_file.c.row_group_count, None),
        (t.delete_file.c.row_group_count, None),
        (t.file_column_stats.c.min_is_exact, None),
        (t.file_column_stats.c.max_is_exact, None),
        (t.table_column_stats.c.min_is_exact, None),
        (t.table_column_stats.c.max_is_exact, None),
        (t.schema.c.parent_schema_id, None),
    ],
    after=("1.0", "1.1-dev1"),
    is_native=True,
    is_written=True,
    inlined_prefix="_ducklake_",
    inlines_variants=True,
)
