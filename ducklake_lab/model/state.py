"""The entries of a lake as of one snapshot: schemas, tables, views, macros."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ducklake_lab.errors import EntryNotFoundError, did_you_mean
from ducklake_lab.model.entries import Macro, Schema, Snapshot, Table, View
from ducklake_lab.model.quoting import path_title, schema_path, split_dotted


class Tables(Mapping[int, Table]):
    """Tables by id, each made when it is first asked for: a lake may have thousands, and a statement names few.

    Args:
        names: (schema id, name) of each table, by its id.
        make: makes a table of its id.
        changed: tables that are here already, rather than made.
        tagged: ids of tables that have expectations.

    Attributes:
        names: as given; no table is made for them.
    """

    def __init__(
        self,
        names: Mapping[int, tuple[int, str]] | None = None,
        make: Callable[[int], Table] | None = None,
        changed: Mapping[int, Table] | None = None,
        tagged: Collection[int] = (),
    ) -> None:
        self.names: Mapping[int, tuple[int, str]] = names or {}
        self._tagged = tagged
        self._make = make
        self._made: dict[int, Table] = dict(changed or {})

    def __getitem__(self, table_id: int) -> Table:
        table = self._made.get(table_id)
        if table is None:
            if table_id not in self.names or self._make is None:
                raise KeyError(table_id)
            table = self._made[table_id] = self._make(table_id)
        return table

    def __iter__(self) -> Iterator[int]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, table_id: object) -> bool:
        return table_id in self.names

    def named(self, schema_id: int, name: str) -> Table | None:
        """The table of that name in a schema, without regard to case."""
        folded = name.casefold()
        for table_id, (schema, table_name) in self.names.items():
            if schema == schema_id and table_name.casefold() == folded:
                return self[table_id]
        return None

    def made(self) -> Iterator[Table]:
        """Return the tables made so far: all that were changed are among them."""
        return (table for table_id, table in self._made.items() if table_id in self.names)

    def expecting(self) -> list[Table]:
        """Return the tables that have expectations, by id."""
        if not self._tagged:
            return []
        return [table for number in sorted(self._tagged) if number in self.names and (table := self[number]).tags]

    def with_table(self, table: Table) -> Tables:
        names = {**self.names, table.table_id: (table.schema_id, table.name)}
        tagged = {*self._tagged, table.table_id} if table.tags else self._tagged
        return Tables(names, self._make, {**self._made, table.table_id: table}, tagged)

    def without(self, table_id: int) -> Tables:
        names = {key: value for key, value in self.names.items() if key != table_id}
        made = {key: value for key, value in self._made.items() if key != table_id}
        return Tables(names, self._make, made, self._tagged)


@dataclass(frozen=True, slots=True)
class CatalogState:
    """All entries visible at a snapshot, by id. Immutable: an edit gives a new state."""

    snapshot: Snapshot
    schemas: Mapping[int, Schema] = field(default_factory=dict)
    tables: Tables = field(default_factory=Tables)
    views: Mapping[int, View] = field(default_factory=dict)
    macros: Mapping[int, Macro] = field(default_factory=dict)

    def differs_from(self, other: CatalogState) -> bool:
        """Return whether any entry differs; tables that neither state has made count as equal."""
        return (
            (self.schemas, self.views, self.macros) != (other.schemas, other.views, other.macros)
            or self.tables.keys() != other.tables.keys()
            or any(table != other.tables[table.table_id] for table in self.tables.made())
        )

    def find_schema(self, name: str) -> Schema | None:
        """The schema of that name, without regard to case."""
        folded = name.casefold()
        return next((schema for schema in self.schemas.values() if schema.name.casefold() == folded), None)

    def schema_in_text(self, text: str) -> Schema:
        """The schema that a text names, as arguments of functions do: by its dotted path, or else as one name.

        Raises:
            EntryNotFoundError: there is none.
        """
        return self.find_schema_in_text(text) or self.schema(schema_path((text,)))

    def find_schema_in_text(self, text: str) -> Schema | None:
        """Find a schema as `schema_in_text` does; None where there is none."""
        try:
            nested = self.find_schema(schema_path(split_dotted(text)))
        except ValueError:
            nested = None
        return nested or self.find_schema(schema_path((text,)))

    def table_in_text(self, schema: str, name: str) -> Table:
        """The table of that name, in the schema that a text names; see `schema_in_text`."""
        return self.table(self.schema_in_text(schema).name, name)

    def schema(self, name: str) -> Schema:
        """The schema of that name; of a nested one the path, see `schema_path`.

        Raises:
            EntryNotFoundError: there is none.
        """
        schema = self.find_schema(name)
        if schema is None:
            hint = did_you_mean(path_title(name), (path_title(schema.name) for schema in self.schemas.values()))
            raise EntryNotFoundError(
                f'There is no schema "{path_title(name)}" at snapshot {self.snapshot.snapshot_id}.{hint}'
            )
        return schema

    def find_table(self, schema: str, name: str) -> Table | None:
        """The table of that name in the schema, without regard to case."""
        parent = self.find_schema(schema)
        return self.tables.named(parent.schema_id, name) if parent is not None else None

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
        table = self.tables.named(parent.schema_id, name)
        if table is None:
            if _named(self.views.values(), parent.schema_id, name) is not None:
                raise EntryNotFoundError(f"{path_title(parent.name)}.{name} is a view, not a table.")
            tables = self.tables.names.items()
            hint = did_you_mean(name, (other for _, (schema_id, other) in tables if schema_id == parent.schema_id))
            if not hint:
                names = self.table_names()
                others = [names[number] for number, (_, other) in tables if other.casefold() == name.casefold()]
                hint = f" Did you mean {' or '.join(others[:3])}?" if others else ""
            raise EntryNotFoundError(
                f'There is no table "{name}" in schema {path_title(parent.name)} at snapshot {self.snapshot.snapshot_id}.{hint}'
            )
        return table

    def find_macro(self, schema: str, name: str, kind: str) -> Macro | None:
        """The `scalar` or `table` macro of that name in the schema, without regard to case."""
        if not self.macros:
            return None
        parent = self.find_schema(schema)
        macros = [macro for macro in self.macros.values() if macro.kind == kind]
        return _named(macros, parent.schema_id, name) if parent is not None else None

    def view(self, schema: str, name: str) -> View:
        """The view of that name.

        Raises:
            EntryNotFoundError: there is no such schema or view.
        """
        parent = self.schema(schema)
        view = _named(self.views.values(), parent.schema_id, name)
        if view is None:
            if self.tables.named(parent.schema_id, name) is not None:
                raise EntryNotFoundError(f"{path_title(parent.name)}.{name} is a table, not a view.")
            hint = did_you_mean(name, (view.name for view in self.views.values()))
            raise EntryNotFoundError(
                f'There is no view "{name}" in schema {path_title(parent.name)} at snapshot {self.snapshot.snapshot_id}.{hint}'
            )
        return view

    def tables_of(self, schema_id: int) -> list[Table]:
        """The tables of a schema, by name."""
        tables = self.tables.names.items()
        return [
            self.tables[number] for number, (schema, _) in sorted(tables, key=lambda t: t[1][1]) if schema == schema_id
        ]

    def table_names(self) -> dict[int, str]:
        """The qualified names of all tables, by id; no table is made for them."""
        titles = {number: path_title(schema.name) for number, schema in self.schemas.items()}
        return {number: f"{titles[schema_id]}.{name}" for number, (schema_id, name) in self.tables.names.items()}

    def schema_of(self, entry: Table | View | Macro) -> Schema:
        return self.schemas[entry.schema_id]

    def qualified_name(self, entry: Table | View | Macro) -> str:
        return f"{path_title(self.schema_of(entry).name)}.{entry.name}"

    def with_schema(self, schema: Schema) -> CatalogState:
        return replace(self, schemas={**self.schemas, schema.schema_id: schema})

    def without_schema(self, schema_id: int) -> CatalogState:
        return replace(self, schemas={key: value for key, value in self.schemas.items() if key != schema_id})

    def with_table(self, table: Table) -> CatalogState:
        return replace(self, tables=self.tables.with_table(table))

    def without_table(self, table_id: int) -> CatalogState:
        return replace(self, tables=self.tables.without(table_id))

    def with_view(self, view: View) -> CatalogState:
        return replace(self, views={**self.views, view.view_id: view})

    def without_view(self, view_id: int) -> CatalogState:
        return replace(self, views={key: value for key, value in self.views.items() if key != view_id})

    def with_macro(self, macro: Macro) -> CatalogState:
        return replace(self, macros={**self.macros, macro.macro_id: macro})

    def without_macro(self, macro_id: int) -> CatalogState:
        return replace(self, macros={key: value for key, value in self.macros.items() if key != macro_id})


Entry = TypeVar("Entry", View, Macro)


def _named(entries: Iterable[Entry], schema_id: int, name: str) -> Entry | None:
    folded = name.casefold()
    return next((e for e in entries if e.schema_id == schema_id and e.name.casefold() == folded), None)
