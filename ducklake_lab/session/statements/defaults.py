"""Checks and evaluates the defaults of columns."""

from __future__ import annotations

from dataclasses import replace

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.session.rows.resolver import NameResolver
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.spark.stability import differs_by_row


def check_defaults(database: SessionDatabase, operation: op.Operation) -> None:
    """Checks the expressions that an operation makes defaults of columns.

    Raises:
        BindError: DuckDB refuses one, as it names a column, a query, an aggregate or an unknown function.
    """
    match operation:
        case op.CreateTable(columns=columns):
            defaults = [(column.default, column.default_type) for column in columns]
        case op.AddColumn(column=column):
            defaults = [(column.default, column.default_type)]
        case op.SetDefault():
            defaults = [(operation.default, operation.default_type)]
        case _:
            return
    for text, kind in defaults:
        if text is not None and kind == "expression":
            database.check_default(text)


def with_defaults(names: NameResolver, table: Table) -> list[Column]:
    """Returns the columns of a table; a default that is constant within a statement is replaced by its value."""
    return [_with_default(names, column) for column in table.columns]


def _with_default(names: NameResolver, column: Column) -> Column:
    text = column.default_value
    if column.default_value_type != "expression" or text is None or differs_by_row(text):
        return column
    value = names.value(op.SqlConstant(f"CAST(CAST(({text}) AS {column.data_type.sql()}) AS VARCHAR)"))
    return replace(column, default_value=value, default_value_type="literal")
