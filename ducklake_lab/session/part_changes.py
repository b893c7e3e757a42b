"""Finds the snapshots that may have changed what an output shows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import count_data_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_columns
from ducklake_lab.model.changes import MAINTENANCE, OF_ROWS
from ducklake_lab.model.entries import Column
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.reads import RecordedPart
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changed_snapshots import changing_snapshots, rewriting_and_changing
from ducklake_lab.scan.changed_tables import ChangesAfter
from ducklake_lab.scan.predicate_forms import predicate_of
from ducklake_lab.session.rows.join_pruning import paths_of
from ducklake_lab.session.rows.matching_changes import changes_of

#: Most files of a table, at all snapshots, that are looked at, and most parts in one question.
_MOST_FILES, _MOST_PARTS = 20_000, 50
#: The kind of changes of columns and settings.
_ALTERING = "altered_table"


class PartChanges:
    """Finds the snapshots that may have changed parts of tables of a lake, up to its newest snapshot.

    Args:
        changes: all snapshots since the earliest that is asked about; none of them has expired.
    """

    def __init__(self, lake: Lake, connection: sa.Connection, state: CatalogState, changes: ChangesAfter) -> None:
        self._lake, self._connection, self._state, self._changes = lake, connection, state, changes
        self._columns: dict[tuple[int, int], _Columns] = {}
        self._found: dict[tuple[int, int, str], set[int]] = {}

    def count(self, table_id: int, since: int, part: RecordedPart) -> int:
        """Returns how many snapshots after `since` may have changed a part of a table that still exists."""
        kinds = self._changes.kinds(table_id, since)
        moving = {number for number, of in kinds.items() if not of <= MAINTENANCE}
        if part.by_place:
            return len(kinds)
        if not moving:
            return 0
        altering = {number for number in moving if _ALTERING in kinds[number]}
        changing = {number for number in moving if not kinds[number] <= {*MAINTENANCE, _ALTERING}}
        before, after = self._columns_at(table_id, since), self._columns_at(table_id, self._newest)
        if altering and _are_alike(before, after, part):
            altering = set()
        if all(kinds[number] <= {*MAINTENANCE, *OF_ROWS, _ALTERING} for number in changing):
            changing &= self._matching(table_id, since, part, before, after, changing)
        return len(altering | changing)

    def _matching(
        self, table_id: int, since: int, part: RecordedPart, before: _Columns, after: _Columns, changing: set[int]
    ) -> set[int]:
        """Returns the snapshots, among some, that may have changed rows of the part."""
        table = self._state.tables[table_id]
        predicate = predicate_of(table, part.where) if part.where is not None else None
        if predicate is None or not changing or not _have_meaning(predicate, before, after):
            return changing
        key = (table_id, since, repr(predicate))
        if key not in self._found:
            present = t.data_file.c.begin_snapshot <= self._newest
            if len(self._found) >= _MOST_PARTS:
                return changing
            if count_data_files(self._connection, table_id, present)[0] > _MOST_FILES:
                return changing
            plan = changes_of(self._lake, self._connection, self._state, table, since, predicate)
            found = changing_snapshots(plan, self._changes.snapshots(since))
            self._found[key] = found | rewriting_and_changing(table_id, self._changes.texts(table_id, since))
        return self._found[key]

    @property
    def _newest(self) -> int:
        return self._state.snapshot.snapshot_id

    def _columns_at(self, table_id: int, snapshot_id: int) -> _Columns:
        key = (table_id, snapshot_id)
        if key not in self._columns:
            self._columns[key] = _Columns(lambda: read_columns(self._connection, table_id, snapshot_id))
        return self._columns[key]


class _Columns:
    """The top columns of a table at a snapshot, read when they are needed."""

    def __init__(self, read: Callable[[], Sequence[Column]]) -> None:
        self._read = read

    @cached_property
    def all(self) -> Sequence[Column]:
        return self._read()

    @cached_property
    def by_id(self) -> Mapping[int, tuple[object, ...]]:
        return {column.column_id: _meaning(column) for column in self.all}

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(column.name.casefold() for column in self.all)


def _meaning(column: Column) -> tuple[object, ...]:
    """Returns what a query reads of a column; defaults of later rows and comments are no part of it."""
    children = tuple(_meaning(child) for child in column.children)
    return column.column_id, column.name, column.type, column.initial_default, children


def _are_alike(before: _Columns, after: _Columns, part: RecordedPart) -> bool:
    """Whether a query has the same meaning with the columns of two snapshots, and reads the same columns."""
    if part.columns is None:
        return part.is_of_query and [*map(_meaning, before.all)] == [*map(_meaning, after.all)]
    if not (after.names - before.names).isdisjoint(part.names):
        return False
    return all(
        column_id in before.by_id and before.by_id[column_id] == after.by_id.get(column_id)
        for column_id in part.columns
    )


def _have_meaning(predicate: Predicate, before: _Columns, after: _Columns) -> bool:
    """Whether the columns of a predicate are the same at two snapshots."""
    tops = {path[0].casefold() for path in paths_of(predicate)}
    return all(
        before.by_id.get(column.column_id) == after.by_id[column.column_id]
        for column in after.all
        if column.name.casefold() in tops
    )
