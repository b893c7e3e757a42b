"""Tables of lakes that rows were read from, with the views and macros in between, each in one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ducklake_lab.model.predicates import Or, Predicate

_T = TypeVar("_T")
#: Stands for all columns in the record of a query.
ALL_COLUMNS = "*"
#: Most columns and names in the record of a part.
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class EntryRead:
    """A table in the state in which its rows were read, or a view or macro that was expanded.

    Attributes:
        lake: the identity of the lake, see `catalog.identity`.
        alias: the lake's name in SQL.
        snapshot_id: the snapshot; of uncommitted changes, the one that they are based on.
        time: the snapshot's time in UTC, as ISO text.
        schema: the names from the outermost schema to the entry's.
        entry_id: the id of the entry; None for one that no commit has made yet.
        uuid: the uuid of the entry; "" of a macro, which has none.
        kind: the kind of the entry.
        is_fixed: a snapshot was named, so that a second run reads the same rows.
        is_uncommitted: the state has changes of an open transaction.
        branch: the branch that the lake is; None for a lake itself.
    """

    lake: str
    alias: str
    snapshot_id: int
    time: str
    schema: tuple[str, ...]
    name: str
    entry_id: int | None
    uuid: str
    kind: Literal["table", "view", "macro"] = "table"
    is_fixed: bool = False
    is_uncommitted: bool = False
    branch: str | None = None

    @property
    def title(self) -> str:
        """The lake's alias, with the branch if it is one."""
        return self.alias if self.branch is None else f"{self.alias}#{self.branch}"


@dataclass(frozen=True, slots=True)
class ReadPart:
    """Part of a table that a query surely confines itself to.

    Attributes:
        columns: ids of the top columns that it may read; None for all, those of later snapshots included.
        names: folded names of no column of the table which, given to a new one, may change the query's meaning.
        predicate: rows for which it is not true do not matter; None if all do.
        by_place: the query shows or compares places of rows in files, which maintenance changes.
    """

    columns: frozenset[int] | None = None
    names: frozenset[str] = frozenset()
    predicate: Predicate | None = None
    by_place: bool = False

    def united(self, other: ReadPart) -> ReadPart:
        """Returns the part that a query reads which reads both."""
        columns, predicate = None, None
        if self.columns is not None and other.columns is not None:
            columns = self.columns | other.columns
        if self.predicate is not None and other.predicate is not None:
            both = (self.predicate, other.predicate)
            predicate = both[0] if both[0] == both[1] else Or(both)
        return ReadPart(columns, self.names | other.names, predicate, self.by_place or other.by_place)


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """A part of a table in the record of an output, which anybody may have written; see `ReadPart`.

    Attributes:
        is_of_query: a query alone read it, which shows nothing of the table but values of columns.
        where: the form of the predicate, not looked at yet.
    """

    is_of_query: bool = False
    columns: frozenset[int] | None = None
    names: frozenset[str] = frozenset()
    where: Any = None
    by_place: bool = False

    @classmethod
    def of(cls, given: Mapping[str, object]) -> RecordedPart:
        """Returns the part in a record; what has another form says nothing."""
        columns, names = _all_of(int, given.get("columns")), _all_of(str, given.get("names", []))
        if columns is None or names is None:
            columns, names = None, frozenset()
        is_of_query = columns is not None or given.get("columns") == ALL_COLUMNS
        return cls(is_of_query, columns, names, given.get("where"), by_place=given.get("by_place") is True)


def _all_of(kind: type[_T], given: object) -> frozenset[_T] | None:
    """Returns the values of a list; None where another one is among them."""
    if not isinstance(given, list) or len(given) > _MOST_NAMES or any(type(one) is not kind for one in given):
        return None
    return frozenset(given)
