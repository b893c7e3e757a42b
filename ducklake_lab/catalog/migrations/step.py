"""What one spec version has that the version before it lacks: said once, for reading and for migrating."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

Added = tuple["sa.Column[Any]", str | None]


def _nothing(connection: sa.Connection) -> None:
    """A step without rows to convert."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step from one spec version to the next.

    Attributes:
        created: tables that are new, with their columns as of the new version.
        added: columns that are new, each with the SQL literal that rows of before have in it; None for NULL.
        renamed: old names of tables, by their new ones.
        views: what a table of the new version would hold, as a SELECT; `{ducklake_x}` stands for a table of the old
            version. Tables that `created`, `added` or `renamed` say enough about need none.
        convert: fills tables and columns after they were made.
    """

    old: str
    new: str
    created: Mapping[str, Sequence[sa.Column[Any]]] = field(default_factory=dict)
    added: Sequence[Added] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    convert: Callable[[sa.Connection], None] = _nothing

    def apply(self, connection: sa.Connection) -> None:
        """Migrates the catalog of the connection's transaction. The caller commits."""
        for new, old in self.renamed.items():
            connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")
        for name, columns in self.created.items():
            definitions = ", ".join(definition(connection, column) for column in columns)
            connection.exec_driver_sql(f"CREATE TABLE {name} ({definitions})")
        for column, literal in self.added:
            default = f" DEFAULT {_literal(connection, literal)}" if literal is not None else ""
            connection.exec_driver_sql(
                f"ALTER TABLE {column.table.name} ADD COLUMN {definition(connection, column)}{default}"
            )
        self.convert(connection)
        connection.execute(
            sa.text("UPDATE ducklake_metadata SET value = :version WHERE key = 'version'"), {"version": self.new}
        )

    def define(self, connection: sa.Connection, sources: Mapping[str, str]) -> dict[str, str]:
        """SELECTs that show tables of the old version as the new one has them, by the tables' names.

        Args:
            sources: SQL that stands for each table of the old version.
        """
        found: dict[str, str] = {}
        for name, columns in self.created.items():
            empty = ", ".join(f"CAST(NULL AS {_type(connection, c)}) AS {_quoted(connection, c)}" for c in columns)
            found[name] = f"SELECT {empty} WHERE 1 = 0"
        for new, old in self.renamed.items():
            found[new] = f"SELECT * FROM {sources[old]} AS renamed"
        for column, literal in self.added:
            name = column.table.name
            value = f"CAST({_literal(connection, literal)} AS {_type(connection, column)})"
            source = f"({found[name]})" if name in found else sources[name]
            found[name] = f"SELECT added.*, {value} AS {_quoted(connection, column)} FROM {source} AS added"
        for name, select in self.views.items():
            found[name] = select.format_map(sources)
        return found


def definition(connection: sa.Connection, column: sa.Column[Any]) -> str:
    """`name TYPE`, as the catalog's database writes it."""
    return f"{_quoted(connection, column)} {_type(connection, column)}"


def _quoted(connection: sa.Connection, column: sa.Column[Any]) -> str:
    return connection.dialect.identifier_preparer.quote(column.name)


def _type(connection: sa.Connection, column: sa.Column[Any]) -> str:
    return str(column.type.dialect_impl(connection.dialect).compile(connection.dialect))


def _literal(connection: sa.Connection, literal: str | None) -> str:
    if literal is None:
        return "NULL"
    if connection.dialect.name == "sqlite":
        return {"TRUE": "1", "FALSE": "0"}.get(literal, literal)
    return literal
