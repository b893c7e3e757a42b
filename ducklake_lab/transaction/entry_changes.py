"""Changes of a lake's entries in an open transaction: schemas, tables, views, macros, and options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ducklake_lab.catalog import attachments, paths
from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.catalog.cache import CachedCatalog
from ducklake_lab.catalog.columns import highest_column_id
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import Scope
from ducklake_lab.errors import BindError, EntryExistsError, EntryNotFoundError
from ducklake_lab.model.entries import (
    FILE_COLUMNS,
    LOCAL_ID_START,
    Column,
    Macro,
    MacroImplementation,
    PartitionField,
    PartitionSpec,
    Schema,
    Snapshot,
    SortKey,
    SortSpec,
    Table,
    View,
    join_names,
)
from ducklake_lab.model.quoting import path_parts, path_title, schema_path
from ducklake_lab.model.staged import StagedData
from ducklake_lab.model.state import CatalogState
from ducklake_lab.storage import Storage


class EntryChanges:
    """Changes of entries on top of a snapshot, none of which is in the catalog yet.

    Attributes:
        base: the entries it was begun on.
        state: the entries with its own changes.
        known: the cached rows that it was begun on; None where the catalog was read.
        option_rows: the options set in the lake when it was begun.
        data: changes of rows, by table id.
        options: those that apply, its own included.
        new_options: options it sets, or with None takes away; they belong to no snapshot.
        needed_options: options of the lake that its commit needs as they are here; None for one that is not set.
        new_tags: tags of tables that it sets, or with None takes away, by table id and key.
        needed_tags: tags that its commit needs as they are here, by table id and key; None for one that is not set.
        altered: tables and views of its own making that it altered, by id: `changes_made` says so.
        former_names: the earlier names of tables and views that it made, oldest first, by id.
    """

    def __init__(
        self, lake: Lake, base: Snapshot | None, known: CachedCatalog | None, *, is_for_looking: bool = False
    ) -> None:
        """Begins on the snapshot `base`, else on the newest; or on what is `known`, which is to be compared at commit.

        Args:
            is_for_looking: nothing is staged in it, so that the lake may be read-only.
        """
        if not is_for_looking:
            lake.check_writable()
        self.lake = lake
        state = lake.cache.entries(known.snapshot) if known is not None else None
        if known is None or known.options is None or state is None:
            self.known = None
            with lake.connect() as connection:
                self.base: CatalogState = lake.state(connection, base or lake.snapshot(connection))
                self.option_rows = lake.option_rows(connection)
        else:
            self.known, self.base, self.option_rows = known, state, known.options
        self.options = lake.options_of(self.option_rows)
        self.new_options: dict[tuple[Scope, str], str | None] = {}
        self.needed_options: dict[str, str | None] = {}
        self.new_tags: dict[tuple[int, str], str | None] = {}
        self.needed_tags: dict[tuple[int, str], str | None] = {}
        self.state = self.base
        self.data: dict[int, StagedData] = {}
        self.altered: set[int] = set()
        self.former_names: dict[int, list[tuple[str, ...]]] = {}
        self._next_local_id = LOCAL_ID_START
        self._highest_column_ids: dict[int, int] = {}

    def local_id(self) -> int:
        """Return an id for a new entry, to be replaced at commit."""
        self._next_local_id += 1
        return self._next_local_id

    def is_committed(self, table: Table) -> bool:
        """Returns whether the catalog knows the table, rather than only this transaction."""
        return table.table_id < LOCAL_ID_START

    def set_option(self, scope: Scope, key: str, value: str | None) -> None:
        """Sets an option of the lake, a schema or a table, for itself at once and for others when it is committed.

        None takes it away.
        """
        self.new_options[scope, key] = value
        values = dict(self.options.values)
        values.pop((*scope, key), None)
        if value is not None:
            values[*scope, key] = value
        self.options = replace(self.options, values=values)

    def tag(self, table: Table, key: str) -> str | None:
        """Return a tag of a table as the transaction sees it, or None; its commit needs the tag unchanged."""
        place = (table.table_id, key)
        if place not in self.needed_tags and self.is_committed(table):
            with self.lake.connect() as connection:
                tags = attachments.table_tags(connection, self.base.snapshot.snapshot_id, key)
            self.needed_tags[place] = tags.get(place)
        return self.new_tags[place] if place in self.new_tags else self.needed_tags.get(place)

    def set_tag(self, table: Table, key: str, value: str | None) -> None:
        """Set a tag of a table, or with None take it away; other clients keep it and ignore it.

        A tag belongs to a snapshot as rows do: it is read as of any snapshot, and makes no new schema version.
        """
        if self.tag(table, key) != value:
            self.new_tags[table.table_id, key] = value

    def create_schema(self, name: str) -> Schema:
        """Adds a schema; of a nested one the name is its path, see `schema_path`."""
        if self.state.find_schema(name) is not None:
            shown = name or '""'
            raise EntryExistsError(f"There is a schema {shown} already; use CREATE SCHEMA IF NOT EXISTS to keep it.")
        uuid = new_uuid()
        *outer, own = path_parts(name)
        if outer:
            self.lake.check_has("nested schemas", "1.1")
        parent = self.state.schema(schema_path(outer)).schema_id if outer else None
        path = f"{uuid}/" if outer else paths.folder_name(own, uuid)
        schema = Schema(self.local_id(), uuid, name, path, parent_id=parent)
        self.state = self.state.with_schema(schema)
        return schema

    def drop_schema(self, schema: Schema, *, cascade: bool) -> None:
        tables = self.state.tables_of(schema.schema_id)
        views = [view for view in self.state.views.values() if view.schema_id == schema.schema_id]
        macros = [macro for macro in self.state.macros.values() if macro.schema_id == schema.schema_id]
        inner = [other for other in self.state.schemas.values() if other.parent_id == schema.schema_id]
        if (tables or views or macros or inner) and not cascade:
            kinds = "tables, views, macros or schemas" if inner else "tables, views or macros"
            count = len(tables) + len(views) + len(macros) + len(inner)
            raise EntryExistsError(
                f"The schema {path_title(schema.name)} is not empty: {count} {kinds} depend on it. "
                "Use DROP SCHEMA … CASCADE to drop them too."
            )
        for other in inner:
            self.drop_schema(other, cascade=True)
        for table in tables:
            self.drop_table(table)
        for view in views:
            self.state = self.state.without_view(view.view_id)
        for macro in macros:
            self.state = self.state.without_macro(macro.macro_id)
        self.state = self.state.without_schema(schema.schema_id)

    def create_table(self, schema: Schema, name: str, columns: Sequence[Column], uuid: str | None = None) -> Table:
        """Adds a table; `columns` are model Columns whose ids count from 1.

        Args:
            uuid: of the table; a new one by default.
        """
        self.check_name_is_free(schema, name)
        uuid = uuid or new_uuid()
        table = Table(
            table_id=self.local_id(),
            uuid=uuid,
            schema_id=schema.schema_id,
            name=name,
            path=paths.folder_name(name, uuid),
            columns=tuple(columns),
        )
        self._check_columns(table)
        self.state = self.state.with_table(table)
        return table

    def _check_columns(self, table: Table) -> None:
        inlines = self.options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id) > 0
        if any(column.type == "null" for column in table.all_columns()):
            self.lake.check_has("type NULL", "1.1")
        for column in table.columns:
            name = column.name.casefold()
            if name in FILE_COLUMNS or self.lake.version.reserves(name, inlines=inlines):
                always = name in FILE_COLUMNS or self.lake.version.reserves(name, inlines=False)
                hint = "" if always else ", or set data_inlining_row_limit to 0"
                raise BindError(
                    f'The column name "{column.name}" is reserved: a lake keeps such a column beside the rows of '
                    f"{table.name}; choose another one{hint}."
                )

    def create_view(self, schema: Schema, name: str, sql: str, column_names: Sequence[str] = ()) -> View:
        """Adds a view; `sql` is its query in DuckDB's own spelling."""
        self.check_name_is_free(schema, name)
        view = View(self.local_id(), new_uuid(), schema.schema_id, name, "duckdb", sql, join_names(column_names))
        self.state = self.state.with_view(view)
        return view

    def create_macro(
        self,
        schema: Schema,
        name: str,
        kind: Literal["scalar", "table"],
        implementations: Sequence[MacroImplementation],
    ) -> Macro:
        """Adds a macro; scalar and table macros have names of their own."""
        if self.state.find_macro(schema.name, name, kind) is not None:
            raise EntryExistsError(
                f'A {kind} macro with name "{name}" already exists in {schema.name}; use CREATE OR REPLACE.'
            )
        macro = Macro(self.local_id(), schema.schema_id, name, kind, tuple(implementations))
        self.state = self.state.with_macro(macro)
        return macro

    def check_name_is_free(self, schema: Schema, name: str) -> None:
        """Raises EntryExistsError where a table or view has the name."""
        if self.state.find_table(schema.name, name) is not None:
            raise EntryExistsError(
                f"There is a table {schema.name}.{name} already; use CREATE OR REPLACE or IF NOT EXISTS."
            )
        if self.state.find_view(schema.name, name) is not None:
            raise EntryExistsError(f"There is a view {schema.name}.{name} already; choose another name or drop it.")

    def drop_table(self, table: Table) -> None:
        staged = self.data.pop(table.table_id, None)
        if staged is not None:
            folder = self.lake.folder(self.state, table)
            written = [path for file in staged.files.values() for path in file.file.own_paths(folder)]
            written += [folder + deletes.path for deletes in staged.deletes.values() if deletes.path is not None]
            # nobody reads them, whether it commits or not
            Storage().delete(written)
        self.state = self.state.without_table(table.table_id)

    def replace_table(self, table: Table) -> None:
        """Replaces the table with the changed one's id."""
        old = self.state.tables.get(table.table_id)
        if old is None:
            raise EntryNotFoundError(f"The table {table.name} has been dropped in this transaction.")
        if table.columns != old.columns:
            self._check_columns(table)
        highest = max(column.column_id for column in old.all_columns())
        earlier = self._highest_column_ids.get(table.table_id)
        if earlier is not None or not self.is_committed(table):
            self._highest_column_ids[table.table_id] = max(highest, earlier or 0)
        if not self.is_committed(table):
            self._note(table.table_id, old, renamed=old.name != table.name, noted=_is_noted(old, table))
        self.state = self.state.with_table(table)

    def replace_view(self, view: View) -> None:
        """Replaces the view with the changed one's id."""
        old = self.state.views[view.view_id]
        if view.view_id >= LOCAL_ID_START:
            self._note(view.view_id, old, renamed=old.name != view.name, noted=True)
        self.state = self.state.with_view(view)

    def _note(self, entry_id: int, old: Table | View, *, renamed: bool, noted: bool) -> None:
        if renamed:
            self.former_names.setdefault(entry_id, []).append((*self.state.schemas[old.schema_id].parts, old.name))
        elif noted:
            self.altered.add(entry_id)

    def next_column_id(self, table: Table) -> int:
        """The next free column id: above all the table ever had, in this transaction too."""
        highest = max((column.column_id for column in table.all_columns()), default=0)
        highest = max(highest, self._highest_column_ids.get(table.table_id, 0))
        if table.table_id in self.base.tables and table.table_id not in self._highest_column_ids:
            with self.lake.connect() as connection:
                highest = max(highest, highest_column_id(connection, table.table_id))
        self._highest_column_ids[table.table_id] = highest
        return highest + 1

    def new_partition(self, fields: Sequence[PartitionField]) -> PartitionSpec:
        return PartitionSpec(self.local_id(), tuple(fields))

    def new_sort(self, keys: Sequence[SortKey]) -> SortSpec:
        return SortSpec(self.local_id(), tuple(keys))


def _is_noted(old: Table, new: Table) -> bool:
    """Returns whether `changes_made` says that a table was altered in the transaction that made it.

    The reference does not note dropped columns, types, or fields of structs.
    """
    old_columns = {column.column_id: column for column in old.columns}

    def is_changed(column: Column) -> bool:
        before = old_columns.get(column.column_id)
        return before is None or replace(before, type=column.type, children=column.children) != column

    columns = any(map(is_changed, new.columns))
    before, after = ((table.partition, table.sort, table.comment, table.tags) for table in (old, new))
    return columns or before != after
