"""Statements on views, macros and comments. They never start Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ducklake_lab.duckdb import canonical
from ducklake_lab.errors import BindError, EntryExistsError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.model.entries import MacroImplementation, MacroParameter, View
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.session.names.stored_definitions import portable
from ducklake_lab.session.names.system_tables import ViewColumn
from ducklake_lab.session.statements.macro_checks import check_parameters
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.types import type_or_none


class Definitions:
    """Runs each statement in the open transaction, or in one of its own."""

    def __init__(
        self,
        transactions: Transactions,
        entry: Callable[..., NamedEntry],
        view_columns: Callable[..., list[ViewColumn]],
    ) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._entry = entry
        self._view_columns = partial(view_columns, stored=True)

    def create_view(self, statement: op.CreateView, check: Callable[[], None]) -> None:
        """Creates a view.

        Args:
            check: raises if the query cannot be bound.
        """
        entry = self._entry(statement.name, sought="new")
        existing = entry.state.find_view(entry.schema, entry.name)
        if existing is not None and statement.if_not_exists:
            return
        check()
        text = canonical.query_text(statement.sql)
        with self._transactions.writing(entry.lake) as transaction:
            schema = transaction.state.schema(entry.schema)
            if existing is not None and statement.replace:
                transaction.state = transaction.state.without_view(existing.view_id)
            transaction.create_view(schema, entry.name, portable(text, entry.lake.alias), statement.columns)

    def drop_view(self, statement: op.DropView) -> None:
        entry = self._entry(statement.name)
        if statement.if_exists and entry.state.find_view(entry.schema, entry.name) is None and entry.find() is None:
            return
        with self._transactions.writing(entry.lake) as transaction:
            view = transaction.state.view(entry.schema, entry.name)
            transaction.state = transaction.state.without_view(view.view_id)

    def rename_view(self, statement: op.RenameView) -> None:
        entry = self._entry(statement.view)
        if statement.if_exists and entry.state.find_view(entry.schema, entry.name) is None:
            return
        with self._transactions.writing(entry.lake) as transaction:
            view = transaction.state.view(entry.schema, entry.name)
            if statement.new_name.casefold() != view.name.casefold():
                transaction.check_name_is_free(transaction.state.schema_of(view), statement.new_name)
            transaction.replace_view(replace(view, name=statement.new_name))

    def create_macro(self, statement: op.CreateMacro, check: Callable[[Sequence[MacroImplementation]], None]) -> None:
        """Creates a macro.

        Args:
            check: raises if a body cannot be bound.
        """
        entry = self._entry(statement.name, sought="new")
        existing = entry.state.find_macro(entry.schema, entry.name, statement.kind)
        if existing is not None and statement.if_not_exists:
            return
        if existing is not None and not statement.replace:
            what = "Macro Function" if statement.kind == "scalar" else "Table Macro Function"
            raise EntryExistsError(f'{what} with name "{entry.name}" already exists; use CREATE OR REPLACE.')
        check_parameters(statement)
        implementations = [_implementation(overload, statement.kind) for overload in statement.overloads]
        check(implementations)
        with self._transactions.writing(entry.lake) as transaction:
            schema = transaction.state.schema(entry.schema)
            if existing is not None:
                transaction.state = transaction.state.without_macro(existing.macro_id)
            transaction.create_macro(schema, entry.name, statement.kind, implementations)

    def drop_macro(self, statement: op.DropMacro) -> None:
        entry = self._entry(statement.name, sought=statement.kind)
        macro = entry.state.find_macro(entry.schema, entry.name, statement.kind)
        if macro is None:
            if statement.if_exists:
                return
            names = [m.name for m in entry.state.macros.values() if m.kind == statement.kind]
            what = "macro" if statement.kind == "scalar" else "table macro"
            raise BindError(f'The {what} "{entry.name}" does not exist.{did_you_mean(entry.name, names)}')
        with self._transactions.writing(entry.lake) as transaction:
            transaction.state = transaction.state.without_macro(macro.macro_id)

    def comment(self, statement: op.Comment) -> None:
        entry = self._entry(statement.name)
        seen = entry.state.find_view(entry.schema, entry.name)
        if statement.column is not None and seen is not None:
            self._comment_view_column(entry, seen, statement.column, statement.text)
            return
        with self._transactions.writing(entry.lake) as transaction:
            state = transaction.state
            if statement.kind == "view":
                view = state.view(entry.schema, entry.name)
                transaction.replace_view(replace(view, comment=statement.text))
                return
            table = state.table(entry.schema, entry.name)
            if statement.column is None:
                transaction.replace_table(replace(table, comment=statement.text))
                return
            column = table.column(statement.column)
            if column is None:
                hint = did_you_mean(statement.column, (c.name for c in table.columns))
                raise BindError(f'{table.name} has no column "{statement.column}".{hint}')
            noted = replace(column, comment=statement.text)
            columns = tuple(noted if c.column_id == column.column_id else c for c in table.columns)
            transaction.replace_table(replace(table, columns=columns))

    def _comment_view_column(self, entry: NamedEntry, view: View, name: str, text: str | None) -> None:
        """Stores a comment under the column's name in the view's query."""
        entry.lake.check_has("comments of view columns", "1.1")
        title = entry.state.qualified_name(view)
        columns = self._view_columns(entry.lake, entry.state.schema_of(view), view)
        if not columns:
            raise BindError(f"The columns of {title} are not known: its query cannot be bound.")
        column = next((column for column in columns if column.name.casefold() == name.casefold()), None)
        if column is None:
            raise BindError(f'{title} has no column "{name}".{did_you_mean(name, (column.name for column in columns))}')
        if not column.stored:
            raise UnsupportedFeatureError(
                f"Columns of {title} get no comments: their names in its query are not known."
            )
        folded = column.stored.casefold()
        if sum(other.stored.casefold() == folded for other in columns) > 1:
            raise UnsupportedFeatureError(
                f'Column "{column.name}" of {title} gets no comment: the view\'s query has several columns named '
                f'"{column.stored}", by which a lake keeps it.'
            )
        others = {key: value for key, value in view.column_comments.items() if key.casefold() != folded}
        with self._transactions.writing(entry.lake) as transaction:
            transaction.replace_view(replace(view, column_comments={**others, column.stored: text}))


def _implementation(overload: op.MacroOverload, kind: str) -> MacroImplementation:
    text = canonical.query_text if kind == "table" else canonical.expression_text
    return MacroImplementation(text(overload.sql), tuple(_parameter(parameter) for parameter in overload.parameters))


def _parameter(parameter: op.MacroParameter) -> MacroParameter:
    kind = parameter.type.name if parameter.type is not None else "unknown"
    if parameter.default_sql is None:
        return MacroParameter(parameter.name, kind)
    value, name = canonical.constant_text(parameter.default_sql)
    default_type = type_or_none(name)
    if default_type is None or default_type.is_nested:
        raise UnsupportedFeatureError(
            f"The default of {parameter.name} is a {name}; defaults of parameters are numbers, texts, dates and times."
        )
    return MacroParameter(parameter.name, kind, value, default_type.name)
