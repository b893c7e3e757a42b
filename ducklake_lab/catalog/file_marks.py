"""Detects changes of a catalog's files by their size and times, without opening them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

#: Endings of a catalog file and of its logs: DuckDB's, and SQLite's.
_ENDINGS = ("", ".wal", "-wal", "-journal")
#: Nanoseconds by which a change must be older than its mark: file systems count time in steps of up to two seconds.
_STEP = 2_500_000_000


@dataclass(frozen=True, slots=True)
class FileMark:
    """State of a catalog's files in the file system at a time.

    Attributes:
        files: device, inode, size in bytes, and times of change in ns of each file; None where there was none.
        taken: when it was taken, in ns since 1970.
    """

    files: tuple[tuple[int, ...] | None, ...]
    taken: int

    @property
    def is_settled(self) -> bool:
        """Returns whether every later change gets another time: the last change is older than one step of the clock."""
        return all(max(file[3:]) < self.taken - _STEP for file in self.files if file is not None)

    @property
    def has_log(self) -> bool:
        """Returns whether DuckDB's log was there."""
        return self.files[1] is not None

    @property
    def is_fine(self) -> bool:
        """Returns whether the file system counts time in small steps: not all times of change are whole seconds."""
        return any(moment % 1_000_000_000 for file in self.files if file is not None for moment in file[3:])

    def still_holds(self, path: Path) -> bool:
        """Returns whether no file has changed since."""
        return self.is_settled and mark_of(path).files == self.files


def mark_of(path: Path) -> FileMark:
    """The mark of a catalog file and its logs.

    They are not opened: closing one would take the locks away that this process has on it.
    """
    taken = time.time_ns()
    return FileMark(tuple(_known(f"{path}{ending}") for ending in _ENDINGS), taken)


def _known(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
