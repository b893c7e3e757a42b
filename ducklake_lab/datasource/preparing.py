"""The table of a write: made or altered as the options say, in the transaction that adds the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import StructType

from ducklake_lab.datasource.options import Target
from ducklake_lab.duckdb.casting import constant_column
from ducklake_lab.errors import BindError, EntryExistsError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.files.partitions import partition_fields
from ducklake_lab.model.altering import rewritten
from ducklake_lab.model.entries import Column, PartitionField, Table
from ducklake_lab.model.live import check_not_live
from ducklake_lab.model.promotion import is_wider
from ducklake_lab.model.types import DataType
from ducklake_lab.spark.types import from_spark
from ducklake_lab.transaction.transaction import Transaction


def prepare(
    transaction: Transaction, target: Target, schema: StructType, *, overwrite: bool, uuid: str | None = None
) -> Table:
    """Makes or alters the table of a write in a transaction, where that is asked for; returns the table.

    A table that is not there is made of the rows' columns.

    Args:
        schema: of the rows.
        uuid: of a new table.

    Raises:
        EntryNotFoundError: there is no such schema.
        EntryExistsError: a view has the name.
        UnsupportedFeatureError: a column or partition key cannot be made.
        UsageError: it is a live table, or has other partition keys than the options name.
    """
    writing = target.writing
    owner = transaction.state.schema(target.schema)
    table = transaction.state.find_table(target.schema, target.table)
    if table is not None:
        check_not_live(table, f"{target.schema}.{table.name}")
    if table is None or (overwrite and writing.overwrite_schema):
        columns = _columns(schema)
        keys: Sequence[tuple[str, str]] | None = writing.partition_by
        if keys is None:
            keys = _former_keys(table, columns) if table is not None else ()
        if table is not None:
            transaction.drop_table(table)
        return _partitioned(transaction, transaction.create_table(owner, target.table, columns, uuid), keys)
    if writing.partition_by is not None:
        fields = table.partition.fields if table.partition is not None else ()
        if partition_fields(table, writing.partition_by, transaction.lake.version) != fields:
            raise UsageError(
                f"{target.schema}.{table.name} has other partition keys than partitionBy names; "
                "leave the option out, or use ALTER TABLE."
            )
    return _merged(transaction, table, schema) if writing.merge_schema else table


def _columns(schema: StructType) -> list[Column]:
    """The columns of a new table; ids count from 1, parents before children."""
    columns: list[Column] = []
    seen: set[str] = set()
    for field in schema.fields:
        if field.name.casefold() in seen:
            raise EntryExistsError(f'There are two columns named "{field.name}"; rename one.')
        seen.add(field.name.casefold())
        used = sum(1 for column in columns for _ in column.walk())
        columns.append(Column.build(field.name, from_spark(field.dataType), used + 1))
    return columns


def _former_keys(table: Table, columns: Sequence[Column]) -> Sequence[tuple[str, str]]:
    """The partition keys of a table whose columns are replaced: all of them, or an error."""
    named = {column.name.casefold() for column in columns}
    keys = []
    for field in table.partition.fields if table.partition is not None else ():
        column = table.column_by_id(field.column_id)
        if column is None or column.name.casefold() not in named:
            name = column.name if column is not None else "a dropped column"
            raise UsageError(
                f"{table.name} is partitioned by {name}, which the rows lack; name the new keys by partitionBy."
            )
        keys.append((column.name, field.transform))
    return keys


def _partitioned(transaction: Transaction, table: Table, keys: Sequence[tuple[str, str]]) -> Table:
    fields = partition_fields(table, keys, transaction.lake.version)
    if not fields:
        return table
    changed = replace(table, partition=transaction.new_partition(fields))
    transaction.replace_table(changed)
    return changed


def _merged(transaction: Transaction, table: Table, schema: StructType) -> Table:
    """The table with the columns that only the rows have, and with wider types where the rows' are."""
    columns = list(table.columns)
    next_id = transaction.next_column_id(table)
    places = {column.name.casefold(): place for place, column in enumerate(columns)}
    for field in schema.fields:
        kind = from_spark(field.dataType)
        place = places.get(field.name.casefold())
        if place is None:
            columns.append(Column.build(field.name, kind, next_id))
            next_id += sum(1 for _ in columns[-1].walk())
        else:
            columns[place] = _widened(table, columns[place], kind)
    changed = replace(table, columns=tuple(columns))
    if changed != table:
        transaction.replace_table(changed)
    return changed


def _widened(table: Table, column: Column, given: DataType) -> Column:
    if is_wider(column.data_type, given) and not _is_key(table, column):
        return replace(rewritten(column), type=given.name)
    if given.is_nested and _has_more_fields(column.data_type, given):
        raise UnsupportedFeatureError(
            f"mergeSchema of {column.name} is not supported: its rows have fields that the table lacks; "
            "add them by ALTER TABLE."
        )
    return column


def _is_key(table: Table, column: Column) -> bool:
    fields: Sequence[PartitionField] = table.partition.fields if table.partition is not None else ()
    return any(field.column_id == column.column_id for field in fields)


def _has_more_fields(known: DataType, given: DataType) -> bool:
    if known.name != given.name:
        return False  # the rows are cast, or refused
    fields = {name.casefold(): kind for name, kind in known.children}
    return any(
        name.casefold() not in fields or _has_more_fields(fields[name.casefold()], kind)
        for name, kind in given.children
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A column of written rows: one of those that are given, or a constant.

    Attributes:
        place: of the column among those given; None for a constant.
        text: of the constant; None for NULL.
    """

    place: int | None
    text: str | None = None

    def values(self, rows: pa.Table, kind: DataType) -> pa.Array | pa.ChunkedArray:
        if self.place is not None:
            return rows.column(self.place)
        return constant_column(self.text, kind, rows.num_rows)


def sources(table: Table, names: Sequence[str], *, fill: bool) -> list[Source]:
    """The values of each of the table's columns, found by name among the rows' columns.

    Args:
        fill: a column that the rows lack gets its default.

    Raises:
        BindError: the rows have a column that the table lacks, or lack one.
        UnsupportedFeatureError: a default is an expression.
    """
    given = {name.casefold(): index for index, name in enumerate(names)}
    column_names = [column.name for column in table.columns]
    for name in names:
        if table.column(name) is None:
            hint = did_you_mean(name, column_names) or " The option mergeSchema adds it."
            raise BindError(f'{table.name} has no column "{name}".{hint}')
    values = []
    for column in table.columns:
        place = given.get(column.name.casefold())
        if place is None and not fill:
            raise BindError(
                f'The rows have no column "{column.name}" of {table.name}; add it, NULL where there is no value, '
                "or set the option mergeSchema."
            )
        values.append(Source(place) if place is not None else _default(column))
    return values


def _default(column: Column) -> Source:
    value, kind = column.default_value, column.default_value_type
    if value is None or (value == "NULL" and kind != "expression"):
        return Source(None)
    if kind == "expression":
        raise UnsupportedFeatureError(
            f"The default of {column.name} is an expression, which this write does not compute; give the column a value."
        )
    return Source(None, value)
