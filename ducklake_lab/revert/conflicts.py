"""Conflicts of a revert with later snapshots, and the rules that settle them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.model.entries import Column

Rule = Literal["keep", "revert"]
#: A rule for a row, or for some of its cells by column.
RowRule = Rule | Mapping[str, Rule]
#: A rule for a table, or rules for some of its rows by row id, and of its columns by name.
TableRule = Rule | Mapping[int | str, RowRule]
#: A rule for all conflicts, or rules for some tables; None for none.
OnConflict = Rule | Mapping[str, TableRule] | None

_RULES = get_args(Rule)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Something that a snapshot changed, and a later one changed again.

    Attributes:
        table: `schema.table` as it is today; the name of another entry for one.
        row_id: None for a conflict of a definition.
        column: of a cell, or of the definition of a column; None for a row, a table or another entry.
        base: the value before the snapshot.
        then: the value that the snapshot set.
        now: today's value. Of a row these are its cells by column, of a definition texts; None where there is none.
        reason: in words.
    """

    table: str
    row_id: int | None
    column: str | None
    base: object
    then: object
    now: object
    reason: str

    def to_dict(self) -> dict[str, object]:
        """The conflict as values that JSON has."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    def __str__(self) -> str:
        row = f" row {self.row_id}" if self.row_id is not None else ""
        column = f" {self.column}" if self.column is not None else ""
        return f"{self.table}{row}{column} ({self.reason})"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True)
class TableRules:
    """The rules for the conflicts of one table.

    Attributes:
        whole: for all that no other rule names.
        rows: by row id.
        columns: by the names of columns, in lower case.
        cells: by row id and the names of columns, in lower case.
    """

    whole: Rule | None = None
    rows: Mapping[int, Rule] = field(default_factory=dict)
    columns: Mapping[str, Rule] = field(default_factory=dict)
    cells: Mapping[int, Mapping[str, Rule]] = field(default_factory=dict)

    def of_column(self, name: str) -> Rule | None:
        """The rule for a column's definition, and for its cells that no other rule names."""
        return self.columns.get(name.casefold(), self.whole)

    def check(self, title: str, columns: Collection[Column]) -> None:
        """Raises UsageError where a rule names no column of the table."""
        names = [column.name for column in columns]
        folded = {name.casefold() for name in names}
        for name in {*self.columns, *(name for cells in self.cells.values() for name in cells)}:
            if name not in folded:
                raise UsageError(
                    f'{title} has no column "{name}" for a rule of on_conflict.{did_you_mean(name, names)}'
                )


class Rules:
    """Rules for all conflicts of a revert, as `on_conflict` gives them.

    Raises:
        UsageError: it is no rule.
    """

    def __init__(self, given: OnConflict) -> None:
        self._all: Rule | None = None
        self._tables: dict[str, TableRules] = {}
        if given is None:
            return
        if isinstance(given, str):
            self._all = _rule(given)
        elif isinstance(given, Mapping):
            self._tables = {str(name).casefold(): _table_rules(rule) for name, rule in given.items()}
        else:
            raise _no_rule(given)

    def of(self, name: str) -> TableRules:
        """The rules for a table or another entry, by its name with or without its schema."""
        folded = name.casefold()
        for known in (folded, folded.rpartition(".")[2]):
            if known in self._tables:
                return self._tables[known]
        return TableRules(self._all)

    def check(self, names: Collection[str]) -> None:
        """Raises UsageError where a rule names nothing that the snapshot changed.

        Args:
            names: of the entries that it changed.
        """
        folded = {part for name in names for part in (name.casefold(), name.casefold().rpartition(".")[2])}
        for name in self._tables:
            if name not in folded:
                raise UsageError(
                    f"on_conflict names {name}, which the snapshot did not change.{did_you_mean(name, names)}"
                )


def _rule(given: object) -> Rule:
    if given in _RULES:
        return given  # type: ignore[return-value]
    raise _no_rule(given)


def _no_rule(given: object) -> UsageError:
    return UsageError(
        f'on_conflict takes "keep", "revert", or a mapping of tables to rules, not {str(given)[:50]!r}; see the docs.'
    )


def _table_rules(given: object) -> TableRules:
    if not isinstance(given, Mapping):
        return TableRules(_rule(given))
    rows: dict[int, Rule] = {}
    columns: dict[str, Rule] = {}
    cells: dict[int, Mapping[str, Rule]] = {}
    for key, rule in given.items():
        if isinstance(key, str):
            columns[key.casefold()] = _rule(rule)
        elif isinstance(key, bool) or not isinstance(key, int):
            raise UsageError(f"A rule of on_conflict is for a row id or a column, not {str(key)[:50]!r}.")
        elif isinstance(rule, Mapping):
            cells[key] = {str(name).casefold(): _rule(one) for name, one in rule.items()}
        else:
            rows[key] = _rule(rule)
    return TableRules(None, rows, columns, cells)


class Found:
    """The conflicts that no rule settles.

    Attributes:
        total: their number; not all of them are listed.
    """

    #: Conflicts that are listed at most.
    MOST = 10_000

    def __init__(self) -> None:
        self.total = 0
        self._listed: list[Conflict] = []

    def add(self, conflict: Conflict) -> None:
        self.total += 1
        self._list(conflict)

    def add_all(self, conflicts: Collection[Conflict], total: int) -> None:
        """Adds conflicts of which some are listed."""
        self.total += total
        for conflict in conflicts:
            self._list(conflict)

    def _list(self, conflict: Conflict) -> None:
        if len(self._listed) < self.MOST:
            self._listed.append(conflict)

    @property
    def room(self) -> int:
        """How many more are listed."""
        return self.MOST - len(self._listed)

    def __iter__(self) -> Iterator[Conflict]:
        return iter(self._listed)
