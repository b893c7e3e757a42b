"""Statements that change schemas, tables, columns and partition keys. They never start Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from ducklake_lab.catalog import versions
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb import canonical
from ducklake_lab.duckdb.casting import cast_columns, texts
from ducklake_lab.errors import BindError, ConstraintError, EntryExistsError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.expectations import defining
from ducklake_lab.files.partitions import partition_fields
from ducklake_lab.model import altering
from ducklake_lab.model.entries import Column, SortKey, Table
from ducklake_lab.model.live import check_not_live
from ducklake_lab.model.quoting import path_parts, schema_path
from ducklake_lab.model.types import NESTED
from ducklake_lab.session.functions import options
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.bind import following
from ducklake_lab.sql.bind.expansion import columns_of
from ducklake_lab.transaction.transaction import Transaction

HasNulls = Callable[[str], bool]


def build_columns(definitions: Sequence[op.ColumnDef]) -> tuple[Column, ...]:
    """Returns the columns of a new table; ids count from 1, parents before children."""
    columns: list[Column] = []
    seen: set[str] = set()
    next_id = 1
    for definition in definitions:
        if definition.name.casefold() in seen:
            raise EntryExistsError(f'There are two columns named "{definition.name}"; rename one.')
        seen.add(definition.name.casefold())
        columns.append(build_column(definition, next_id))
        next_id += sum(1 for _ in columns[-1].walk())
    return tuple(columns)


def build_column(definition: op.ColumnDef, column_id: int) -> Column:
    """Returns a new column; checks its default against its type."""
    column = Column.build(definition.name, definition.type, column_id, nulls_allowed=definition.nulls_allowed)
    if definition.default is None:
        return column
    with_default = _with_default(column, definition.default, definition.default_type)
    if definition.default_type == "expression":
        return with_default
    return replace(with_default, initial_default=_literal_text(definition.default, column))


def _with_default(column: Column, default: str | None, default_type: str) -> Column:
    """Returns a column with another default for new rows; existing rows keep theirs."""
    if default is not None and column.type in NESTED:
        raise UnsupportedFeatureError(
            f"A default value for a column of type {column.data_type.sql()} is not supported."
        )
    if default is None:
        return replace(column, default_value="NULL", default_value_type="literal")
    if default_type == "expression":
        return replace(column, default_value=canonical.expression_text(default), default_value_type="expression")
    _literal_text(default, column)
    return replace(column, default_value=default, default_value_type="literal")


def _literal_text(default: str, column: Column) -> str:
    """Returns a default as the text of a value of the column's type, e.g. `7.0` for 7 in a DOUBLE column."""
    types = {"v": column.data_type}
    text = texts(cast_columns(pa.table({"v": [default]}), types), types)[0][0]
    return default if text is None else text


#: Alterations of columns.
_OF_COLUMNS = (op.AddColumn, op.DropColumn, op.RenameColumn, op.SetColumnType, op.SetDefault, op.SetNotNull)


class Ddl:
    """Runs each statement in the open transaction, or in one of its own."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes

    def create_schema(self, statement: op.CreateSchema) -> None:
        lake, name = self._schema(statement.name)
        if statement.if_not_exists and self._lakes.state(lake).find_schema(name) is not None:
            return
        with self._transactions.writing(lake) as transaction:
            transaction.create_schema(name)

    def drop_schema(self, statement: op.DropSchema) -> None:
        lake, name = self._schema(statement.name)
        if statement.if_exists and self._lakes.state(lake).find_schema(name) is None:
            return
        with self._transactions.writing(lake) as transaction:
            transaction.drop_schema(transaction.state.schema(name), cascade=statement.cascade)

    def _schema(self, written: op.TableName) -> tuple[Lake, str]:
        """Returns the lake and the name of a schema; its first part may be a lake or a schema."""
        first, current = written.schema, self._lakes.current
        if first is not None and self._lakes.find(first) is None and current is not None:
            if self._lakes.state(current).find_schema(schema_path((first,))) is not None:
                return current, schema_path((first, *path_parts(written.name)))
        return self._lakes.get(first), written.name

    def create_table(
        self,
        entry: NamedEntry,
        columns: Sequence[Column],
        *,
        replace_existing: bool = False,
        partitioned_by: Sequence[op.PartitionKey] = (),
        is_live: bool = False,
    ) -> Table:
        """Creates a table in the transaction that is open for writing; returns the table."""
        transaction = self._lakes.transaction
        assert transaction is not None  # every caller is inside writing()
        schema = transaction.state.schema(entry.schema)
        existing = transaction.state.find_table(schema.name, entry.name)
        if existing is not None and replace_existing:
            if not is_live:
                title = transaction.state.qualified_name(existing)
                check_not_live(existing, title, "is not replaced by another one; DROP LIVE TABLE it first")
            transaction.drop_table(existing)
        table = transaction.create_table(schema, entry.name, columns)
        if is_live:
            table = replace(table, is_live=True)
            transaction.replace_table(table)
        if partitioned_by:
            keys = [(key.column, key.transform) for key in partitioned_by]
            fields = partition_fields(table, keys, entry.lake.version)
            table = replace(table, partition=transaction.new_partition(fields))
            transaction.replace_table(table)
        return table

    def drop_table(self, entry: NamedEntry, *, if_exists: bool) -> None:
        if if_exists and entry.find() is None and entry.state.find_view(entry.schema, entry.name) is None:
            return
        with self._transactions.writing(entry.lake) as transaction:
            table = transaction.state.table(entry.schema, entry.name)
            check_not_live(table, transaction.state.qualified_name(table), "takes DROP LIVE TABLE")
            transaction.drop_table(table)

    def alter(self, entry: NamedEntry, statement: op.Operation, has_nulls: HasNulls) -> None:
        """Runs an ALTER TABLE.

        Args:
            has_nulls: whether a column of the table is NULL in some row.
        """
        if getattr(statement, "if_exists", False) and entry.find() is None:
            return
        with self._transactions.writing(entry.lake) as transaction:
            table = transaction.state.table(entry.schema, entry.name)
            if isinstance(statement, _OF_COLUMNS):
                title = transaction.state.qualified_name(table)
                check_not_live(table, title, "has the columns of its query; use CREATE OR REPLACE LIVE TABLE")
            changed = self._altered(transaction, table, statement, has_nulls)
            if changed != table:
                defining.check_conditions(table, changed)
                _check_encrypted(transaction, table, changed)
                transaction.replace_table(changed)

    def set_options(self, entry: NamedEntry, statement: op.SetOptions, values: Mapping[str, object]) -> None:
        """Sets options of a table, like `set_option`; makes no snapshot."""
        if not (statement.if_exists and entry.find() is None):
            options.store(self._transactions, entry.lake, options.scope_of_table(entry.table()), values)

    def reset_options(self, entry: NamedEntry, statement: op.ResetOptions) -> None:
        """Removes options of a table, so that those of its schema or lake apply; makes no snapshot."""
        if not (statement.if_exists and entry.find() is None):
            options.reset(self._transactions, entry.lake, options.scope_of_table(entry.table()), statement.names)

    def _altered(self, transaction: Transaction, table: Table, statement: op.Operation, has_nulls: HasNulls) -> Table:
        match statement:
            case op.AddColumn():
                return _add_column(transaction, table, statement)
            case op.DropColumn():
                names = (*statement.parents, statement.column)
                dropped = table.column(statement.column) if len(names) == 1 else None
                if dropped is not None:
                    table = defining.without_column(table, dropped, cascade=statement.cascade)
                changed = altering.drop_column(table, names, if_exists=statement.if_column_exists)
                if changed is not table and len(names) == 1:
                    _check_not_sorted_by(table, statement.column)
                return changed
            case op.RenameColumn():
                return _rename_column(transaction, table, statement)
            case op.RenameTable():
                if statement.new_name.casefold() != table.name.casefold():
                    transaction.check_name_is_free(transaction.state.schema_of(table), statement.new_name)
                return replace(table, name=statement.new_name)
            case op.SetColumnType():
                next_id = transaction.next_column_id(table)
                keeps = _keeps_defaults(transaction)
                return altering.set_type(table, statement.column, statement.type, next_id, keeps_defaults=keeps)
            case op.SetDefault():
                column = altering.existing(table, statement.column)
                return altering.with_change(
                    table, [column], lambda old: _with_default(old, statement.default, statement.default_type)
                )
            case op.SetNotNull():
                changed = altering.set_not_null(table, statement.column, required=statement.required)
                if statement.required and has_nulls(altering.existing(table, statement.column).name):
                    raise ConstraintError(
                        f"Cannot SET NOT NULL on column {statement.column} of {table.name}: the column has NULL values."
                    )
                return changed
            case op.SetPartitionedBy():
                named = [(key.column, key.transform) for key in statement.keys]
                fields = partition_fields(table, named, transaction.lake.version)
                same = table.partition is not None and table.partition.fields == fields
                return table if same else replace(table, partition=transaction.new_partition(fields))
            case op.ResetPartitionedBy():
                return replace(table, partition=transaction.new_partition(())) if table.partition else table
            case op.SetSortedBy():
                keys = _sort_keys(table, statement.keys)
                return replace(table, sort=transaction.new_sort(keys) if keys else None)
            case op.Expect():
                target = statement.target
                return defining.with_expectation(
                    table, statement, _referenced(transaction, table, target) if target is not None else None
                )
            case op.DropExpectation():
                return defining.without_expectation(table, statement)
            case _:
                raise UnsupportedFeatureError(f"{type(statement).__name__} is not supported yet.")


def _check_encrypted(transaction: Transaction, table: Table, changed: Table) -> None:
    """Refuses to rename or drop struct fields in encrypted files of the transaction, where fields are found by name."""
    staged = transaction.peek(table)
    if staged is None or all(file.file.encryption_key is None for file in staged.files.values()):
        return
    names = {part.column_id: part.name for column in changed.columns for part in column.walk()}
    for column in table.columns:
        if changed.column_by_id(column.column_id) is None:
            continue
        if any(names.get(part.column_id) != part.name for part in column.walk() if part is not column):
            raise UnsupportedFeatureError(
                f"Renaming or dropping fields of {column.name} is not supported in a transaction that wrote encrypted files "
                f"of {table.name}; commit first."
            )


def _referenced(transaction: Transaction, table: Table, name: op.TableName) -> Table:
    """Returns the table that an expectation references; it is in the same lake."""
    lake, state = transaction.lake, transaction.state
    if name.catalog not in (None, lake.alias):
        raise UnsupportedFeatureError(f"An expectation of {table.name} cannot reference {name.catalog}, another lake.")
    schema = name.schema if name.schema is not None else state.schema_of(table).name
    return state.table(schema, name.name)


def _add_column(transaction: Transaction, table: Table, statement: op.AddColumn) -> Table:
    definition = statement.column
    if not statement.parents and table.column(definition.name) is not None:
        if statement.if_not_exists:
            return table
        raise EntryExistsError(f'{table.name} has a column "{definition.name}" already.')
    if definition.default_type == "expression" and definition.default is not None and not statement.parents:
        raise UnsupportedFeatureError(
            f"A new column's default must be a literal; {definition.default} is an expression. "
            "Add the column without it, then use ALTER TABLE … ALTER … SET DEFAULT, and UPDATE the rows there are."
        )
    if not definition.nulls_allowed:
        raise UnsupportedFeatureError("ADD COLUMN … NOT NULL is not supported; add the column without it.")
    column = build_column(definition, transaction.next_column_id(table))
    if statement.parents:
        return altering.add_field(table, statement.parents, column, if_not_exists=statement.if_not_exists)
    return replace(table, columns=(*table.columns, column))


def _rename_column(transaction: Transaction, table: Table, statement: op.RenameColumn) -> Table:
    names, keeps = (*statement.parents, statement.column), _keeps_defaults(transaction)
    changed = altering.rename_column(table, names, statement.new_name, keeps_defaults=keeps)
    if statement.parents:
        return changed
    keys = following.sort_keys(table, changed.columns)
    sort = transaction.new_sort(keys) if table.sort is not None else None
    return replace(changed, sort=sort, tags=following.expectation_tags(table, changed.columns))


def _keeps_defaults(transaction: Transaction) -> bool:
    """Returns whether a struct field keeps its defaults when its name or type changes."""
    return versions.is_since(transaction.lake.version, "1.1")


def _check_not_sorted_by(table: Table, name: str) -> None:
    for key in table.sort.keys if table.sort is not None else ():
        if name.casefold() in (column.casefold() for column in columns_of(key.expression)):
            raise BindError(f"{table.name} is sorted by {name}; use ALTER TABLE {table.name} RESET SORTED BY first.")


def _sort_keys(table: Table, keys: Sequence[op.SortKey]) -> tuple[SortKey, ...]:
    unknown = [name for key in keys for name in key.columns if table.column(name) is None]
    if unknown:
        hint = did_you_mean(unknown[0], (column.name for column in table.columns))
        raise BindError(f"{table.name} has no column {', '.join(dict.fromkeys(unknown))} to be sorted by.{hint}")
    return tuple(SortKey(canonical.expression_text(key.sql), key.direction, key.null_order) for key in keys)
