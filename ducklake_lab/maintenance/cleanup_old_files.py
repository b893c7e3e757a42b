"""cleanup_old_files: deletes files that were scheduled for it (spec: maintenance, cleaning up files)."""

from __future__ import annotations

from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.storage import RealPaths, Storage, is_below
from ducklake_lab.transaction.cleanup import read_known_files, read_scheduled, remove_scheduled


def cleanup_old_files(lake: Lake, older_than: datetime | None, *, dry_run: bool) -> list[str]:
    """Deletes the files on the catalog's list; their absolute paths.

    A catalog is not trusted further than its lake reaches: files outside of the data path, symbolic links resolved, and
    files that a snapshot needs, stay where they are and on the list.

    Args:
        older_than: only those scheduled before; all for None.
    """
    scheduled = read_scheduled(lake, older_than)
    real = RealPaths().of
    needed = set(map(real, read_known_files(lake))) if scheduled else set()
    files = [
        (file_id, path)
        for file_id, path in scheduled
        if is_below(path, lake.data_path, real) and real(path) not in needed
    ]
    if files and not dry_run:
        lake.check_writable()
        Storage().delete(path for _, path in files)
        remove_scheduled(lake, files)
    return [path for _, path in files]
