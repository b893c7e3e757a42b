"""Additions of one spec version to those before it, stated once for reading, writing and migrating."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlalchemy as sa

from ducklake_lab.model.quoting import quote_text

Added = tuple["sa.Column[Any]", str | None]


class Changes(Protocol):
    """Changes of a catalog, which are held while it is read; see `catalog.writes.Writes`."""

    @property
    def connection(self) -> sa.Connection:
        """For reads."""

    def text(self, statement: str) -> None:
        """Hold a statement."""

    def write_to_earlier(self, statement: sa.Insert | sa.Update | sa.Delete) -> None:
        """Hold a statement."""


def _nothing(writes: Changes) -> None:
    """A version without rows to convert."""


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A spec version.

    Attributes:
        name: its name in `ducklake_metadata`.
        after: the versions that are migrated to it; the first is the one before it.
        created: tables that are new, with their columns in this version.
        added: columns that are new, each with the SQL literal that rows of before have in it; None for NULL.
        renamed: old names of tables, by their new ones.
        views: the rows of a table of this version, as a SELECT; `{ducklake_x}` stands for a table of the version
            before. Tables that `created`, `added` or `renamed` say enough about need none.
        prepare: holds changes of existing tables, before those that make tables and columns.
        convert: holds changes that fill tables and columns, after those that make them. It reads the catalog as it was.
        is_repeatable: a catalog may have some of its tables and columns already; these are left as they are.
        is_native: catalogs are read as they are; those of others are shown as the next version that is.
        is_written: catalogs are written.
        inlines_variants: databases that have no variants take the bytes of Parquet's in tables of inlined rows.
        vectors_by_snapshot: a Puffin file may hold the deletion vectors of several snapshots.
        inlined_prefix: prefix of the format's own columns in inlined data tables.
    """

    name: str
    after: tuple[str, ...] = ()
    created: Mapping[str, Sequence[sa.Column[Any]]] = field(default_factory=dict)
    added: Sequence[Added] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Changes], None] = _nothing
    convert: Callable[[Changes], None] = _nothing
    is_repeatable: bool = False
    is_native: bool = False
    is_written: bool = False
    inlined_prefix: str = ""
    inlines_variants: bool = False
    vectors_by_snapshot: bool = False

    @property
    def inlined_columns(self) -> tuple[str, str, str]:
        """The format's own columns of a table of inlined rows: row id, first snapshot, end."""
        row_id, begin, end = (self.inlined_prefix + name for name in ("row_id", "begin_snapshot", "end_snapshot"))
        return row_id, begin, end

    def reserves(self, name: str, *, inlines: bool) -> bool:
        """Returns whether no column may have a name, given in lower case; `inlines`: where rows are inlined."""
        if self.inlined_prefix:
            return name.startswith(self.inlined_prefix)
        return inlines and name in self.inlined_columns

    def apply(self, writes: Changes) -> None:
        """Migrates a catalog of the version before: reads what there is, and holds all changes."""
        connection = writes.connection
        self.prepare(writes)
        there: dict[str, set[str]] = {column.table.name: set() for column, _ in self.added}
        if self.is_repeatable:
            there = {name: set(columns_of(connection, name)) for name in there}
        for new, old in self.renamed.items():
            writes.text(f"ALTER TABLE {old} RENAME TO {new}")
        for name, columns in self.created.items():
            definitions = ", ".join(definition(connection, column) for column in columns)
            condition = "IF NOT EXISTS " if self.is_repeatable else ""
            writes.text(f"CREATE TABLE {condition}{name} ({definitions})")
        for column, literal in self.added:
            if column.name in there[column.table.name]:
                continue
            default = f" DEFAULT {_literal(connection.dialect, literal)}" if literal is not None else ""
            writes.text(f"ALTER TABLE {column.table.name} ADD COLUMN {definition(connection, column)}{default}")
        self.convert(writes)
        writes.text(f"UPDATE ducklake_metadata SET value = {quote_text(self.name)} WHERE key = 'version'")

    def define(self, dialect: sa.Dialect, sources: Mapping[str, str]) -> dict[str, str]:
        """SELECTs that show tables of the version before as this one has them, by the tables' names.

        Args:
            sources: SQL that stands for each table of the version before.
        """
        selects: dict[str, str] = {}
        for name, columns in self.created.items():
            empty = ", ".join(f"CAST(NULL AS {_type(dialect, c)}) AS {_quoted(dialect, c)}" for c in columns)
            selects[name] = f"SELECT {empty} WHERE 1 = 0"
        for new, old in self.renamed.items():
            selects[new] = f"SELECT * FROM {sources[old]} AS renamed"
        for column, literal in self.added:
            name = column.table.name
            value = f"CAST({_literal(dialect, literal)} AS {_type(dialect, column)})"
            source = f"({selects[name]})" if name in selects else sources[name]
            selects[name] = f"SELECT added.*, {value} AS {_quoted(dialect, column)} FROM {source} AS added"
        for name, select in self.views.items():
            selects[name] = select.format_map(sources)
        return selects


def columns_of(connection: sa.Connection, table: str) -> list[str]:
    """The names of the columns that a table of the catalog has, in their order."""
    quoted = connection.dialect.identifier_preparer.quote_identifier(table)
    return list(connection.exec_driver_sql(f"SELECT * FROM {quoted} LIMIT 0").keys())


def definition(connection: sa.Connection, column: sa.Column[Any]) -> str:
    """`name TYPE`, as the catalog's database writes it."""
    return f"{_quoted(connection.dialect, column)} {_type(connection.dialect, column)}"


def _quoted(dialect: sa.Dialect, column: sa.Column[Any]) -> str:
    return dialect.identifier_preparer.quote(column.name)


def _type(dialect: sa.Dialect, column: sa.Column[Any]) -> str:
    return str(column.type.dialect_impl(dialect).compile(dialect))


def _literal(dialect: sa.Dialect, literal: str | None) -> str:
    if literal is None:
        return "NULL"
    if dialect.name == "sqlite":
        return {"TRUE": "1", "FALSE": "0"}.get(literal, literal)
    return literal


def without(tables: sa.MetaData, later: Iterable[Version]) -> sa.MetaData:
    """The metadata tables without those, and without columns, that come with later versions."""
    created = {name for version in later for name in version.created}
    added = {column for version in later for column, _ in version.added}
    remaining = sa.MetaData()
    for table in tables.sorted_tables:
        if table.name not in created:
            columns = [_copy(column) for column in table.columns if column not in added]
            sa.Table(table.name, remaining, *columns)
    return remaining


def _copy(column: sa.Column[Any]) -> sa.Column[Any]:
    key = column.primary_key
    return sa.Column(column.name, column.type, primary_key=key, autoincrement=False, nullable=column.nullable)
