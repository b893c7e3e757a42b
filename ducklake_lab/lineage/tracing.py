"""Edges of lineage of views and noted statements, by the entries of a state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.errors import DuckLakeError, EntryNotFoundError
from ducklake_lab.lineage.graph import Edge, Node
from ducklake_lab.lineage.history import Noted
from ducklake_lab.model.entries import Table, View
from ducklake_lab.model.quoting import path_parts, quote_identifier, schema_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.plan import NamedRows, Resolver, StoredMacro
from ducklake_lab.sql.planning.lineage import StatementLineage, lineage_of

_CATALOG = re.compile(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|\{DUCKLAKE_CATALOG\}\.")
_UTC: Settings = (("TimeZone", "UTC"),)
#: Views within views that are followed.
_DEEPEST = 30


@dataclass(frozen=True, slots=True)
class EntryRows:
    """A table or view as the rows of a name."""

    entry: Table | View
    columns: Sequence[tuple[str, DataType]]
    qualifiers: tuple[str, ...]

    def node(self, column: str) -> Node:
        """Returns the node of a column."""
        if isinstance(self.entry, View):
            return Node(self.entry.view_id, column)
        column_now = self.entry.column(column)
        return Node(self.entry.table_id, column_now.column_id if column_now is not None else None)

    @property
    def whole(self) -> Node:
        return Node(self.entry.view_id if isinstance(self.entry, View) else self.entry.table_id)


class StateResolver(Resolver):
    """Resolves names in one state of a lake; a view counts as a table.

    Args:
        aliases: the names under which the lake was attached, folded.
    """

    def __init__(self, state: CatalogState, alias: str, aliases: Sequence[str] = ()) -> None:
        self._state = state
        self._alias = alias
        self._aliases = {alias.casefold(), *aliases}
        self._views: dict[int, StatementLineage | None] = {}

    def table(self, name: op.TableName, at: op.At | None) -> NamedRows:
        schema = self._schema(name)
        table = self._state.find_table(schema, name.name)
        if table is not None:
            columns = [(column.name, column.data_type) for column in table.columns]
            return EntryRows(table, columns, (schema, self._alias))
        view = self._state.find_view(schema, name.name)
        lineage = self.of_view(view) if view is not None else None
        if view is None or lineage is None:
            raise EntryNotFoundError(f"There is no table {name.name}.")
        return EntryRows(
            view, [(flow.name, flow.kind or DataType("varchar")) for flow in lineage.flows], (schema, self._alias)
        )

    def settings(self) -> Settings:
        return _UTC

    def macro(self, name: op.TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        return self.macros((self._alias, self._schema(name))).get((kind, name.name.casefold()))

    def macros(self, lake_schema: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        schema = self._state.find_schema(lake_schema[1] if lake_schema is not None else "main")
        return {
            (macro.kind, macro.name.casefold()): StoredMacro(
                macro.name, macro.implementations, self._alias, self._state.schema_of(macro).name, macro.macro_id
            )
            for macro in self._state.macros.values()
            if schema is not None and macro.schema_id == schema.schema_id
        }

    def of_view(self, view: View) -> StatementLineage | None:
        """Returns the lineage of a view; None where its query cannot be traced."""
        if view.view_id not in self._views:
            if len(self._views) > _DEEPEST * 100:
                return None
            self._views[view.view_id] = None  # one that names itself has none
            self._views[view.view_id] = self._traced(view)
        return self._views[view.view_id]

    def _traced(self, view: View) -> StatementLineage | None:
        if view.dialect.casefold() != "duckdb":
            return None
        return self.of_query(view.name, view.sql, self._state.schema_of(view).name, view.column_names)

    def of_query(self, name: str, sql: str, schema: str, columns: Sequence[str] = ()) -> StatementLineage | None:
        """Returns the lineage of a stored query; None where it cannot be traced.

        Args:
            name: of the entry that it defines.
            schema: the schema in which unqualified names are looked up.
            columns: names of its columns; its own by default.
        """
        quoted = quote_identifier(self._alias) + "."
        text = _CATALOG.sub(lambda match: match[1] or quoted, sql)
        try:
            made = op.CreateView(op.TableName(None, None, name), text, parse_query(text), tuple(columns))
            return lineage_of(made, self, (), (self._alias, schema))
        except (DuckLakeError, RecursionError):
            return None  # it can be read, or not, elsewhere; its lineage is not known

    def _schema(self, name: op.TableName) -> str:
        """Returns the schema of a name, which may be the lake's.

        Raises:
            EntryNotFoundError: the name belongs to another lake.
        """
        if name.catalog is not None:
            if name.catalog.casefold() in self._aliases:
                return name.schema or "main"
            return schema_path((name.catalog, *path_parts(name.schema or "main")))
        if name.schema is None:
            return "main"
        if self._state.find_schema(name.schema) is None and name.schema.casefold() in self._aliases:
            return "main"
        return name.schema


def edges_of_views(state: CatalogState, alias: str, untraced: list[Node]) -> Iterator[Edge]:
    """Yields the edges of all views of a state.

    Args:
        untraced: gets the views whose queries cannot be read.
    """
    resolver = StateResolver(state, alias)
    for view in state.views.values():
        lineage = resolver.of_view(view)
        if lineage is None:
            untraced.append(Node(view.view_id))
        else:
            targets = [Node(view.view_id, flow.name) for flow in lineage.flows]
            yield from _edges(lineage, targets, Node(view.view_id), "CREATE VIEW", None)


def edges_of_live(
    state: CatalogState, alias: str, definitions: Mapping[int, tuple[str, str]], untraced: list[Node]
) -> Iterator[Edge]:
    """Yields the edges of all live tables of a state.

    Args:
        definitions: the query of each, and the schema of its names, by table id.
        untraced: gets those whose queries cannot be read, or have other columns now.
    """
    resolver = StateResolver(state, alias)
    for table_id, (sql, schema) in definitions.items():
        table = state.tables[table_id]
        lineage = resolver.of_query(table.name, sql, schema, [column.name for column in table.columns])
        if lineage is None or len(lineage.flows) != len(table.columns):
            untraced.append(Node(table_id))
        else:
            targets = [Node(table_id, column.column_id) for column in table.columns]
            yield from _edges(lineage, targets, Node(table_id), "CREATE LIVE TABLE", None)


def edges_of_statement(noted: Noted, before: CatalogState, after: CatalogState, alias: str) -> list[Edge]:
    """Returns the edges of a statement that a snapshot noted; [] where it cannot be traced.

    Args:
        before, after: the states around the snapshot.
    """
    operation = noted.operation
    name = operation.name if isinstance(operation, op.CreateTable) else operation.table
    target = _target(noted, name, after)
    if target is None:
        return []
    then = {part.casefold() for part in (name.catalog, name.schema if name.catalog is None else None) if part}
    schema = after.schema_of(target).name
    columns = [column.name for column in target.columns]
    for state in (before, after):
        try:
            lineage = lineage_of(operation, StateResolver(state, alias, tuple(then)), columns, (alias, schema))
        except (DuckLakeError, RecursionError):
            continue
        nodes = []
        for place, flow in enumerate(lineage.flows):
            column = target.column(flow.name)
            if column is None and isinstance(operation, op.CreateTable) and place < len(target.columns):
                column = target.columns[place]  # repeated names get numbers
            nodes.append(Node(target.table_id, column.column_id if column is not None else None))
        return list(_edges(lineage, nodes, Node(target.table_id), noted.via, noted.snapshot_id))
    return []


def _target(noted: Noted, name: op.TableName, after: CatalogState) -> Table | None:
    """Returns the table that a statement wrote: one of its name that the snapshot changed; None where that is not certain."""
    changed = [
        after.tables[table_id]
        for table_id, (_, table_name) in after.tables.names.items()
        if table_name.casefold() == name.name.casefold()
        and not noted.changed.isdisjoint((table_id, table_name.casefold()))
    ]
    given = name.schema if name.schema is not None and after.find_schema(name.schema) is not None else None
    tables = [table for table in changed if given is None or after.schema_of(table).name.casefold() == given.casefold()]
    return tables[0] if len(tables) == 1 else None


def _edges(
    lineage: StatementLineage, targets: Sequence[Node], whole: Node, via: str, snapshot_id: int | None
) -> Iterator[Edge]:
    rows = {view: source.rows for view, source in lineage.sources.items() if isinstance(source.rows, EntryRows)}
    named: set[Node] = set()
    for flow, target in zip(lineage.flows, targets, strict=True):
        for view, column in sorted(flow.origins):
            if view in rows and target.column is not None:
                named.add(rows[view].whole)
                yield Edge(rows[view].node(column), target, "value", via, snapshot_id)
    for view, column in sorted(lineage.conditions):
        if view in rows:
            named.add(rows[view].whole)
            yield Edge(rows[view].node(column), whole, "condition", via, snapshot_id)
    for source in rows.values():
        if source.whole not in named and source.whole != whole:
            yield Edge(source.whole, whole, "rows", via, snapshot_id)
