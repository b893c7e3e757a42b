"""An open transaction: a snapshot to build on, and what has been changed on top of it, not committed yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog import paths, versions
from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.catalog.files import read_table_stats
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import Scope
from ducklake_lab.catalog.reader import highest_column_id
from ducklake_lab.errors import (
    BindError,
    EntryExistsError,
    EntryNotFoundError,
    TransactionError,
    UnsupportedFeatureError,
)
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
from ducklake_lab.model.files import WrittenDeletes, WrittenFile
from ducklake_lab.model.quoting import path_parts, path_title, schema_path
from ducklake_lab.model.staged import ROW_ID, Compaction, FlushedFile, StagedData, StagedFile, StagedRows
from ducklake_lab.model.state import CatalogState
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.batches import StreamBatch

#: Writes a delete file anew, given its folder, under another id of the snapshot that commits it.
Restamp = Callable[[WrittenDeletes, str, int], WrittenDeletes]


class Transaction:
    """Collects changes to one lake. Nothing is in the catalog until it is committed.

    Attributes:
        base: the entries it was begun on.
        state: the entries with its own changes.
        data: what it does to rows, by table id.
        author, message, extra_info: for the snapshot it becomes.
        batch: the micro-batch of a stream that it commits, if any.
        snapshot: the snapshot it became; None until it is committed, or where it changed nothing.
        options: those that apply, its own included.
        new_options: options it sets; they belong to no snapshot.
        only_appends: it is one INSERT: row ids are counted from 0 until it is committed, as nobody sees them before.
        altered: tables and views of its own making that it altered, by id: `changes_made` says so.
        former_names: the names that tables and views of its own making had for a while, oldest first, likewise.
    """

    def __init__(self, lake: Lake, base: Snapshot | None = None, restamp: Restamp | None = None) -> None:
        """Begins on the snapshot `base`, else on the newest."""
        lake.check_writable()
        self.lake = lake
        with lake.connect() as connection:
            self.base: CatalogState = lake.state(connection, base or lake.snapshot(connection))
            self.options = lake.options(connection)
        self.new_options: dict[tuple[Scope, str], str] = {}
        self.state = self.base
        self.data: dict[int, StagedData] = {}
        self.author: str | None = None
        self.message: str | None = None
        self.extra_info: str | None = None
        self.batch: StreamBatch | None = None
        self.snapshot: Snapshot | None = None
        self.only_appends = False
        self.altered: set[int] = set()
        self.former_names: dict[int, list[tuple[str, ...]]] = {}
        self._next_local_id = LOCAL_ID_START
        self._restamp = restamp
        self._row_id_starts: dict[int, int] = {}
        self._highest_column_ids: dict[int, int] = {}
        self._discarded: list[str] = []

    @property
    def next_snapshot(self) -> int:
        """The id of the snapshot it becomes, if no other commit comes first."""
        return self.base.snapshot.snapshot_id + 1

    @property
    def has_changes(self) -> bool:
        return self.state is not self.base or any(self.data.values())

    def local_id(self) -> int:
        """An id for something new, to be replaced at commit."""
        self._next_local_id += 1
        return self._next_local_id

    def is_committed(self, table: Table) -> bool:
        """Whether the catalog knows the table, rather than only this transaction."""
        return table.table_id < LOCAL_ID_START

    def set_option(self, scope: Scope, key: str, value: str) -> None:
        """Sets an option of the lake, a schema or a table, for itself at once and for others when it is committed."""
        self.new_options[scope, key] = value
        self.options = replace(self.options, values={**self.options.values, (*scope, key): value})

    # Entries

    def _check_version(self, feature: str, since: str) -> None:
        """Raises UnsupportedFeatureError where the lake's version lacks what a later one brought."""
        version = self.lake.version
        if not versions.is_since(version, since):
            raise UnsupportedFeatureError(
                f"DuckLake {version.name} has no {feature}; attach the lake with DUCKLAKE_VERSION '{since}' and "
                "AUTOMATIC_MIGRATION to bring it to a version that has."
            )

    def create_schema(self, name: str) -> Schema:
        """Adds a schema; of a nested one the name is its path, see `schema_path`."""
        if self.state.find_schema(name) is not None:
            raise EntryExistsError(f"There is a schema {name} already; use CREATE SCHEMA IF NOT EXISTS to keep it.")
        uuid = new_uuid()
        *outer, own = path_parts(name)
        if outer:
            self._check_version("nested schemas", "1.1")
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

    def create_table(self, schema: Schema, name: str, columns: Sequence[Column]) -> Table:
        """Adds a table; `columns` are model Columns whose ids count from 1."""
        self.check_name_is_free(schema, name)
        uuid = new_uuid()
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
            self._check_version("type NULL", "1.1")
        for column in table.columns:
            name = column.name.casefold()
            if name in FILE_COLUMNS or self.lake.version.reserves(name, inlines=inlines):
                always = name in FILE_COLUMNS or self.lake.version.reserves(name, inlines=False)
                hint = "" if always else ", or set data_inlining_row_limit to 0"
                raise BindError(
                    f'The column name "{column.name}" is reserved, for what a lake keeps beside the rows of '
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
            # whether it commits or not, nobody will ever read them
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
        known = self._highest_column_ids.get(table.table_id)
        if known is not None or not self.is_committed(table):
            self._highest_column_ids[table.table_id] = max(highest, known or 0)
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

    # Rows

    def staged(self, table: Table) -> StagedData:
        return self.data.setdefault(table.table_id, StagedData())

    def peek(self, table: Table) -> StagedData | None:
        """What is staged for the table, or None; makes nothing."""
        return self.data.get(table.table_id)

    def append_files(self, table: Table, files: Sequence[WrittenFile]) -> None:
        """Stages written data files."""
        staged = self.staged(table)
        for file in files:
            partition = table.partition.partition_id if table.partition is not None and table.partition.fields else None
            staged.files[self.local_id()] = StagedFile(file, partition, self._take_row_ids(table, file.record_count))

    def append_rows(self, table: Table, rows: pa.Table, row_ids: pa.Array | None = None) -> None:
        """Stages rows (the table's columns, in order) to be inlined; with row ids for new versions of existing rows."""
        if rows.num_rows == 0:
            return
        if row_ids is None:
            start = self._take_row_ids(table, rows.num_rows)
            ids = pa.array(range(start, start + rows.num_rows), pa.int64())
        else:
            ids = row_ids
        staged = StagedRows(table.columns, rows.add_column(0, ROW_ID, ids), updated=row_ids is not None)
        self.staged(table).rows.append(staged)

    def delete_from_files(self, table: Table, deletes: Sequence[WrittenDeletes], records: dict[int, int]) -> None:
        """Stages deletions from data files.

        Args:
            records: rows of each data file, by id: a file all of whose rows are deleted at once is dropped.
        """
        staged = self.staged(table)
        folder = self.lake.folder(self.state, table)
        for new in deletes:
            old = staged.deletes.get(new.data_file_id)
            if new.path is None:
                merged = sorted({*(old.positions if old is not None else ()), *new.positions})
                staged.deletes[new.data_file_id] = replace(old or new, positions=tuple(merged))
                continue
            if old is not None and old.path is not None:
                self._discarded.append(folder + old.path)
            if new.delete_count == records[new.data_file_id]:
                self._discarded.append(folder + new.path)
                self._drop_file(staged, new.data_file_id, folder)
            elif old is None:
                staged.deletes[new.data_file_id] = new
            else:
                both = replace(new, positions=old.positions, replaces=(*old.replaces, *new.replaces))
                staged.deletes[new.data_file_id] = both

    def _drop_file(self, staged: StagedData, file_id: int, folder: str) -> None:
        staged.deletes.pop(file_id, None)
        local = staged.files.pop(file_id, None)
        if local is not None:
            self._discarded += local.file.own_paths(folder)
        else:
            staged.dropped_files.add(file_id)

    def delete_inlined(self, table: Table, row_ids: Sequence[int]) -> None:
        """Stages the deletion of inlined rows, committed or not."""
        if not row_ids:
            return
        staged = self.staged(table)
        gone = pa.array(sorted(set(row_ids)), pa.int64())
        kept: list[StagedRows] = []
        found: set[int] = set()
        for batch in staged.rows:
            hit = pc.is_in(batch.rows.column(ROW_ID), gone)
            found.update(batch.rows.filter(hit).column(ROW_ID).to_pylist())
            rest = batch.rows.filter(pc.invert(hit))
            if rest.num_rows:
                kept.append(replace(batch, rows=rest))
        staged.rows = kept
        staged.deleted_row_ids.update(set(row_ids) - found)

    def truncate(self, table: Table, committed_files: Sequence[int], row_ids: Sequence[int]) -> None:
        """Stages the deletion of all rows: whole files, and inlined rows by id."""
        staged = self.staged(table)
        folder = self.lake.folder(self.state, table)
        for file_id in committed_files:
            self._drop_file(staged, file_id, folder)
        self.delete_inlined(table, row_ids)

    def flush(
        self,
        table: Table,
        files: Sequence[FlushedFile],
        tables: Mapping[str, int],
        deletes: Sequence[WrittenDeletes],
        deletes_up_to: int | None,
    ) -> None:
        """Stages that inlined rows and deletions are in files now.

        Args:
            tables: inlined data tables, and the snapshot up to which their rows are in `files`.
            deletes: delete files that hold the inlined deletions up to a snapshot.
        """
        staged = self.staged(table)
        for file in files:
            staged.flushed[self.local_id()] = file
        staged.flushed_tables.update(tables)
        if deletes_up_to is not None:
            staged.deletes.update({written.data_file_id: written for written in deletes})
            staged.flushed_deletes = deletes_up_to

    def compact(self, table: Table, compactions: Sequence[Compaction]) -> None:
        """Stages files that take the place of others."""
        staged = self.staged(table)
        for compaction in compactions:
            staged.compactions[self.local_id()] = compaction

    def restore_files(
        self,
        table: Table,
        gone: Sequence[int],
        files: Sequence[tuple[WrittenFile, int | None, int | None, WrittenDeletes | None]],
    ) -> None:
        """Stages that some data files end, and that others come with the row ids their rows have had before.

        Args:
            files: each with its partition id, first row id, and delete file.
        """
        staged = self.staged(table)
        staged.dropped_files.update(gone)
        for file, partition_id, row_id_start, deletes in files:
            local_id = self.local_id()
            staged.files[local_id] = StagedFile(file, partition_id, row_id_start)
            if deletes is not None:
                staged.deletes[local_id] = replace(deletes, data_file_id=local_id)

    def restamp(self, table: Table, deletes: WrittenDeletes, snapshot_id: int) -> WrittenDeletes:
        """The delete file with another id of the snapshot that commits it.

        Raises:
            TransactionError: nobody can write it anew.
        """
        if self._restamp is None:
            raise TransactionError("Another transaction committed first; run this one again.")
        return self._restamp(deletes, self.lake.folder(self.state, table), snapshot_id)

    def _take_row_ids(self, table: Table, count: int) -> int:
        staged = self.staged(table)
        start = self.row_id_base(table) + staged.rows_used
        staged.rows_used += count
        return start

    def row_id_base(self, table: Table) -> int:
        """The row id that those of this transaction count from: the table's next one when it first wrote to it."""
        known = self._row_id_starts.get(table.table_id)
        if known is None:
            known = 0
            if self.is_committed(table) and not self.only_appends:
                with self.lake.connect() as connection:
                    stats = read_table_stats(connection, [table.table_id]).get(table.table_id)
                    known = stats.next_row_id if stats is not None else 0
            self._row_id_starts[table.table_id] = known
        return known

    # End

    def written_paths(self) -> list[str]:
        """Absolute paths of every file this transaction wrote and still holds."""
        found = list(self._discarded)
        for table_id, staged in self.data.items():
            table = self.state.tables.get(table_id) or self.base.tables.get(table_id)
            if table is None:
                continue
            state = self.state if table.schema_id in self.state.schemas else self.base
            found += staged.written_paths(self.lake.folder(state, table))
        return found

    def rollback(self) -> None:
        """Forgets everything and removes the files that were written."""
        Storage().discard(self.written_paths())
        self.data.clear()
        self._discarded.clear()
        self.state = self.base

    def committed(self) -> None:
        """Removes files that were written on the way and that the commit does not use."""
        Storage().delete(self._discarded)
        self._discarded.clear()


def _is_noted(old: Table, new: Table) -> bool:
    """Whether `changes_made` says that a table was altered in the transaction that made it.

    The reference does not note dropped columns, types, or fields of structs.
    """
    known = {column.column_id: column for column in old.columns}

    def is_changed(column: Column) -> bool:
        before = known.get(column.column_id)
        return before is None or replace(before, type=column.type, children=column.children) != column

    columns = any(map(is_changed, new.columns))
    return columns or (old.partition, old.sort, old.comment) != (new.partition, new.sort, new.comment)
