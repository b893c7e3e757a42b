"""Plans of repairs: rows of metadata tables before and after, as data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import versions
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.doctor.context import Context

Record = dict[str, object]
#: Characters of the undo text that a commit keeps.
_LONGEST_UNDO = 50_000


class NoRepairError(Exception):
    """A repair that cannot be proven safe; the text says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row of a metadata table, before and after; None for no row."""

    table: str
    old: Record | None
    new: Record | None

    @property
    def action(self) -> str:
        if self.old is None:
            return "INSERT"
        return "DELETE" if self.new is None else "UPDATE"

    def differing(self) -> tuple[Record, Record]:
        """Return the columns that change, before and after; all of a row that comes or goes."""
        old, new = self.old or {}, self.new or {}
        names = [name for name in (old or new) if not (old and new) or old[name] != new[name]]
        return {n: old[n] for n in names if n in old}, {n: new[n] for n in names if n in new}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement about rows that no answer needs, and a description of it."""

    table: str
    sql: str
    text: str

    @property
    def action(self) -> str:
        return self.sql.partition(" ")[0]


@dataclass(slots=True)
class Plan:
    """Changes that mend one finding, in one commit.

    Attributes:
        table_id: the table whose files, deletions or rows it touches; None for the lake.
        statements: run after the changes.
        next_file_id, next_catalog_id: least counters of the snapshot that it makes.
        written: absolute paths of files that were written for it.
        data_path: the lake's new data path.
    """

    changes: list[Change] = field(default_factory=list)
    table_id: int | None = None
    statements: list[Statement] = field(default_factory=list)
    next_file_id: int = 0
    next_catalog_id: int = 0
    written: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.statements or self.next_file_id or self.next_catalog_id)

    def undo(self) -> str | None:
        """Return the rows before and after as JSON, which undo the plan; None of keys of files, and where it is too long."""
        rows = [{"table": one.table, "old": one.old, "new": one.new} for one in self.changes]
        if not rows or self.statements or any(_has_key(one) for one in self.changes):
            return None
        text = json.dumps({"repaired": rows}, default=str, ensure_ascii=False)
        return text if len(text) <= _LONGEST_UNDO else None


def _has_key(change: Change) -> bool:
    return any(row is not None and row.get("encryption_key") is not None for row in (change.old, change.new))


def metadata_table(context: Context, name: str) -> sa.Table:
    """Return a metadata table of the catalog's version; one of inlined deletions or rows with the columns of the format."""
    declared = versions.tables(versions.of(context.connection)).tables.get(name)
    if declared is not None:
        return declared
    if name.startswith("ducklake_inlined_delete_"):
        columns: Sequence[str] = ("file_id", "row_id", "begin_snapshot")
    else:
        columns = context.inlined_columns
    return sa.Table(name, sa.MetaData(), *(sa.Column(column, sa.BigInteger) for column in columns))


def read(context: Context, name: str, **where: object) -> list[Record]:
    """Read rows of a metadata table with some values, in a fixed order."""
    table = metadata_table(context, name)
    rows = context.connection.execute(sa.select(*table.c).where(_matches(table, where)))
    return sorted((dict(row._mapping) for row in rows), key=lambda row: [str(value) for value in row.values()])


def only(rows: Sequence[Record], what: str) -> Record:
    """Return the only row.

    Raises:
        NoRepairError: there is none, or there are several.
    """
    if len(rows) != 1:
        raise NoRepairError(f"the catalog has {len(rows)} rows of {what}")
    return rows[0]


def distinct(rows: Iterable[Record]) -> list[Record]:
    """Return equal rows once."""
    return [dict(key) for key in dict.fromkeys(tuple(row.items()) for row in rows)]


def number(value: object) -> int:
    """Return a whole number that a catalog's driver may give in another type."""
    return int(str(value))


def table_of_hit(row: Mapping[str, object]) -> int | None:
    """Return the table of a hit; None for the lake."""
    return None if row["table_id"] is None else number(row["table_id"])


def update(table: str, old: Record, **values: object) -> Change:
    """Return a change of some values of a row; columns that the row lacks are left out."""
    return Change(table, old, {**old, **{name: value for name, value in values.items() if name in old}})


def replaced(table: str, old: Iterable[Record], new: Iterable[Record]) -> list[Change]:
    """Return the changes that put some rows instead of others; rows may be equal."""
    before, after = (Counter(tuple(row.items()) for row in rows) for rows in (old, new))
    changes = []
    for key in dict.fromkeys((*before, *after)):
        if before[key] == after[key]:
            continue
        if before[key]:
            changes.append(Change(table, dict(key), None))
        changes += [Change(table, None, dict(key))] * after[key]
    return changes


def dropped(context: Context, table: str, **where: object) -> list[Change]:
    """Return the changes that drop the rows of a metadata table with some values; equal rows go at once."""
    return [Change(table, record, None) for record in distinct(read(context, table, **where))]


def apply(context: Context, plan: Plan, writes: Writes) -> None:
    """Hold the changes."""
    for change in plan.changes:
        table = metadata_table(context, change.table)
        if change.old is None:
            assert change.new is not None
            writes.write_to_earlier(table.insert().values(change.new))
        elif change.new is None:
            writes.write_to_earlier(table.delete().where(_matches(table, change.old)))
        else:
            values = {name: value for name, value in change.new.items() if change.old[name] != value}
            if values:
                writes.write_to_earlier(table.update().where(_matches(table, change.old)).values(**values))
    for statement in plan.statements:
        writes.text(statement.sql)


def _matches(table: sa.Table, values: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    conditions = [
        table.c[name].is_(None) if value is None else table.c[name] == value for name, value in values.items()
    ]
    return sa.and_(sa.true(), *conditions)
