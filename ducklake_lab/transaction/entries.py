"""Write a transaction's changes of entries: the difference between its first state and its present one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import inlined
from ducklake_lab.catalog import tables as t
from ducklake_lab.model.entries import LOCAL_ID_START, Column, Macro, Schema, Table, View
from ducklake_lab.transaction.facts import CommitFacts
from ducklake_lab.transaction.metadata import Ids, Metadata
from ducklake_lab.transaction.own_changes import entry_id, written_entries
from ducklake_lab.transaction.retyping import retype_bounds
from ducklake_lab.transaction.transaction import Transaction

_NULL_ORDERS = {"NULLS FIRST": "NULLS_FIRST", "NULLS LAST": "NULLS_LAST"}


class EntryWriter:
    """Writes schemas, tables, views and macros as of one snapshot."""

    def __init__(self, transaction: Transaction, metadata: Metadata, ids: Ids, facts: CommitFacts) -> None:
        self._tx = transaction
        self._metadata = metadata
        self._ids = ids
        self._facts = facts
        self._schema_version = ids.schema_version
        self._unnoted: Mapping[int, Sequence[tuple[int, int]]] = {}

    def write(self) -> None:
        self._drop()
        new_schemas = [i for i in self._tx.state.schemas if i not in self._tx.base.schemas]
        # the last new entry gets the first id, as in the reference
        for schema_id in reversed(new_schemas):
            self._create_schema(self._tx.state.schemas[schema_id])
        entries = written_entries(self._tx)
        committed = [entry for entry in entries if entry_id(entry) < LOCAL_ID_START]
        altered = [i for i, before in self._tx.base.tables.items() if _is_altered(before, self._tx.state.tables.get(i))]
        if altered:
            self._unnoted = inlined.unnoted_versions(self._metadata.connection, altered)
        for entry in [*committed, *reversed(entries[len(committed) :])]:
            self._write_table_or_view(entry)
        macros = self._tx.state.macros
        for macro_id in reversed([macro_id for macro_id in macros if macro_id not in self._tx.base.macros]):
            self._create_macro(macros[macro_id])

    def _write_table_or_view(self, entry: Table | View) -> None:
        if isinstance(entry, Table):
            self._write_table(entry)
        else:
            self._write_view(entry)

    def _drop(self) -> None:
        base, state = self._tx.base, self._tx.state
        for schema_id in sorted(base.schemas.keys() - state.schemas.keys()):
            self._metadata.end(t.schema, t.schema.c.schema_id == schema_id)
        tables = sorted(base.tables.keys() - state.tables.keys())
        if tables:
            for table in (t.table, t.partition_info, t.column, t.column_tag, t.data_file, t.delete_file, t.sort_info):
                self._metadata.end(table, table.c.table_id.in_(tables))
        views = sorted(base.views.keys() - state.views.keys())
        if views:
            for table in (t.view, t.view_column_tag):
                self._metadata.end(table, table.c.view_id.in_(views))
        if tables or views:
            self._metadata.end(t.tag, t.tag.c.object_id.in_([*tables, *views]))
        macros = sorted(base.macros.keys() - state.macros.keys())
        if macros:
            self._metadata.end(t.macro, t.macro.c.macro_id.in_(macros))

    def _create_schema(self, schema: Schema) -> None:
        parent = self._ids.catalog(schema.parent_id) if schema.parent_id is not None else None
        self._metadata.insert(
            t.schema,
            schema_id=self._ids.catalog(schema.schema_id),
            schema_uuid=schema.uuid,
            begin_snapshot=self._metadata.snapshot_id,
            schema_name=schema.parts[-1],
            path=schema.path,
            path_is_relative=schema.path_is_relative,
            parent_schema_id=parent,
        )

    # Tables

    def _write_table(self, table: Table) -> None:
        before = self._tx.base.tables.get(table.table_id)
        if before == table:
            return
        table_id = self._ids.catalog(table.table_id)
        renamed = before is None or (before.name, before.schema_id) != (table.name, table.schema_id)
        if renamed:
            self._write_name(table, table_id, is_new=before is None)
        altered, reshaped = self._write_columns(table_id, before.columns if before is not None else (), table.columns)
        if (before.partition if before is not None else None) != table.partition:
            self._write_partition(table_id, table)
            altered = reshaped = True
        if altered or renamed:
            self._facts.alter(table_id, self._schema_version)
            # without, the reference reads the new columns' defaults for values that were inlined before
            unnoted = self._unnoted.get(table_id, ())
            for begin, version in ((self._metadata.snapshot_id, self._schema_version), *unnoted):
                self._metadata.insert(
                    t.schema_versions, begin_snapshot=begin, schema_version=version, table_id=table_id
                )
        if (
            (reshaped or renamed)
            and self._inlining_limit(table) > 0
            and inlined.can_inline(table.columns, self._tx.lake.location.backend, self._tx.lake.version)
        ):
            create, version = inlined.create_data_table, self._schema_version
            self._metadata.then(create, self._tx.lake.database, table_id, version, table.columns)
            self._facts.give_inlined_table(table_id, inlined.data_table_name(table_id, version), version)
        # the following changes concern no file, and so make no new version of the table's schema
        self._write_column_comments(table_id, before, table)
        self._write_comment(table_id, before, table)
        self._write_tags(table_id, before, table)
        self._write_sort(table_id, before, table)

    def _write_name(self, table: Table, table_id: int, *, is_new: bool) -> None:
        if not is_new:
            self._metadata.end(t.table, t.table.c.table_id == table_id)
        self._metadata.insert(
            t.table,
            table_id=table_id,
            table_uuid=table.uuid,
            begin_snapshot=self._metadata.snapshot_id,
            schema_id=self._ids.known(table.schema_id),
            table_name=table.name,
            path=table.path,
            path_is_relative=table.path_is_relative,
        )

    def _write_columns(self, table_id: int, before: Sequence[Column], after: Sequence[Column]) -> tuple[bool, bool]:
        """Returns whether any row was written, and whether inlined rows need a table with other columns now."""
        old = dict(_rows_of(before))
        new = dict(_rows_of(after))
        ended = [column_id for column_id, row in old.items() if new.get(column_id) != row]
        if ended:
            self._metadata.end(t.column, sa.and_(t.column.c.table_id == table_id, t.column.c.column_id.in_(ended)))
        retype_bounds(self._metadata, self._facts, table_id, old, new)
        added = [row for column_id, row in new.items() if old.get(column_id) != row]
        self._metadata.insert_many(
            t.column, [{"table_id": table_id, "begin_snapshot": self._metadata.snapshot_id, **row} for row in added]
        )
        reshaped = old.keys() != new.keys() or any(_shape(old[row["column_id"]]) != _shape(row) for row in added)
        return bool(ended or added), reshaped

    def _write_partition(self, table_id: int, table: Table) -> None:
        self._metadata.end(t.partition_info, t.partition_info.c.table_id == table_id)
        if table.partition is None:
            return
        partition_id = self._ids.catalog(table.partition.partition_id)
        self._metadata.insert(
            t.partition_info, partition_id=partition_id, table_id=table_id, begin_snapshot=self._metadata.snapshot_id
        )
        self._metadata.insert_many(
            t.partition_column,
            [
                {
                    "partition_id": partition_id,
                    "table_id": table_id,
                    "partition_key_index": index,
                    "column_id": key.column_id,
                    "transform": key.transform,
                }
                for index, key in enumerate(table.partition.fields)
            ],
        )

    def _write_sort(self, table_id: int, before: Table | None, table: Table) -> None:
        old = before.sort if before is not None else None
        if old == table.sort:
            return
        sort_id = self._ids.catalog(table.sort.sort_id) if table.sort is not None else None
        if old is not None and table.sort is not None and old.keys == table.sort.keys:
            return  # the reference takes an id for it, and writes nothing
        self._metadata.end(t.sort_info, t.sort_info.c.table_id == table_id)
        if table.sort is None:
            return
        self._metadata.insert(
            t.sort_info, sort_id=sort_id, table_id=table_id, begin_snapshot=self._metadata.snapshot_id
        )
        self._metadata.insert_many(
            t.sort_expression,
            [
                {
                    "sort_id": sort_id,
                    "table_id": table_id,
                    "sort_key_index": index,
                    "expression": key.expression,
                    "dialect": key.dialect,
                    "sort_direction": key.direction,
                    "null_order": _NULL_ORDERS.get(key.null_order, key.null_order),
                }
                for index, key in enumerate(table.sort.keys)
            ],
        )

    def _inlining_limit(self, table: Table) -> int:
        return self._tx.options.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id)

    # Comments

    def _write_comment(self, object_id: int, before: Table | View | None, after: Table | View) -> None:
        """Writes the comment of a table or view if it is another than before."""
        if after.comment == (before.comment if before is not None else None):
            return
        self._metadata.end(t.tag, sa.and_(t.tag.c.object_id == object_id, t.tag.c.key == "comment"))
        self._metadata.insert(
            t.tag,
            object_id=object_id,
            begin_snapshot=self._metadata.snapshot_id,
            key="comment",
            value=after.comment,
        )

    def _write_tags(self, table_id: int, before: Table | None, after: Table) -> None:
        """Writes the tags that hold the expectations of a table where they are others than before."""
        old, new = dict(before.tags if before is not None else ()), dict(after.tags)
        for key in sorted(key for key in {**old, **new} if old.get(key) != new.get(key)):
            if key in old:
                self._metadata.end(t.tag, sa.and_(t.tag.c.object_id == table_id, t.tag.c.key == key))
            if key in new:
                begin = self._metadata.snapshot_id
                self._metadata.insert(t.tag, object_id=table_id, begin_snapshot=begin, key=key, value=new[key])

    def _write_column_comments(self, table_id: int, before: Table | None, after: Table) -> None:
        old = {column.column_id: column.comment for column in before.all_columns()} if before is not None else {}
        c = t.column_tag
        changed = [column for column in after.all_columns() if column.comment != old.get(column.column_id)]
        for column in changed:
            of_column = sa.and_(c.c.table_id == table_id, c.c.column_id == column.column_id, c.c.key == "comment")
            self._metadata.end(c, of_column)
            self._metadata.insert(
                c,
                table_id=table_id,
                column_id=column.column_id,
                begin_snapshot=self._metadata.snapshot_id,
                key="comment",
                value=column.comment,
            )

    def _write_view_column_comments(self, view_id: int, before: View | None, after: View) -> None:
        old = before.column_comments if before is not None else {}
        new = after.column_comments
        changed = [name for name in {**old, **new} if name not in old or name not in new or old[name] != new[name]]
        c = t.view_column_tag
        for name in changed:
            self._metadata.end(c, sa.and_(c.c.view_id == view_id, c.c.column_name == name, c.c.key == "comment"))
            if name in new:
                self._metadata.insert(
                    c,
                    view_id=view_id,
                    column_name=name,
                    begin_snapshot=self._metadata.snapshot_id,
                    key="comment",
                    value=new[name],
                )

    # Views and macros

    def _write_view(self, view: View) -> None:
        before = self._tx.base.views.get(view.view_id)
        if before == view:
            return
        view_id = self._ids.catalog(view.view_id)
        if before is None or before.name != view.name:
            if before is not None:
                self._metadata.end(t.view, t.view.c.view_id == view_id)
            self._metadata.insert(
                t.view,
                view_id=view_id,
                view_uuid=view.uuid,
                begin_snapshot=self._metadata.snapshot_id,
                schema_id=self._ids.known(view.schema_id),
                view_name=view.name,
                dialect=view.dialect,
                sql=view.sql,
                column_aliases=view.column_aliases,
            )
        self._write_comment(view_id, before, view)
        self._write_view_column_comments(view_id, before, view)

    def _create_macro(self, macro: Macro) -> None:
        macro_id = self._ids.catalog(macro.macro_id)
        self._metadata.insert(
            t.macro,
            schema_id=self._ids.known(macro.schema_id),
            macro_id=macro_id,
            macro_name=macro.name,
            begin_snapshot=self._metadata.snapshot_id,
        )
        for impl_id, implementation in enumerate(macro.implementations):
            self._metadata.insert(
                t.macro_impl,
                macro_id=macro_id,
                impl_id=impl_id,
                dialect=implementation.dialect,
                sql=implementation.sql,
                type=macro.kind,
            )
            self._metadata.insert_many(
                t.macro_parameters,
                [
                    {
                        "macro_id": macro_id,
                        "impl_id": impl_id,
                        "column_id": index,
                        "parameter_name": parameter.name,
                        "parameter_type": parameter.type,
                        "default_value": "NULL" if parameter.default_value is None else parameter.default_value,
                        "default_value_type": parameter.default_value_type,
                    }
                    for index, parameter in enumerate(implementation.parameters)
                ],
            )


def _is_altered(before: Table, after: Table | None) -> bool:
    """Return whether the catalog notes a version of a table's schema, or perhaps does."""
    if before is after or after is None:
        return False
    return any(getattr(before, name) != getattr(after, name) for name in ("name", "schema_id", "columns", "partition"))


def _shape(row: dict[str, object]) -> tuple[object, ...]:
    """Return the properties of a column that decide how rows are stored: not its default, not NOT NULL."""
    return row["column_name"], row["column_type"], row["parent_column"]


def _rows_of(columns: Sequence[Column], parent: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(column id, row of ducklake_column without its snapshots), parents first."""
    for column in columns:
        yield (
            column.column_id,
            {
                "column_id": column.column_id,
                "column_order": column.order,
                "column_name": column.name,
                "column_type": column.type,
                "initial_default": column.initial_default,
                "default_value": column.default_value,
                "nulls_allowed": column.nulls_allowed,
                "parent_column": parent,
                "default_value_type": column.default_value_type,
                "default_value_dialect": column.default_value_dialect,
            },
        )
        yield from _rows_of(column.children, column.column_id)
