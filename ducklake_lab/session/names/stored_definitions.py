"""Converts views and macros between their stored form in a catalog and the planner's form."""

from __future__ import annotations

import re
from dataclasses import replace

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Macro, Table, View
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.sql.bind.expansion import without_macros
from ducklake_lab.sql.plan import StoredMacro, StoredView

#: Placeholder for the lake's alias in the stored text of a view.
_CATALOG = "{DUCKLAKE_CATALOG}."
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""


def stored_view(entry: NamedEntry, view: View) -> StoredView:
    """Returns a view in the planner's form."""
    if view.dialect.casefold() != "duckdb":
        raise UnsupportedFeatureError(
            f"The view {entry.state.qualified_name(view)} is kept in the dialect {view.dialect}, which is not supported."
        )
    lake, schema = entry.lake.alias, entry.state.schema_of(view).name
    return StoredView(view.name, resolved(view.sql, lake), view.column_names, lake, schema, entry_id=view.view_id)


def stored_macro(entry: NamedEntry, macro: Macro) -> StoredMacro:
    """Returns a macro in the planner's form."""
    schema = entry.state.schema_of(macro).name
    return StoredMacro(macro.name, macro.implementations, entry.lake.alias, schema, macro.macro_id)


def with_plain_sort_keys(state: CatalogState, table: Table) -> Table:
    """Returns the table with macros in its sort keys expanded; the process that sorts rows has no lakes."""
    if table.sort is None or not state.macros:
        return table
    schema = state.schema_of(table)
    macros: dict[tuple[str, str], StoredMacro] = {
        (macro.kind, macro.name.casefold()): StoredMacro(macro.name, macro.implementations, "", schema.name)
        for macro in state.macros.values()
        if macro.schema_id == table.schema_id
    }
    keys = tuple(replace(key, expression=without_macros(key.expression, macros)) for key in table.sort.keys)
    return replace(table, sort=replace(table.sort, keys=keys))


def portable(sql: str, alias: str) -> str:
    """Replaces the lake's alias by the placeholder, wherever it qualifies a name."""
    pattern = re.compile(rf"({_QUOTED})|(?<![\w.\"]){re.escape(alias)}\.")
    return pattern.sub(lambda match: match[1] or _CATALOG, sql)


def independent(sql: str, alias: str) -> str:
    """Returns the text of a view as its lake keeps it, given the text that `resolved` made of it."""
    return sql.replace(quote_identifier(alias) + ".", _CATALOG)


def resolved(sql: str, alias: str) -> str:
    """Replaces the placeholder in the text of a view by the lake's alias."""
    quoted = quote_identifier(alias) + "."
    pattern = re.compile(rf"({_QUOTED})|{re.escape(_CATALOG)}")
    return pattern.sub(lambda match: match[1] or quoted, sql)
