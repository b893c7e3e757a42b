"""Places in a table's history that a stream has read up to, and the limits of one batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.scan.plan import ScanFile, ScanPlan

#: The snapshot of an offset at which nothing has been read: the table as it is comes first.
NOTHING = -1


@dataclass(frozen=True, slots=True)
class Offset:
    """Everything up to a snapshot, or up to some of the files that it inserted.

    Attributes:
        files: the number of files of the snapshot that have been read; None for all of it.
        mark: digest of these files: other ones in their place are an error, not other rows.
        initial: the files are those of the whole table at the snapshot, with which a stream begins.
    """

    snapshot: int
    files: int | None = None
    mark: str = ""
    initial: bool = False

    @classmethod
    def of(cls, offset: dict[str, Any]) -> Offset:
        return cls(offset["snapshot"], offset.get("files"), offset.get("mark", ""), offset.get("initial", False))

    def json(self) -> dict[str, Any]:
        """The offset as Spark keeps it in a checkpoint."""
        if self.files is None:
            return {"snapshot": self.snapshot}
        return {"snapshot": self.snapshot, "files": self.files, "mark": self.mark, "initial": self.initial}

    def rest(self, plan: ScanPlan, up_to: int | None = None) -> list[ScanFile]:
        """The files of the snapshot that have not been read, on request up to a number.

        Raises:
            DuckLakeError: the files that have been read are no longer those of the snapshot.
        """
        files = ordered(plan)
        if self.files is not None and mark_of(files[: self.files]) != self.mark:
            raise DuckLakeError(
                f"The files of snapshot {self.snapshot} were merged after {self.files} of them had been read, so the rest "
                "cannot be found. Start the stream with a new checkpoint."
            )
        return files[self.files or 0 : up_to]


def ordered(plan: ScanPlan) -> list[ScanFile]:
    """The files of a plan in the order in which a stream reads them."""
    return sorted(plan.files, key=lambda file: file.data_file.data_file_id)


def mark_of(files: Iterable[ScanFile]) -> str:
    """A digest of files."""
    return hashlib.sha256(repr([file.data_file.data_file_id for file in files]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Size:
    """The size of what a batch reads."""

    files: int = 0
    size: int = 0
    rows: int = 0

    @classmethod
    def of(cls, files: Sequence[ScanFile], plan: ScanPlan | None = None) -> Size:
        """The size of files, and of the inlined rows of a plan."""
        inlined = plan.inlined.rows if plan is not None and plan.inlined is not None else None
        data_files = [file.data_file for file in files]
        return cls(
            len(data_files) + (inlined is not None),
            sum(file.file_size_bytes for file in data_files) + (inlined.nbytes if inlined is not None else 0),
            sum(file.record_count for file in data_files) + (inlined.num_rows if inlined is not None else 0),
        )

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.size + other.size, self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one batch; None for no limit. At least one file, or one snapshot, is read."""

    files: int | None = None
    size: int | None = None
    rows: int | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.files, self.size, self.rows))

    def allow(self, batch: Size) -> bool:
        """Whether a batch may have this size."""
        pairs = ((batch.files, self.files), (batch.size, self.size), (batch.rows, self.rows))
        return all(limit is None or size <= limit for size, limit in pairs)

    def first(self, files: Sequence[ScanFile], taken: Size) -> int:
        """The number of files that a batch may read besides what it has; at least one where it has none."""
        for count, file in enumerate(files):
            taken += Size.of([file])
            if not self.allow(taken) and taken != Size.of([file]):
                return count
        return len(files)
