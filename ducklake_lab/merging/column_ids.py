"""Ids of one table's columns on two sides that both gave out ids since they parted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from ducklake_lab.model.entries import Column, PartitionField, Table
from ducklake_lab.model.expectations import Expectation, changed_tags

#: Ids that no catalog assigns, of columns that the other side alone has: they read as their first default.
_ABSENT = 2_000_000_000


@dataclass(frozen=True, slots=True)
class ColumnIds:
    """The ids of theirs and ours.

    Attributes:
        shared: the last id that means the same column on both sides; None where all do.
        ours: the ids in our table of columns that came in theirs, at any depth.
    """

    shared: int | None = None
    ours: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def give(cls, theirs: Table, shared: int, next_id: int) -> ColumnIds:
        """Give ids of ours to all columns of theirs that came since; they keep theirs where all of these are free.

        Args:
            next_id: the next free id of ours.
        """
        came = sorted(column.column_id for column in theirs.all_columns() if column.column_id > shared)
        if not came or next_id <= came[0]:
            return cls(shared, {number: number for number in came})
        return cls(shared, dict(zip(came, count(next_id), strict=False)))

    @property
    def are_same(self) -> bool:
        """Return whether files of theirs mean our columns by their ids."""
        return all(number == own for number, own in self.ours.items())

    def to_ours(self, table: Table, last_order: int) -> Table:
        """Return their table with ids of ours, and its new columns after ours.

        Args:
            last_order: the order of our last column.
        """
        if self.shared is None:
            return table
        orders = count(last_order + 1)
        columns = [
            replace(self._own(column), order=next(orders)) if column.column_id > self.shared else self._own(column)
            for column in table.columns
        ]
        partition = table.partition
        if partition is not None:
            fields = tuple(
                PartitionField(self.ours.get(key.column_id, key.column_id), key.transform) for key in partition.fields
            )
            partition = replace(partition, fields=fields)
        return replace(table, columns=tuple(columns), partition=partition, tags=changed_tags(table, self._named))

    def to_theirs(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        """Return columns of ours as theirs has them; what only ours has gets ids of no column."""
        columns = tuple(columns)
        if self.shared is None:
            return columns
        theirs, absent = {own: number for number, own in self.ours.items()}, count(_ABSENT)
        shared = self.shared

        def changed(column: Column) -> Column:
            number = column.column_id
            if number > shared:
                number = theirs[number] if number in theirs else next(absent)
            return replace(column, column_id=number, children=tuple(map(changed, column.children)))

        return tuple(map(changed, columns))

    def _named(self, expectation: Expectation) -> Expectation:
        """Return an expectation of theirs with ids of ours."""
        columns = tuple((name, self.ours.get(number, number)) for name, number in expectation.columns)
        return replace(expectation, columns=columns)

    def _own(self, column: Column) -> Column:
        number = self.ours.get(column.column_id, column.column_id)
        return replace(column, column_id=number, children=tuple(map(self._own, column.children)))
