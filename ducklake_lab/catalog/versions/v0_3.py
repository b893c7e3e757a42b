"""Spec 0.3: authors and messages of commits, the snapshots of schema versions, further statistics."""

from __future__ import annotations

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.versions.version import Changes, Version

_FIRST_SNAPSHOTS = (
    "SELECT MIN(snapshot_id) AS begin_snapshot, schema_version FROM {ducklake_snapshot} GROUP BY schema_version"
)


def _convert(writes: Changes) -> None:
    first = _FIRST_SNAPSHOTS.format(ducklake_snapshot="ducklake_snapshot")
    writes.text(f"INSERT INTO ducklake_schema_versions {first} ORDER BY schema_version")


VERSION = Version(
    "0.3",
    after=("0.2",),
    created={"ducklake_schema_versions": [t.schema_versions.c.begin_snapshot, t.schema_versions.c.schema_version]},
    renamed={"ducklake_file_column_stats": "ducklake_file_column_statistics"},
    added=[
        (t.name_mapping.c.is_partition, "FALSE"),
        (t.snapshot_changes.c.author, None),
        (t.snapshot_changes.c.commit_message, None),
        (t.snapshot_changes.c.commit_extra_info, None),
        (t.file_column_stats.c.extra_stats, None),
        (t.table_column_stats.c.extra_stats, None),
    ],
    views={"ducklake_schema_versions": _FIRST_SNAPSHOTS},
    convert=_convert,
)
