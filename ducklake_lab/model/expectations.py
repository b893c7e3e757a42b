"""Expectations of a table: what its rows must fulfil, kept as tags of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import quote_identifier

#: Keys of the tags begin so; the name of the expectation follows.
PREFIX = "ducklake_lab.expect."

Kind = Literal["check", "not_null", "unique", "references", "fresh", "query"]
Violation = Literal["fail", "warn", "drop", "quarantine"]
VIOLATIONS: tuple[Violation, ...] = get_args(Violation)
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Names of columns in the text of an expectation, with the ids of these columns.
Named = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """Something that the rows of a table must fulfil.

    Attributes:
        on: the treatment of rows that violate it.
        sql: the condition of `check`, the query of `query`, the interval of `fresh`; "" for others.
        columns: the columns of the table that it names. The id decides; a column keeps it when it is renamed.
        target: the UUID of the referenced table; "" for others.
        target_columns: the referenced columns, in the order of `columns`.
        target_id: the id of the referenced table, where it was committed before; the UUID decides.
    """

    name: str
    kind: Kind
    on: Violation = "fail"
    sql: str = ""
    columns: Named = ()
    target: str = ""
    target_columns: Named = ()
    target_id: int = 0

    @property
    def key(self) -> str:
        """The key of its tag."""
        return PREFIX + self.name

    @property
    def is_by_row(self) -> bool:
        """Returns whether a row alone says that it violates the expectation."""
        return self.kind in ("check", "not_null")

    @property
    def spares(self) -> bool:
        """Returns whether the rows that violate it are left out of the commit."""
        return self.on in ("drop", "quarantine")

    def text(self) -> str:
        """Returns the value of its tag."""
        return json.dumps({key: value for key, value in asdict(self).items() if key != "name" and value})

    def shown(self, table: Table, target: str | None) -> str:
        """Returns it in SQL, with the present names of the columns where they are listed.

        Args:
            target: the referenced table's name; None for one that is gone.
        """
        columns = listed(table, self.columns)
        match self.kind:
            case "check":
                return f"CHECK ({self.sql})"
            case "not_null":
                return f"NOT NULL ({columns})"
            case "unique":
                return f"UNIQUE ({columns})"
            case "references":
                others = ", ".join(quote_identifier(name) for name, _ in self.target_columns)
                return f"FOREIGN KEY ({columns}) REFERENCES {target or 'a dropped table'} ({others})"
            case "fresh":
                return f"FRESH WITHIN INTERVAL '{self.sql}'"
        return f"QUERY ({self.sql})"


def listed(table: Table, columns: Named) -> str:
    """Returns the present names of columns, separated by commas."""
    columns_now = ((table.column_by_id(column_id), name) for name, column_id in columns)
    return ", ".join(quote_identifier(column.name if column is not None else name) for column, name in columns_now)


def expectations_of(table: Table) -> list[Expectation]:
    """Returns the expectations of a table, by name.

    Raises:
        CatalogError: a tag is not one that this version reads.
    """
    return [_parsed(table, key.removeprefix(PREFIX), value) for key, value in table.tags]


def _parsed(table: Table, name: str, text: str) -> Expectation:
    try:
        given = json.loads(text)
        expectation = Expectation(
            name,
            given["kind"],
            given.get("on", "fail"),
            str(given.get("sql", "")),
            _named(given.get("columns", ())),
            str(given.get("target", "")),
            _named(given.get("target_columns", ())),
            int(given.get("target_id", 0)),
        )
        if expectation.kind not in KINDS or expectation.on not in VIOLATIONS:
            raise ValueError(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CatalogError(
            f'The expectation "{name}" of {table.name} is not readable by this version; '
            f"upgrade, or drop it: ALTER TABLE {quote_identifier(table.name)} DROP EXPECTATION {quote_identifier(name)}."
        ) from None
    return expectation


def _named(pairs: Iterable[Iterable[object]]) -> Named:
    return tuple((str(name), int(str(number))) for name, number in pairs)


def changed_tags(table: Table, change: Callable[[Expectation], Expectation]) -> tuple[tuple[str, str], ...]:
    """Returns the tags of a table with each expectation changed; one that this version does not read stays."""
    tags = []
    for key, value in table.tags:
        try:
            expectation = _parsed(table, key.removeprefix(PREFIX), value)
        except CatalogError:
            tags.append((key, value))
            continue
        changed = change(expectation)
        tags.append((key, value if changed == expectation else changed.text()))
    return tuple(tags)


def with_tag(table: Table, key: str, value: str | None) -> tuple[tuple[str, str], ...]:
    """Returns the tags of a table with one set, or with None taken away."""
    tags: dict[str, str] = dict(table.tags)
    tags.pop(key, None)
    if value is not None:
        tags[key] = value
    return tuple(sorted(tags.items()))


def named_columns(table: Table, names: Iterable[str]) -> Named:
    """Returns columns of a table by their names as written; unknown ones are left out."""
    ids: dict[str, int] = {}
    for name in names:
        column = table.column(name)
        if column is not None:
            ids.setdefault(column.name, column.column_id)
    return tuple(ids.items())


def columns_by_id(table: Table, columns: Named) -> Iterator[tuple[str, Column]]:
    """Yields top-level columns with their names in the expectation; those that are gone are left out."""
    by_id: Mapping[int, Column] = {column.column_id: column for column in table.columns}
    for name, column_id in columns:
        if column_id in by_id:
            yield name, by_id[column_id]
