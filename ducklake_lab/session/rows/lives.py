"""Lives of the rows that views show, read in process when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.blame.life import life
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.handing import python_rows
from ducklake_lab.errors import EntryNotFoundError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.row_life import CellChange, RowChanged, RowLife
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.attached_lakes import Lakes


class Lives:
    """Reads what changed a row of a table, up to a committed state; starts no Spark."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes

    def of(self, lake: Lake, state: CatalogState, table: Table, row_id: int) -> RowLife:
        """Returns the life of a row.

        Args:
            state: a committed one.
            table: as it is in the state.

        Raises:
            EntryNotFoundError: no snapshot that is left has had the row.
        """
        with self._lakes.working():
            zone = lake.session.time_zone()
            lived = life(lake, state, table, row_id, zone)
            lines = python_rows(lived.rows, zone)
        changes = [RowChanged(*(*head, tuple(CellChange(**cell) for cell in cells or ()))) for *head, cells in lines]
        return RowLife(
            state.qualified_name(table), row_id, state.snapshot.snapshot_id, tuple(changes), lived.known_from
        )

    def behind(
        self, lake: Lake, state: CatalogState, table: Table, names: Sequence[str | None], find: FindRows | None = None
    ) -> TableBehind | None:
        """Returns the table behind rows that were read in a state; None for one that no commit has made.

        Args:
            names: of the table's columns that the view's columns show, as they are in the state; None for other columns.
        """
        transaction = self._lakes.transaction
        own = transaction if transaction is not None and state is transaction.state else None
        base = state if own is None else own.base
        committed = base.tables.get(table.table_id)
        if committed is None:
            return None
        ids = {column.name: column.column_id for column in table.columns}
        names_by_id = {column.column_id: column.name for column in committed.columns}
        columns = [None if name is None else names_by_id.get(ids[name]) for name in names]
        is_open = own is not None and bool(own.peek(table) or committed != table)
        return TableBehind(self, lake, base, committed, columns, is_open, find)


#: Finds the ids of the rows that one shown row, given as a table, may be.
FindRows = Callable[[pa.Table], Sequence[int]]


@dataclass(frozen=True, slots=True)
class TableBehind:
    """The table whose rows a view shows, in a committed state.

    Attributes:
        columns: the column of the table that each column of the view shows; None for others.
        is_open: the view shows changes that are not committed as well.
        find: finds rows; None where the view holds row ids.
    """

    lives: Lives
    lake: Lake
    state: CatalogState
    table: Table
    columns: Sequence[str | None]
    is_open: bool = False
    find: FindRows | None = None

    @property
    def name(self) -> str:
        return self.state.qualified_name(self.table)

    def life(self, row_id: int) -> RowLife:
        """Returns the life of a row; see `Lives.of`.

        Raises:
            EntryNotFoundError: there is no such row, or none that is committed.
        """
        try:
            return self.lives.of(self.lake, self.state, self.table, row_id)
        except EntryNotFoundError as error:
            if not self.is_open:
                raise
            raise EntryNotFoundError(
                f"Row {row_id} of {self.name} is not committed yet, unless snapshots that have expired had it."
            ) from error
