"""CHECKPOINT: all of maintenance; each step prepares the next one (spec: maintenance)."""

from __future__ import annotations

from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import Options
from ducklake_lab.maintenance.options import moment_before

#: Age from which unneeded files are deleted, where the lake does not set it.
DEFAULT_DELETE_OLDER_THAN = "2 days"

#: The functions that CHECKPOINT calls.
STEPS = (
    "flush_inlined_data",
    "expire_snapshots",
    "merge_adjacent_files",
    "rewrite_data_files",
    "cleanup_old_files",
    "delete_orphaned_files",
)


def expire_older_than(options: Options) -> datetime | None:
    """Return the time before which snapshots expire automatically; None where the lake does not set it."""
    text = options.get("expire_older_than")
    return moment_before(text) if text else None


def delete_older_than(options: Options) -> datetime | None:
    """Return the time before which unneeded files are deleted automatically; None where the lake sets never."""
    text = options.get("delete_older_than")
    if text is None:
        text = DEFAULT_DELETE_OLDER_THAN
    return moment_before(text) if text else None


def read_lake_options(lake: Lake) -> Options:
    with lake.connect() as connection:
        return lake.options(connection)
