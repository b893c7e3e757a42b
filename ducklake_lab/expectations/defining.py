"""Defines and drops expectations of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import BindError, DuckLakeError, EntryExistsError, EntryNotFoundError, did_you_mean
from ducklake_lab.model.entries import LOCAL_ID_START, Column, Table
from ducklake_lab.model.expectations import PREFIX, Expectation, Named, columns_by_id, expectations_of, with_tag
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import NUMBERS, DataType
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.expectations import stored_condition

#: The catalog keeps names of tags in short texts.
_LONGEST_NAME = 200


def with_expectation(table: Table, statement: op.Expect, target: Table | None) -> Table:
    """Returns a table with a new expectation; the rows that it has are not checked.

    Args:
        target: the referenced table.

    Raises:
        EntryExistsError: it has one of that name.
        BindError: a column does not exist, or the condition is none.
    """
    name = statement.name
    if not name or len(name) > _LONGEST_NAME:
        raise BindError(f"The name of an expectation has 1 to {_LONGEST_NAME} characters.")
    for other in expectations_of(table):
        if other.name.casefold() == name.casefold():
            raise EntryExistsError(
                f"{table.name} has an expectation {other.name} already; use ALTER TABLE {quote_identifier(table.name)} "
                f"DROP EXPECTATION {quote_identifier(other.name)} first, or choose another name."
            )
    columns = _named(table, statement.columns)
    sql = statement.sql
    if statement.kind == "check":
        _check_condition(sql, _kinds(table, columns))
    elif statement.kind == "fresh":
        sql = _interval(sql)
    expectation = Expectation(name, statement.kind, statement.on, sql, columns)
    if target is not None:
        target_columns = _named(target, statement.target_columns)
        _check_comparable(table, columns, target, target_columns)
        target_id = target.table_id if target.table_id < LOCAL_ID_START else 0
        expectation = replace(expectation, target=target.uuid, target_columns=target_columns, target_id=target_id)
    return replace(table, tags=with_tag(table, expectation.key, expectation.text()))


def without_expectation(table: Table, statement: op.DropExpectation) -> Table:
    """Returns a table without an expectation, whose tag need not be readable.

    Raises:
        EntryNotFoundError: there is none of that name.
    """
    names = [key.removeprefix(PREFIX) for key, _ in table.tags]
    for name in names:
        if name.casefold() == statement.name.casefold():
            return replace(table, tags=with_tag(table, PREFIX + name, None))
    if statement.if_expectation_exists:
        return table
    raise EntryNotFoundError(
        f'{table.name} has no expectation "{statement.name}".{did_you_mean(statement.name, names)}'
    )


def without_column(table: Table, column: Column, *, cascade: bool) -> Table:
    """Returns a table without the expectations that name a column, which is to be dropped.

    Raises:
        EntryExistsError: there is one, and it does not go with the column.
    """
    for expectation in expectations_of(table):
        if not any(column_id == column.column_id for _, column_id in expectation.columns):
            continue
        if not cascade:
            raise EntryExistsError(
                f"The expectation {expectation.name} of {table.name} names {column.name}; use ALTER TABLE "
                f"{quote_identifier(table.name)} DROP EXPECTATION {quote_identifier(expectation.name)} first, or DROP COLUMN … CASCADE."
            )
        table = replace(table, tags=with_tag(table, expectation.key, None))
    return table


def _named(table: Table, names: Iterable[str]) -> Named:
    ids: dict[str, int] = {}
    for name in names:
        column = table.column(name)
        if column is None:
            hint = did_you_mean(name, [each.name for each in table.columns])
            raise BindError(f'{table.name} has no column "{name}".{hint}')
        ids[column.name] = column.column_id
    return tuple(ids.items())


def check_conditions(before: Table, after: Table) -> None:
    """Checks that the conditions of a table are conditions of its altered columns.

    Raises:
        BindError: one is none any more, as it names a field that was renamed.
    """
    if all(column in after.columns for column in before.columns):
        return
    for expectation in expectations_of(after):
        kinds = _kinds(after, expectation.columns)
        if expectation.kind != "check" or kinds == _kinds(before, expectation.columns):
            continue
        try:
            _check_condition(expectation.sql, kinds)
        except DuckLakeError as error:
            raise BindError(
                f"The expectation {expectation.name} of {before.name}, CHECK ({expectation.sql}), does not take its columns so; "
                f"use ALTER TABLE {quote_identifier(before.name)} DROP EXPECTATION {quote_identifier(expectation.name)} first. {error}"
            ) from error


def _kinds(table: Table, columns: Named) -> list[tuple[str, DataType]]:
    """Returns the columns that an expectation names, with their types."""
    return [(name, column.data_type) for name, column in columns_by_id(table, columns)]


def _check_condition(sql: str, columns: Sequence[tuple[str, DataType]]) -> None:
    """Raises BindError where DuckDB does not take a condition over the columns as one."""
    empty = pa.schema([kind.field(name) for name, kind in columns] or [pa.field("_", pa.int8())]).empty_table()
    answer = engine.evaluate(f"SELECT ({stored_condition(sql)}) AS holds FROM given", {"given": empty})
    if not pa.types.is_boolean(answer.schema.field("holds").type) and not pa.types.is_null(
        answer.schema.field("holds").type
    ):
        raise BindError(f"CHECK ({sql}) is no condition: its type is not BOOLEAN; compare it, e.g. CHECK (… > 0).")


def _check_comparable(table: Table, columns: Named, target: Table, others: Named) -> None:
    for (name, number), (other_name, other_number) in zip(columns, others, strict=True):
        column, other = table.column_by_id(number), target.column_by_id(other_number)
        assert column is not None and other is not None  # both were found by name
        if not _is_comparable(column.data_type, other.data_type):
            raise BindError(
                f"{table.name}.{name} is {column.data_type.sql()} and cannot reference {target.name}.{other_name}, which is "
                f"{other.data_type.sql()}; change the type of one."
            )


def _is_comparable(one: DataType, other: DataType) -> bool:
    def is_number(kind: DataType) -> bool:
        return kind.name in NUMBERS or kind.decimal is not None

    return one == other or (is_number(one) and is_number(other))


def _interval(text: str) -> str:
    """Returns the text of a positive length of time.

    Raises:
        BindError: it is none.
    """
    try:
        length = engine.evaluate(
            f"SELECT CAST(i AS VARCHAR) AS t, i > INTERVAL 0 SECOND AS p FROM (SELECT CAST({quote_text(text)} AS INTERVAL) AS i)",
            {},
        ).to_pylist()[0]
    except DuckLakeError as error:
        raise BindError(f"INTERVAL '{text}' is no length of time; write e.g. INTERVAL '1 day'.") from error
    if not length["p"]:
        raise BindError(f"INTERVAL '{text}' is not longer than nothing; write e.g. INTERVAL '1 day'.")
    return text
