"""The life of a row: the snapshots that changed it, with their commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args

LifeKind = Literal["insert", "update", "delete", "alter"]
KINDS: tuple[LifeKind, ...] = get_args(LifeKind)


class CellChange(NamedTuple):
    """A cell with its values around a change, as DuckDB's texts; None for NULL, and where there is none."""

    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class RowChanged:
    """A change of a row.

    Attributes:
        kind: `alter` for the snapshot that added a column.
        time: the commit's; None for a snapshot that has expired, as are the members below.
        cell: the number of the execution in the notebook.
        cells: the cells that it changed, in the order of the columns.
    """

    snapshot_id: int
    kind: LifeKind
    time: datetime | None
    author: str | None
    message: str | None
    statement: str | None
    notebook: str | None
    cell: int | None
    cells: Sequence[CellChange]


@dataclass(frozen=True, slots=True)
class RowLife:
    """The changes of a row up to a snapshot.

    Attributes:
        table: `schema.table`.
        snapshot_id: the snapshot.
        changes: oldest first.
        known_from: the snapshot from which on the life is known; None where it is all known.
    """

    table: str
    row_id: int
    snapshot_id: int
    changes: Sequence[RowChanged]
    known_from: int | None

    def setter(self, column: str) -> int | None:
        """Returns the place of the newest change of a cell; None where an expired snapshot has set it."""
        places = range(len(self.changes) - 1, -1, -1)
        return next((i for i in places if any(cell.column == column for cell in self.changes[i].cells)), None)
