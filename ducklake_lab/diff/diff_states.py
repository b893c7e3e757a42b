"""The two states of a diff, and the columns under which both are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ducklake_lab.catalog.identity import read_of
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.staged import StagedData
from ducklake_lab.model.state import CatalogState

#: Ids that no catalog assigns: columns that one side lacks read as NULL.
_ABSENT = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Side:
    """A table in one state of a lake.

    Attributes:
        table: None where the table is not there: it has no rows then.
        staged: the open transaction's changes to it, where the state is not committed.
        committed: the table is in the catalog; False for one that the transaction made.
        is_fixed: the state was named, so that a second diff has it again.
    """

    lake: Lake
    state: CatalogState
    table: Table | None
    staged: StagedData | None = None
    committed: bool = True
    is_fixed: bool = True

    @property
    def snapshot_id(self) -> int:
        return self.state.snapshot.snapshot_id

    def reads(self, *, is_open: bool = False) -> list[EntryRead]:
        """Return the record of the table; changes that a transaction holds end with it, and count as fixed."""
        if self.table is None:
            return []
        is_fixed = self.is_fixed or is_open
        return [read_of(self.lake, self.state, self.table, is_fixed=is_fixed, is_uncommitted=is_open)]


@dataclass(frozen=True, slots=True)
class Aligned:
    """One list of columns for both sides: those of the later schema, then those only the earlier one has.

    Attributes:
        before: the earlier table under these names.
        after: the later one.
        only_before: how many of the columns, at the end, only the earlier schema has.
        renamed: earlier name by later name, for columns that were renamed.
    """

    before: Table
    after: Table
    only_before: int
    renamed: Mapping[str, str]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.after.columns


@dataclass(frozen=True, slots=True)
class Matched:
    """One column of a diff, as each state has it; None in a state that lacks it.

    Attributes:
        name: its name in the diff.
        has_returned: the earlier state lacks it, and yet is younger; its rows keep the values that they had.
    """

    name: str
    before: Column | None
    after: Column | None
    has_returned: bool = False


@dataclass(frozen=True, slots=True)
class Sides:
    """Both states of a diff.

    Attributes:
        same: they are states of one table.
        returned: the ids of columns that the later state has got back; see `Matched.has_returned`.
    """

    before: Side
    after: Side
    aligned: Aligned
    same: bool
    returned: frozenset[int] = frozenset()

    @property
    def is_open(self) -> bool:
        """Return whether the later state is not committed."""
        before, after = self.before.state, self.after.state
        # one snapshot may be read twice
        is_same = self.before.lake is self.after.lake and after.snapshot == before.snapshot
        is_of_transaction = is_same and after.differs_from(before)
        return self.after.staged is not None or not self.after.committed or is_of_transaction

    def reads(self) -> list[EntryRead]:
        """Return the tables that are compared."""
        return [*self.before.reads(), *self.after.reads(is_open=self.is_open)]

    def matched(self) -> list[Matched]:
        """The columns of the later schema, then those only the earlier one has."""
        old, new = (side.table or self.before.table or self.after.table for side in (self.before, self.after))
        assert old is not None and new is not None  # one of the states has the table
        columns = []
        for was, now in zip(self.aligned.before.columns, self.aligned.after.columns, strict=True):
            before, after = old.column_by_id(was.column_id), new.column_by_id(now.column_id)
            columns.append(Matched(now.name, before, after, has_returned=now.column_id in self.returned))
        return columns


def align(old: Table, new: Table, *, same: bool) -> Aligned:
    """Matches columns by id where it is the same table, by name where there are two."""
    matches = {
        column.column_id: same_column
        for column in new.columns
        if (same_column := old.column_by_id(column.column_id) if same else old.column(column.name)) is not None
        # a nested column of another type in another table is another column
        and (same or not same_column.children or same_column.data_type == column.data_type)
    }
    matched = {column.column_id for column in matches.values()}
    gone = [column for column in old.columns if column.column_id not in matched]
    dropped = with_free_names(gone, [column.name for column in new.columns])
    renamed = {
        column.name: matches[column.column_id].name
        for column in new.columns
        if column.column_id in matches and matches[column.column_id].name != column.name
    }
    if same:
        # one list serves both: an id of the later schema that an earlier file lacks reads as NULL
        combined = (*new.columns, *dropped)
        return Aligned(replace(old, columns=combined), replace(new, columns=combined), len(dropped), renamed)
    earlier = [
        replace(matches[column.column_id], name=column.name) if column.column_id in matches else _absent(column, at)
        for at, column in enumerate(new.columns)
    ]
    later = [*new.columns, *(_absent(column, at) for at, column in enumerate(dropped, start=len(new.columns)))]
    return Aligned(
        replace(old, columns=(*earlier, *dropped)), replace(new, columns=tuple(later)), len(dropped), renamed
    )


def with_free_names(columns: Iterable[Column], taken: Iterable[str] = ()) -> list[Column]:
    """Return dropped columns under names that no other column has; `taken` are names of further columns."""
    names = {name.casefold() for name in taken}
    renamed = []
    for column in columns:
        name = column.name
        while name.casefold() in names:
            name += " (dropped)"
        names.add(name.casefold())
        renamed.append(replace(column, name=name))
    return renamed


def _absent(column: Column, at: int) -> Column:
    ids = {part.column_id: _ABSENT + 1000 * at + number for number, part in enumerate(column.walk())}

    def renumber(part: Column) -> Column:
        children = tuple(renumber(child) for child in part.children)
        return replace(part, column_id=ids[part.column_id], initial_default=None, children=children)

    return renumber(column)
