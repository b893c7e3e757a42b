"""Statements that change entries: schemas, tables, columns, partition keys. None of them starts Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ducklake_lab.catalog.casting import cast_columns, texts
from ducklake_lab.errors import BindError, EntryExistsError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.entries import Column, PartitionField, Table
from ducklake_lab.model.types import DataType
from ducklake_lab.session.lakes import Lakes, Place
from ducklake_lab.sql import operations as op

_TRANSFORMS = ("identity", "year", "month", "day", "hour")
_OF_DATES = ("year", "month", "day")


def build_columns(definitions: Sequence[op.ColumnDef]) -> tuple[Column, ...]:
    """Columns of a new table, ids counting from 1, parents before children."""
    columns: list[Column] = []
    seen: set[str] = set()
    for definition in definitions:
        if definition.name.casefold() in seen:
            raise EntryExistsError(f'There are two columns named "{definition.name}"; rename one.')
        seen.add(definition.name.casefold())
        next_id = 1 + sum(1 for column in columns for _ in column.walk())
        columns.append(build_column(definition, next_id))
    return tuple(columns)


def build_column(definition: op.ColumnDef, column_id: int) -> Column:
    """A column with its default, checked to fit the type."""
    default = definition.default
    expression = definition.default_type == "expression"
    if default is not None and not expression:
        default = _literal_text(default, definition)
    return Column.build(
        definition.name,
        definition.type,
        column_id,
        nulls_allowed=definition.nulls_allowed,
        initial_default=None if expression else default,
        default_value="NULL" if default is None else default,
        default_value_type="expression" if expression else "" if definition.type.is_nested else "literal",
    )


def _literal_text(default: str, definition: op.ColumnDef) -> str:
    """The default as the text of a value of the column's type, e.g. `7.0` for 7 in a DOUBLE column."""
    import pyarrow as pa

    cast = cast_columns(pa.table({"v": [default]}), {"v": definition.type})
    text = texts(cast, {"v": definition.type})[0][0]
    return default if text is None else text


class Ddl:
    """Runs the statements in the open transaction, or each in its own."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes

    def create_schema(self, statement: op.CreateSchema) -> None:
        lake = self._lakes.get(statement.name.schema)
        if statement.if_not_exists and self._lakes.state(lake).find_schema(statement.name.name) is not None:
            return
        with self._lakes.writing(lake) as transaction:
            transaction.create_schema(statement.name.name)

    def drop_schema(self, statement: op.DropSchema) -> None:
        lake = self._lakes.get(statement.name.schema)
        if statement.if_exists and self._lakes.state(lake).find_schema(statement.name.name) is None:
            return
        with self._lakes.writing(lake) as transaction:
            transaction.drop_schema(transaction.state.schema(statement.name.name), cascade=statement.cascade)

    def create_table(
        self,
        place: Place,
        columns: Sequence[Column],
        *,
        replace_existing: bool = False,
        partitioned_by: Sequence[op.PartitionKey] = (),
    ) -> Table:
        """Creates a table in the transaction that is open for writing; gives it."""
        transaction = self._lakes.transaction
        assert transaction is not None  # every caller is inside writing()
        schema = transaction.state.schema(place.schema)
        existing = transaction.state.find_table(schema.name, place.name)
        if existing is not None and replace_existing:
            transaction.drop_table(existing)
        table = transaction.create_table(schema, place.name, columns)
        if partitioned_by:
            fields = _partition_fields(table, partitioned_by)
            table = replace(table, partition=transaction.new_partition(fields))
            transaction.replace_table(table)
        return table

    def drop_table(self, place: Place, *, if_exists: bool) -> None:
        if if_exists and place.find() is None:
            return
        with self._lakes.writing(place.lake) as transaction:
            transaction.drop_table(transaction.state.table(place.schema, place.name))

    def alter(self, place: Place, statement: op.Operation) -> None:
        """Runs an ALTER TABLE."""
        if getattr(statement, "if_exists", False) and place.find() is None:
            return
        with self._lakes.writing(place.lake) as transaction:
            table = transaction.state.table(place.schema, place.name)
            match statement:
                case op.AddColumn():
                    changed = self._add_column(table, statement)
                case op.DropColumn():
                    changed = _drop_column(table, statement)
                case op.RenameColumn():
                    changed = _rename_column(table, statement)
                case op.RenameTable():
                    if statement.new_name.casefold() != table.name.casefold():
                        transaction.check_name_is_free(transaction.state.schema_of(table), statement.new_name)
                    changed = replace(table, name=statement.new_name)
                case op.SetPartitionedBy():
                    fields = _partition_fields(table, statement.keys)
                    same = table.partition is not None and table.partition.fields == fields
                    changed = table if same else replace(table, partition=transaction.new_partition(fields))
                case op.ResetPartitionedBy():
                    changed = replace(table, partition=transaction.new_partition(())) if table.partition else table
                case _:
                    raise UnsupportedFeatureError(f"{type(statement).__name__} is not supported yet.")
            if changed != table:
                transaction.replace_table(changed)

    def _add_column(self, table: Table, statement: op.AddColumn) -> Table:
        definition = statement.column
        if table.column(definition.name) is not None:
            if statement.if_not_exists:
                return table
            raise EntryExistsError(f'{table.name} has a column "{definition.name}" already.')
        if definition.default_type == "expression" and definition.default is not None:
            raise UnsupportedFeatureError(
                f"A new column's default must be a literal; {definition.default} is an expression. "
                "Add the column without it, then UPDATE."
            )
        if not definition.nulls_allowed:
            raise UnsupportedFeatureError("ADD COLUMN … NOT NULL is not supported; add the column without it.")
        transaction = self._lakes.transaction
        assert transaction is not None  # inside writing()
        column = build_column(definition, transaction.next_column_id(table))
        return replace(table, columns=(*table.columns, column))


def _existing(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        hint = did_you_mean(name, (column.name for column in table.columns))
        raise BindError(f'{table.name} has no column "{name}".{hint}')
    return column


def _drop_column(table: Table, statement: op.DropColumn) -> Table:
    if statement.if_column_exists and table.column(statement.column) is None:
        return table
    column = _existing(table, statement.column)
    if len(table.columns) == 1:
        raise UnsupportedFeatureError(f"{column.name} is the only column of {table.name}; a table needs one.")
    if table.partition is not None and any(field.column_id == column.column_id for field in table.partition.fields):
        raise UnsupportedFeatureError(
            f"{column.name} is a partition key of {table.name}; use ALTER TABLE {table.name} RESET PARTITIONED BY first."
        )
    return replace(table, columns=tuple(c for c in table.columns if c.column_id != column.column_id))


def _rename_column(table: Table, statement: op.RenameColumn) -> Table:
    column = _existing(table, statement.column)
    taken = table.column(statement.new_name)
    if taken is not None and taken.column_id != column.column_id:
        raise EntryExistsError(f'{table.name} has a column "{statement.new_name}" already.')
    renamed = replace(column, name=statement.new_name)
    return replace(table, columns=tuple(renamed if c.column_id == column.column_id else c for c in table.columns))


def _partition_fields(table: Table, keys: Sequence[op.PartitionKey]) -> tuple[PartitionField, ...]:
    fields = []
    for key in keys:
        column = _existing(table, key.column)
        if key.transform not in _TRANSFORMS:
            raise UnsupportedFeatureError(f"The partition transform {key.transform} is not supported yet.")
        _check_transform(column, key.transform)
        fields.append(PartitionField(column.column_id, key.transform))
    return tuple(fields)


def _check_transform(column: Column, transform: str) -> None:
    kind: DataType = column.data_type
    timestamp = kind.name.startswith("timestamp")
    fits = transform == "identity" or timestamp or (transform in _OF_DATES and kind.name == "date")
    if kind.is_nested or not fits:
        raise BindError(f"{transform}({column.name}) is not possible for a column of type {kind.sql()}.")
