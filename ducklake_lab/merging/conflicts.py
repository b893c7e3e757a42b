"""Conflicts of a merge, the rules that settle them, and the words for both."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, auto

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.model.entries import Column

#: A rule as users write it, which `Words.rules` lists.
Rule = str
#: A rule for a row, or for some of its cells by column.
RowRule = Rule | Mapping[str, Rule]
#: A rule for a table, or rules for some of its rows by row id, and of its columns by name.
TableRule = Rule | Mapping[int | str, RowRule]
#: A rule for all conflicts, or rules for some tables; None for none.
OnConflict = Rule | Mapping[str, TableRule] | None


class Reason(Enum):
    """How both sides changed the same, from the side of what is merged ("theirs")."""

    CELL = auto()
    ROW_UPDATED = auto()  # theirs updated a row that ours deleted
    ROW_DELETED = auto()
    COLUMN_DROPPED = auto()
    COLUMN_FILLED = auto()  # theirs wrote into a column that ours dropped
    DEFINITION = auto()
    TABLE_DROPPED = auto()
    TABLE_CHANGED = auto()  # theirs changed a table that ours dropped
    SCHEMA_DROPPED = auto()
    SCHEMA_FILLED = auto()  # theirs made an entry in a schema that ours dropped
    VIEW_CHANGED = auto()
    VIEW_DROPPED = auto()  # theirs changed a view that ours dropped
    NAME_TAKEN = auto()
    VALUE_EXPIRED = auto()  # a row of theirs comes, and a value of it that ours needs has expired


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one kind of merge for its users.

    Attributes:
        title: what is merged, in the middle of a sentence: "snapshot 13".
        ours: the rule that keeps what the lake has.
        theirs: the rule that takes what is merged.
        comes: what an entry or a column does that comes with it, such as "come back".
        reasons: texts of reasons; in some `{0}` stands for a part of a definition.
        earlier: how rows of theirs came which the lake has under other ids, or not at all.
    """

    title: str
    ours: Rule
    theirs: Rule
    comes: str
    reasons: Mapping[Reason, str]
    earlier: str = "came with an earlier merge"

    @property
    def start(self) -> str:
        """Return what is merged, as a sentence begins with it."""
        return self.title[0].upper() + self.title[1:]

    def reason(self, reason: Reason, part: str = "") -> str:
        """Return the text of a reason, with the part of a definition where it names one."""
        return self.reasons[reason].format(part)


class Described:
    """A conflict with `table`, `row_id`, `column` and `reason`, as text and as values that JSON has."""

    __slots__ = ()
    table: str
    row_id: int | None
    column: str | None
    reason: str

    @property
    def versions(self) -> tuple[object, object, object]:
        """Return its three values, in the order of the attributes."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """The conflict as values that JSON has."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        row = f" row {self.row_id}" if self.row_id is not None else ""
        column = f" {self.column}" if self.column is not None else ""
        return f"{self.table}{row}{column} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Conflict(Described):
    """Something that both sides of a merge changed since they parted.

    Attributes:
        table: `schema.table` as it is in the lake; the name of another entry for one.
        row_id: None for a conflict of a definition.
        column: of a cell, or of the definition of a column; None for a row, a table or another entry.
        base: the value where both sides began.
        ours: the lake's value.
        theirs: the other side's value. Of a row these are its cells by column, of a definition texts; None where there is none.
        reason: in words.
    """

    table: str
    row_id: int | None
    column: str | None
    base: object
    ours: object
    theirs: object
    reason: str

    @property
    def versions(self) -> tuple[object, object, object]:
        return self.base, self.ours, self.theirs


def _plain(value: object) -> object:
    """Return a value of a conflict as one that JSON has."""
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

    def of_cell(self, row_id: int, name: str) -> Rule | None:
        """The rule for a cell of a row."""
        cells = self.cells.get(row_id, {})
        return cells.get(name.casefold()) or self.rows.get(row_id) or self.of_column(name)

    def by_our_names(self, title: str, ours: Collection[Column], others: Collection[Column]) -> TableRules:
        """Return the rules under our names of columns that the other versions name otherwise.

        Args:
            others: columns of the base, then of theirs, whose ids mean the same as ours or are none of ours.

        Raises:
            UsageError: a rule names no column of the table.
        """
        self._check(title, [*ours, *others])
        names_by_id = {column.column_id: column.name.casefold() for column in ours}
        names = {name: name for name in names_by_id.values()}
        for column in others:
            folded = column.name.casefold()
            names.setdefault(folded, names_by_id.get(column.column_id, folded))
        cells = {row: {names[name]: rule for name, rule in named.items()} for row, named in self.cells.items()}
        return replace(self, columns={names[name]: rule for name, rule in self.columns.items()}, cells=cells)

    def _check(self, title: str, columns: Collection[Column]) -> None:
        names = [column.name for column in columns]
        folded = {name.casefold() for name in names}
        for name in {*self.columns, *(name for cells in self.cells.values() for name in cells)}:
            if name not in folded:
                raise UsageError(
                    f'{title} has no column "{name}" for a rule of on_conflict.{did_you_mean(name, names)}'
                )


class Rules:
    """Rules for all conflicts of a merge, as `on_conflict` gives them; "ours" and "theirs", whatever users call them.

    Args:
        schemas: titles of the schemas whose entries rules may name without them.

    Raises:
        UsageError: it is no rule.
    """

    def __init__(self, given: OnConflict, words: Words, schemas: Iterable[str]) -> None:
        self._words = words
        self._schemas = [f"{schema.casefold()}." for schema in schemas]
        self._all: Rule | None = None
        self._tables: dict[str, TableRules] = {}
        if given is None:
            return
        if isinstance(given, str):
            self._all = self._rule(given)
        elif isinstance(given, Mapping):
            self._tables = {str(name).casefold(): self._table_rules(rule) for name, rule in given.items()}
        else:
            raise self._no_rule(given)

    def of(self, name: str) -> TableRules:
        """The rules for a table or another entry, by its name with or without its schema."""
        for own_name in self._names(name):
            if own_name in self._tables:
                return self._tables[own_name]
        return TableRules(self._all)

    def _names(self, title: str) -> list[str]:
        """Return the names of an entry: its title, and that without its schema; a name may have a dot of its own."""
        folded = title.casefold()
        return [folded, *(folded.removeprefix(schema) for schema in self._schemas if folded.startswith(schema))]

    def check(self, names: Collection[str]) -> None:
        """Raises UsageError where a rule names nothing that is merged.

        Args:
            names: of the entries that changed.
        """
        folded = {part for name in names for part in self._names(name)}
        for name in self._tables:
            if name not in folded:
                raise UsageError(
                    f"on_conflict names {name}, which {self._words.title} did not change.{did_you_mean(name, names)}"
                )

    def _rule(self, given: object) -> Rule:
        if given == self._words.ours:
            return "ours"
        if given == self._words.theirs:
            return "theirs"
        raise self._no_rule(given)

    def _no_rule(self, given: object) -> UsageError:
        return UsageError(
            f'on_conflict takes "{self._words.ours}", "{self._words.theirs}", or a mapping of tables to rules, not '
            f"{str(given)[:50]!r}; see the docs."
        )

    def _table_rules(self, given: object) -> TableRules:
        if not isinstance(given, Mapping):
            return TableRules(self._rule(given))
        rows: dict[int, Rule] = {}
        columns: dict[str, Rule] = {}
        cells: dict[int, Mapping[str, Rule]] = {}
        for key, rule in given.items():
            if isinstance(key, str):
                columns[key.casefold()] = self._rule(rule)
            elif isinstance(key, bool) or not isinstance(key, int):
                raise UsageError(f"A rule of on_conflict is for a row id or a column, not {str(key)[:50]!r}.")
            elif isinstance(rule, Mapping):
                cells[key] = {str(name).casefold(): self._rule(one) for name, one in rule.items()}
            else:
                rows[key] = self._rule(rule)
        return TableRules(None, rows, columns, cells)


class Unsettled:
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

    def named(self, most: int) -> str:
        """Return the first conflicts in words, and how many more there are."""
        more = f"; and {self.total - most:,} more" if self.total > most else ""
        return "; ".join(map(str, self._listed[:most])) + more

    def __iter__(self) -> Iterator[Conflict]:
        return iter(self._listed)
