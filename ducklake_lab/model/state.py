"""The entries of a lake as of one snapshot: schemas, tables, views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ducklake_lab.errors import EntryNotFoundError, did_you_mean
from ducklake_lab.model.entries import Schema, Snapshot, Table, View


@dataclass(frozen=True, slots=True)
class CatalogState:
    """All entries visible at a snapshot, by id. Immutable: an edit gives a new state."""

    snapshot: Snapshot
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    tables: Mapping[int, Table] = field(default_factory=dict)
    views: Mapping[int, View] = field(default_factory=dict)

    def find_schema(self, name: str) -> Schema | None:
        """The schema of that name, without regard to case."""
        folded = name.casefold()
        return next((schema for schema in self.schemas.values() if schema.name.casefold() == folded), None)

    def schema(self, name: str) -> Schema:
        """The schema of that name.

        Raises:
            EntryNotFoundError: there is none.
        """
        found = self.find_schema(name)
        if found is None:
            hint = did_you_mean(name, (schema.name for schema in self.schemas.values()))
            raise EntryNotFoundError(f'There is no schema "{name}" at snapshot {self.snapshot.snapshot_id}.{hint}')
        return found

    def find_table(self, schema: str, name: str) -> Table | None:
        """The table of that name in the schema, without regard to case."""
        parent = self.find_schema(schema)
        return _named(self.tables.values(), parent.schema_id, name) if parent is not None else None

    def find_view(self, schema: str, name: str) -> View | None:
        """The view of that name in the schema, without regard to case."""
        parent = self.find_schema(schema)
        return _named(self.views.values(), parent.schema_id, name) if parent is not None else None

    def table(self, schema: str, name: str) -> Table:
        """The table of that name.

        Raises:
            EntryNotFoundError: there is no such schema or table.
        """
        parent = self.schema(schema)
        found = _named(self.tables.values(), parent.schema_id, name)
        if found is None:
            hint = did_you_mean(name, (table.name for table in self.tables_of(parent.schema_id)))
            if not hint:
                others = [
                    f"{self.schemas[table.schema_id].name}.{table.name}"
                    for table in self.tables.values()
                    if table.name.casefold() == name.casefold()
                ]
                hint = f" Did you mean {' or '.join(others[:3])}?" if others else ""
            raise EntryNotFoundError(
                f'There is no table "{name}" in schema {parent.name} at snapshot {self.snapshot.snapshot_id}.{hint}'
            )
        return found

    def tables_of(self, schema_id: int) -> list[Table]:
        """The tables of a schema, by name."""
        return sorted((t for t in self.tables.values() if t.schema_id == schema_id), key=lambda t: t.name)

    def schema_of(self, entry: Table | View) -> Schema:
        return self.schemas[entry.schema_id]

    def qualified_name(self, entry: Table | View) -> str:
        return f"{self.schema_of(entry).name}.{entry.name}"

    def with_schema(self, schema: Schema) -> CatalogState:
        return replace(self, schemas={**self.schemas, schema.schema_id: schema})

    def without_schema(self, schema_id: int) -> CatalogState:
        return replace(self, schemas={key: value for key, value in self.schemas.items() if key != schema_id})

    def with_table(self, table: Table) -> CatalogState:
        return replace(self, tables={**self.tables, table.table_id: table})

    def without_table(self, table_id: int) -> CatalogState:
        return replace(self, tables={key: value for key, value in self.tables.items() if key != table_id})


Entry = TypeVar("Entry", Table, View)


def _named(entries: Iterable[Entry], schema_id: int, name: str) -> Entry | None:
    folded = name.casefold()
    return next((e for e in entries if e.schema_id == schema_id and e.name.casefold() == folded), None)
