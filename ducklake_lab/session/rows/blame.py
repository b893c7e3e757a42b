"""Blame of cells and lives of rows, for calls of the table functions and of table handles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from ducklake_lab.blame.blame import blame
from ducklake_lab.blame.life import life
from ducklake_lab.blame.versions import Found
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import EntryNotFoundError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import DataFile
from ducklake_lab.model.quoting import quoted_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.functions import BlameCall, LifeCall
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.row_places import row_places


class Blames:
    """Answers who set the cells of rows, and what changed a row.

    Args:
        query: runs a query over tables of the lakes.
        read_here: runs one in process, as `Sources.read_here`.
    """

    def __init__(
        self,
        lakes: Lakes,
        engine: SparkEngine,
        query: Callable[[op.Query], Result],
        read_here: Callable[[op.Query, Sequence[str]], tuple[pa.Table, list[DataFile]] | None],
    ) -> None:
        self._lakes = lakes
        self._engine = engine
        self._query = query
        self._read_here = read_here

    def result(self, call: BlameCall | LifeCall) -> Result:
        """Returns the rows of a call, which are computed now, in process.

        Raises:
            EntryNotFoundError: there is no such table, column or row.
            SqlSyntaxError, BindError: the condition is wrong.
            UnsupportedFeatureError: the open transaction has changed the table.
        """
        state = self._lakes.state(call.lake, call.at)
        table = state.table_in_text(call.schema, call.table)
        self._check_committed(call, state, table)
        info = RunInfo()
        info.note(call.lake.alias, state.snapshot.snapshot_id)
        zone = self._engine.time_zone()
        if isinstance(call, LifeCall):
            lived = life(call.lake, state, table, call.row_id, zone)
            rows, known_from = lived.rows, lived.known_from
        else:
            places = _places(table, call.columns)
            blamed = blame(call.lake, state, table, self._found(call, state, table, places), places, zone)
            rows, known_from = blamed.rows, blamed.known_from
        if known_from is not None:
            info.remarks.append(f"earlier snapshots have expired: history known from snapshot {known_from}")
        return Result(InMemory(rows), info=info, engine=self._engine)

    def _found(self, call: BlameCall, state: CatalogState, table: Table, places: Sequence[int]) -> Found:
        """Finds the rows of a call, with the texts of their cells where they are read in process."""
        path = quoted_path(call.lake.alias, state.schema_of(table).name, table.name)
        # a statement reads its lakes at one snapshot, and keeps the reads of the newest
        at = None if call.at is None and self._lakes.reads.in_statement else state.snapshot.snapshot_id
        names = [column.name for column in table.columns]
        if len({name.casefold() for name in names}) == len(names):
            texts = [names[place] for place in places]
            query = row_places(path, table.name, at, call.where, texts)
            read = self._read_here(query, [*["BIGINT"] * 4, *["VARCHAR"] * len(texts)])
            if read is not None:
                rows, files = read
                named = ["row_id", "file_id", "position", "snapshot_id", *(f"t{place}" for place in places)]
                return Found(rows.rename_columns(named), files)
        return Found(self._query(row_places(path, table.name, at, call.where)).carried())

    def _check_committed(self, call: BlameCall | LifeCall, state: CatalogState, table: Table) -> None:
        transaction = self._lakes.transaction
        if transaction is None or state is not transaction.state:
            return
        if transaction.peek(table) or transaction.base.tables.get(table.table_id) != table:
            name = "blame" if isinstance(call, BlameCall) else "life"
            raise UnsupportedFeatureError(
                f"{name} does not read changes that are not committed, and the open transaction has changed {table.name}; "
                f"COMMIT first, or name a snapshot: at => {transaction.base.snapshot.snapshot_id}."
            )


def _places(table: Table, names: Sequence[str] | None) -> list[int]:
    """Returns the places of columns, each once, in the order of the table; all for None."""
    if names is None:
        return list(range(len(table.columns)))
    wanted = set()
    for name in names:
        column = table.column(name)
        if column is None:
            known = [each.name for each in table.columns]
            raise EntryNotFoundError(f'{table.name} has no column "{name}".{did_you_mean(name, known)}')
        wanted.add(column.column_id)
    return [place for place, column in enumerate(table.columns) if column.column_id in wanted]
