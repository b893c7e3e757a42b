"""Counts of visible and of deleted rows in data files: from the catalog alone where it has them.

The catalog does not show how the rows of a merged file, or the deletions of a delete file, divide among snapshots.
Nor does it show whether a row is deleted twice, by a delete file and inlined. Then the snapshot ids and positions in
the files are read, nothing else of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ducklake_lab.parallel import in_parallel
from ducklake_lab.scan.plan import ScanFile
from ducklake_lab.scan.positions import deleted_positions, deletions_by_snapshot, row_snapshots, rows_by_snapshot
from ducklake_lab.storage import Storage


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of a data file as a scan sees it.

    Attributes:
        rows: those in it, deleted ones included.
        deleted: how many of these are deleted.
    """

    rows: int
    deleted: int

    @property
    def live(self) -> int:
        return self.rows - self.deleted


def count_rows(files: Sequence[ScanFile]) -> list[FileRows]:
    """The rows of each file.

    Raises:
        DataFileError: the catalog does not say it, and the file that does is missing or cannot be read.
    """
    from_catalog = [_known(file) for file in files]
    read = iter(in_parallel((file for file, counts in zip(files, from_catalog, strict=True) if counts is None), _read))
    return [counts or next(read) for counts in from_catalog]


def live_rows(files: Sequence[ScanFile]) -> int:
    """The rows of all the files that are not deleted."""
    return sum(file.live for file in count_rows(files))


def _known(file: ScanFile) -> FileRows | None:
    """Return the counts from the catalog; None where it does not have them."""
    delete = file.delete_file
    if file.is_bounded:
        return None
    if delete is None:
        return FileRows(file.data_file.record_count, len(file.inlined_deletes))
    last, up_to = delete.partial_max, file.deleted_up_to
    if file.inlined_deletes or (up_to is not None and (last is None or last > up_to)):
        return None
    return FileRows(file.data_file.record_count, delete.delete_count)


def _read(file: ScanFile) -> FileRows:
    """Return the counts from the files."""
    data_file = file.data_file
    if file.rows_from is not None or file.rows_except:
        return _read_within(file)
    rows = data_file.record_count
    if file.rows_up_to is not None:
        named = rows_by_snapshot(file.path, data_file.encryption_key)
        rows = rows if named is None else _up_to(named, file.rows_up_to)
    if file.delete_file is None or file.inlined_deletes or file.delete_path is None:
        return FileRows(rows, _deleted(file))
    counts = deletions_by_snapshot(file.delete_path, file.delete_file)
    if counts is None or file.deleted_up_to is None:
        return FileRows(rows, file.delete_file.delete_count)
    return FileRows(rows, _up_to(counts, file.deleted_up_to))


def _read_within(file: ScanFile) -> FileRows:
    """A delete file names rows of any snapshot; a deletion counts if its row is within bounds."""
    storage = Storage()
    snapshots = row_snapshots(file.path, file.data_file.encryption_key, storage)
    if snapshots is None:
        snapshots = np.full(file.data_file.record_count, file.data_file.begin_snapshot, np.int64)
    low = file.rows_from if file.rows_from is not None else 0
    within = (snapshots >= low) & ~np.isin(snapshots, file.rows_except)
    if file.rows_up_to is not None:
        within &= snapshots <= file.rows_up_to
    positions = deleted_positions([file], storage).get(file.path, np.zeros(0, np.int64))
    return FileRows(int(within.sum()), int(within[positions].sum()))


def _deleted(file: ScanFile) -> int:
    return len(deleted_positions([file], Storage()).get(file.path, ()))


def _up_to(counts: Mapping[int, int], snapshot_id: int) -> int:
    return sum(count for number, count in counts.items() if number <= snapshot_id)
