"""Finds the snapshots that may have changed what an output shows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.columns import read_columns
from ducklake_lab.catalog.files import count_data_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.changes import MAINTENANCE, OF_ROWS
from ducklake_lab.model.entries import Column
from ducklake_lab.model.predicates import Predicate
from ducklake_lab.model.reads import RecordedPart
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changed_snapshots import rewriting_and_changing
from ducklake_lab.scan.changed_tables import ChangesAfter
from ducklake_lab.scan.predicate_forms import predicate_of
from ducklake_lab.session.rows.join_keys import paths_of
from ducklake_lab.session.rows.matching_changes import SharedChanges

#: Most files of a table, at all snapshots, that are looked at, and most parts of a table in one question.
_MOST_FILES, _MOST_PARTS = 20_000, 50
#: The kind of changes of columns and settings.
_ALTERING = "altered_table"


@dataclass(frozen=True, slots=True)
class AskedPart:
    """A part of a table that still exists, as it was read at a snapshot."""

    table_id: int
    since: int
    part: RecordedPart


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Snapshots that may have changed a part.

    Attributes:
        sure: those that count.
        changing: those that count if they changed rows for which the predicate is true.
    """

    sure: frozenset[int]
    changing: frozenset[int]
    predicate: Predicate | None


class PartChanges:
    """Finds the snapshots that may have changed parts of tables of a lake, up to its newest snapshot.

    Args:
        changes: all snapshots since the earliest that is asked about; none of them has expired.
    """

    def __init__(self, lake: Lake, connection: sa.Connection, state: CatalogState, changes: ChangesAfter) -> None:
        self._lake, self._connection, self._state, self._changes = lake, connection, state, changes
        self._columns: dict[tuple[int, int], _Columns] = {}

    def counts(self, asked: Sequence[AskedPart]) -> list[int]:
        """Returns for each part how many snapshots after it was read may have changed it."""
        candidates = [self._candidates(one) for one in asked]
        by_table: dict[int, list[int]] = {}
        for place, (one, candidate) in enumerate(zip(asked, candidates, strict=True)):
            if candidate.predicate is not None:
                by_table.setdefault(one.table_id, []).append(place)
        matching: dict[int, set[int]] = {}
        for table_id, places in by_table.items():
            predicates = [predicate for place in places if (predicate := candidates[place].predicate) is not None]
            found_of = self._matching(table_id, min(asked[place].since for place in places), predicates)
            names = zip(places, map(repr, predicates), strict=True)
            matching |= {place: found_of[name] for place, name in names if name in found_of}
        return [
            len(candidate.sure | (candidate.changing & matching[place] if place in matching else candidate.changing))
            for place, candidate in enumerate(candidates)
        ]

    def _candidates(self, asked: AskedPart) -> _Candidates:
        table_id, since, part = asked.table_id, asked.since, asked.part
        kinds = self._changes.kinds(table_id, since)
        moving = {number for number, of in kinds.items() if not of <= MAINTENANCE}
        if part.by_place or not moving:
            return _Candidates(frozenset(kinds if part.by_place else ()), frozenset(), None)
        altering = {number for number in moving if _ALTERING in kinds[number]}
        changing = {number for number in moving if not kinds[number] <= {*MAINTENANCE, _ALTERING}}
        before, after = self._columns_at(table_id, since), self._columns_at(table_id, self._newest)
        if altering and _are_alike(before, after, part):
            altering = set()
        predicate = None
        if changing and all(kinds[number] <= {*MAINTENANCE, *OF_ROWS, _ALTERING} for number in changing):
            predicate = predicate_of(self._state.tables[table_id], part.where) if part.where is not None else None
        if predicate is not None and not _have_meaning(predicate, before, after):
            predicate = None
        return _Candidates(frozenset(altering), frozenset(changing), predicate)

    def _matching(self, table_id: int, since: int, predicates: Sequence[Predicate]) -> dict[str, set[int]]:
        """Returns the snapshots that may have changed rows, by predicate in text; without those that would take too long."""
        present = t.data_file.c.begin_snapshot <= self._newest
        if count_data_files(self._connection, table_id, present)[0] > _MOST_FILES:
            return {}
        # 1 and true are equal in Python
        distinct = dict(list({repr(one): one for one in predicates}.items())[:_MOST_PARTS])
        table, known = self._state.tables[table_id], self._changes.snapshots(since)
        changes = SharedChanges(self._lake, self._connection, self._state, table, since, known)
        rewriting = rewriting_and_changing(table_id, self._changes.texts(table_id, since))
        snapshots = changes.snapshots([*distinct.values()])
        return {name: one | rewriting for name, one in zip(distinct, snapshots, strict=True)}

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
