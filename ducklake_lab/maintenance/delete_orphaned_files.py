"""delete_orphaned_files: deletes files below the data path that the catalog does not know (spec: maintenance)."""

from __future__ import annotations

from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.file_paths import RealPaths, is_below
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.cleanup import read_known_files, read_scheduled
from ducklake_lab.transaction.shared_files import read_shared_files

#: Names of a lake's files; all others in its folder belong to somebody else.
_SUFFIXES = (".parquet", ".puffin")


def delete_orphaned_files(lake: Lake, older_than: datetime | None, *, dry_run: bool) -> list[str]:
    """Deletes data and delete files that the catalog does not name; their absolute paths, in order.

    Symbolic links below the data path, and their targets, are not the lake's and stay. So do files that a branch shares.

    Args:
        older_than: only files last changed before; all for None. Files of a transaction that is not committed yet are
            orphans too.
    """
    storage = Storage()
    # the files first: files committed while they are listed are then among the known ones
    listed = [(path, changed) for path, changed in storage.list_changed(lake.data_path) if path.endswith(_SUFFIXES)]
    known_files = (
        read_known_files(lake) | {path for _, path in read_scheduled(lake, None)} | read_shared_files(lake).keys()
    )
    # a path stored in full may name a file in the lake in another spelling
    elsewhere = {path.rpartition("/")[2] for path in known_files if not path.startswith(lake.data_path)}
    strangers = [
        lake.data_path + path
        for path, changed in listed
        if lake.data_path + path not in known_files
        and path.rpartition("/")[2] not in elsewhere
        and (older_than is None or changed < older_than)
    ]
    # a known path may lead through a symbolic link to a file that is listed where it is
    real = RealPaths().of
    named = set(map(real, known_files)) if strangers else set()
    orphans = [path for path in strangers if real(path) not in named and is_below(path, lake.data_path, real)]
    if orphans and not dry_run:
        lake.check_writable()
        storage.delete(orphans)
    return orphans
