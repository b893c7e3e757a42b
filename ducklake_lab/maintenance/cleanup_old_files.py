"""cleanup_old_files: deletes files that were scheduled for it (spec: maintenance, cleaning up files)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import DataFileError
from ducklake_lab.file_paths import RealPaths, is_below
from ducklake_lab.parallel import in_parallel
from ducklake_lab.storage import Storage, fault_of
from ducklake_lab.transaction.cleanup import KnownTable, read_known_tables, read_scheduled, remove_scheduled
from ducklake_lab.transaction.shared_files import read_shared_files


def cleanup_old_files(lake: Lake, older_than: datetime | None, *, dry_run: bool) -> list[str]:
    """Deletes the files on the catalog's list; their absolute paths.

    A catalog is trusted within its data path only: files outside of it, symbolic links resolved, and
    files that a snapshot or a branch needs, stay where they are and on the list.

    Args:
        older_than: only those scheduled before; all for None.

    Raises:
        DataFileError: a file that a table of theirs needs is missing: they may hold its rows. Nothing was deleted.
        CatalogError: a branch shares files of the lake, and its catalog is missing. Nothing was deleted.
    """
    files, tables = _unneeded(lake, older_than)
    in_parallel(_tables_of([path for _, path in files], tables), _check_files)
    if files and not dry_run:
        lake.check_writable()
        Storage().delete(path for _, path in files)
        remove_scheduled(lake, files)
    return [path for _, path in files]


def count_old_files(lake: Lake, older_than: datetime | None) -> int:
    """Return how many files `cleanup_old_files` would delete; it raises its errors of branches, and looks at no file."""
    return len(_unneeded(lake, older_than)[0])


def _unneeded(lake: Lake, older_than: datetime | None) -> tuple[list[tuple[int, str]], Sequence[KnownTable]]:
    """Return the scheduled files that nothing needs, by id and path, and the tables of the lake if there are any scheduled."""
    scheduled = read_scheduled(lake, older_than)
    if not scheduled:
        return [], []
    real, tables = RealPaths().of, read_known_tables(lake)
    needed = {real(place) for table in tables for places, _ in table.files for place in places}
    # branches are looked for after the list of files was read
    needed |= read_shared_files(lake).keys()
    files = [(number, path) for number, path in scheduled if is_below(path, lake.data_path, real)]
    return [(number, path) for number, path in files if real(path) not in needed], tables


def _tables_of(paths: Iterable[str], tables: Sequence[KnownTable]) -> list[KnownTable]:
    """Return the tables whose files may have replaced some: those with a folder around them, else all tables."""
    by_folder: dict[str, list[KnownTable]] = {}
    for table in tables:
        for folder in table.folders:
            by_folder.setdefault(folder, []).append(table)
    owners: dict[int, KnownTable] = {}
    # one check for each folder, as its files belong to the same tables
    for folder in {path.rpartition("/")[0] + "/" for path in paths}:
        above = folder
        while above and above not in by_folder:
            above = above[:-1].rpartition("/")[0] + "/" if above != "/" else ""
        if not above:
            return list(tables)
        owners |= {id(table): table for table in by_folder[above]}
    return list(owners.values())


def _check_files(table: KnownTable) -> None:
    """Check that all files of a table exist with their sizes."""
    folder = table.folders[0] if len(table.folders) == 1 else None
    sizes = Storage().sizes((place for places, _ in table.files for place in places), folder)
    files = {next((p for p in places if sizes[p] is not None), places[0]): size for places, size in table.files}
    fault = fault_of(files, sizes)
    if fault is not None:
        raise DataFileError(
            f"Old files stay, as they may hold rows that are missing: {table.name} needs {fault}. "
            "Restore it from a backup, or DROP the table and expire its snapshots."
        )
