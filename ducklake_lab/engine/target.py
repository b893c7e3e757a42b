"""Tables that rows are written to, and the written rows and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from ducklake_lab.files.options import DeleteOptions, WriteOptions
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import WrittenFile


@dataclass(frozen=True, slots=True)
class Target:
    """A table whose rows a statement writes or deletes.

    Attributes:
        folder: its folder, an absolute path or URL ending in `/`.
        few: most rows that are inlined; -1 to inline none.
        can_inline: whether the values of rows can be inlined.
        sorted: the table with sort keys that need no lake; None if new rows are not sorted.
        next_snapshot: the likely id of the transaction's snapshot.
    """

    table: Table
    folder: str
    options: WriteOptions
    deletes: DeleteOptions
    few: int
    can_inline: Callable[[pa.Table], bool]
    sorted: Table | None
    next_snapshot: int

    def inlines(self, rows: pa.Table) -> bool:
        """Returns whether rows go into the catalog instead of files."""
        return rows.num_rows <= self.few and self.can_inline(rows)


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that were written to files, or few rows for the catalog.

    Attributes:
        rows: the rows for the catalog; None if they are in files.
        row_ids: their row ids; None for new rows.
    """

    count: int
    rows: pa.Table | None = None
    row_ids: pa.Array | None = None
    files: list[WrittenFile] = field(default_factory=list)
