"""Looks for the files behind answers that the catalog gives, where another catalog names them too (ADR 113)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from time import monotonic

from ducklake_lab.catalog.branches.registry import may_share_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import DataFileError
from ducklake_lab.file_paths import is_local
from ducklake_lab.model.entries import Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.scan.read_cache import KeptReads
from ducklake_lab.storage import Storage, fault_of

#: Files of a table that are looked for each time: one request lists as many.
_FEW = 1_000
#: Seconds for which a look at more files holds.
_HOLDS = 60

_storage = Storage()
_looked: KeptReads[tuple[object, ...], bool] = KeptReads(64, lambda _: 1)


def check_present(lake: Lake, title: str, files: Iterable[ScanFile]) -> None:
    """Check that files are there, before the catalog answers for them; of a lake that shares none, nothing is asked.

    Args:
        title: the table's name in the error.

    Raises:
        DataFileError: one is missing, or the store does not say.
    """
    if not _shares(lake):
        return
    paths = tuple(path for file in files for path in (file.path, file.delete_path) if path is not None)
    if len(paths) <= _FEW:
        _look(title, paths)
    else:
        _looked.read((paths, monotonic() // _HOLDS), lambda: _look(title, paths))


def check_table(lake: Lake, state: CatalogState, table: Table) -> None:
    """Check the files of a committed table, as `check_present` does."""
    if _shares(lake):
        with lake.connect() as connection:
            plan = plan_scan(lake, connection, state, table)
        check_present(lake, state.qualified_name(table), plan.files)


def _shares(lake: Lake) -> bool:
    if is_local(lake.data_path):
        return False
    with lake.connect() as connection:
        return may_share_files(lake.option_rows(connection))


def _look(title: str, paths: Iterable[str]) -> bool:
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        folders[_folder(path)].append(path)
    for folder, inside in folders.items():
        fault = fault_of(dict.fromkeys(inside), _storage.sizes(inside, folder))
        if fault is not None:
            raise DataFileError(
                f"{title} needs {fault}; another client deleted it. session.doctor() lists all that are missing; "
                "restore them from a backup."
            )
    return True


def _folder(path: str) -> str:
    """Return the folder of a table that a file is in, above the folders of partitions."""
    *folders, _ = path.split("/")
    while folders and "=" in folders[-1]:
        folders.pop()
    return "/".join(folders) + "/"
