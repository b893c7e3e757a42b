"""The table beside a table, with the rows that its expectations refused, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.staging import stage_written, target_of
from ducklake_lab.errors import EntryExistsError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import DataType
from ducklake_lab.transaction.transaction import Transaction

#: Columns of the table beside, after those of the rows.
ADDED = {"reason": DataType("varchar"), "quarantined_at": DataType("timestamptz")}


def set_aside(transaction: Transaction, table: Table, rows: Rows, count: int, reason: str) -> None:
    """Stages rows of a table for the table beside it, which is made or altered as needed.

    Raises:
        EntryExistsError: a view has the name, or a column of the table beside has another type.
    """
    beside = _beside(transaction, table)
    names = added_names([column.name for column in table.columns])
    given = {column.name.casefold(): f"c{i}" for i, column in enumerate(table.columns)}
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    values = dict(zip(map(str.casefold, names), (quote_text(reason), f"CAST('{now}' AS TIMESTAMPTZ)"), strict=True))
    values |= given
    listed = ", ".join(
        f"{values.get(column.name.casefold(), f'CAST(NULL AS {column.data_type.sql()})')} AS d{i}"
        for i, column in enumerate(beside.columns)
    )
    numbered = rows.first(len(table.columns), [f"c{i}" for i in range(len(table.columns))])
    own = [column.name for column in beside.columns]
    set_aside_rows = numbered.query(f"SELECT {listed} FROM rows").first(len(own), own)
    stage_written(transaction, beside, set_aside_rows.write(target_of(transaction, beside), count=count))


def added_names(taken: Sequence[str]) -> list[str]:
    """Returns the names of the columns that the table beside has on its own."""
    folded = {name.casefold() for name in taken}
    names = []
    for name in ADDED:
        while name in folded:
            name = f"_{name}"
        names.append(name)
    return names


def _beside(transaction: Transaction, table: Table) -> Table:
    state, name = transaction.state, f"{table.name}_quarantine"
    schema = state.schema_of(table)
    wanted = [(column.name, column.data_type) for column in table.columns]
    wanted += zip(added_names([name for name, _ in wanted]), ADDED.values(), strict=True)
    beside = state.find_table(schema.name, name)
    if beside is None:
        columns: list[Column] = []
        next_id = 1
        for column, kind in wanted:
            columns.append(Column.build(column, kind, next_id))
            next_id += sum(1 for _ in columns[-1].walk())
        return transaction.create_table(schema, name, columns)
    if all(beside.column(column) is None for column, _ in wanted[-len(ADDED) :]):
        raise EntryExistsError(f"{name} is another table than the one beside {table.name}; rename it.")
    changed = beside
    for column, kind in wanted:
        present = changed.column(column)
        if present is None:
            new = Column.build(column, kind, transaction.next_column_id(changed))
            transaction.replace_table(changed := replace(changed, columns=(*changed.columns, new)))
        elif present.data_type != kind:
            raise EntryExistsError(
                f"{name} has a column {quote_identifier(column)} of type {present.data_type.sql()}, and the rows of {table.name} "
                f"have {kind.sql()} there; rename {name}."
            )
    return changed
