"""The part of a session that answers what columns come from, and what depends on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import pyarrow as pa

from ducklake_lab.catalog.attachments import LIVE, table_tags
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_first_since
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import CatalogError, EntryNotFoundError, did_you_mean
from ducklake_lab.lineage.graph import Edge, Graph, Node, Step
from ducklake_lab.lineage.history import noted_statements
from ducklake_lab.lineage.tracing import edges_of_live, edges_of_statement, edges_of_views
from ducklake_lab.live.definition import read_definition
from ducklake_lab.model.entries import Table, View
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.attached_lakes import Lakes, split_name
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.rows.result import Result

_SCHEMA = pa.schema(
    [
        ("direction", pa.string()),
        ("depth", pa.int64()),
        ("source", pa.string()),
        ("source_column", pa.string()),
        ("target", pa.string()),
        ("target_column", pa.string()),
        ("kind", pa.string()),
        ("via", pa.string()),
        ("snapshot", pa.int64()),
    ]
)


@works_on_lakes
class Tracing:
    """Lineage of the current lake."""

    _lakes: Lakes

    def lineage(self, name: str | None = None) -> Result:
        """Returns what a table, view or column comes from and what depends on it: one row for each dependency.

        Views and live tables are traced as they are, statements as commits noted them. Columns: direction (upstream or downstream), depth,
        source, source_column, target, target_column, kind (`value`, `condition` for columns that decide which rows come, `rows`
        for tables of which no column is named), via (the statement) and snapshot (the last one; NULL for views and live tables). Statements
        that commits did not note are missing.

        Args:
            name: `table`, `table.column`, with the schema before it on request; all dependencies of the lake if left out.

        Raises:
            EntryNotFoundError: there is no such table, view or column.
        """
        with self._lakes.statement():
            lake = self._lakes.get()
            state = self._lakes.state(lake)
            names = _Names(lake.alias)
            chosen = _chosen(self._lakes, state, name) if name is not None else None
            graph = traced(lake, state, names.learn)
            names.learn(state)
            steps: Iterable[Step | Edge] = graph.around(chosen) if chosen is not None else graph
            rows = [names.row(step) for step in steps]
        return Result(InMemory(pa.Table.from_pylist(rows, schema=_SCHEMA)))


def traced(lake: Lake, state: CatalogState, learn: Callable[[CatalogState], None]) -> Graph:
    """Returns the graph of a lake: its views in a state, and the statements that its snapshots noted.

    Args:
        learn: gets each earlier state whose entries the graph names.
    """
    graph = Graph()
    with lake.connect() as connection:
        first = read_first_since(connection, 0) or 0
    for noted in noted_statements(lake):
        if noted.snapshot_id > state.snapshot.snapshot_id:
            break
        with lake.connect() as connection:
            after = lake.state(connection, lake.snapshot(connection, noted.snapshot_id))
            at = noted.snapshot_id - 1
            before = lake.state(connection, lake.snapshot(connection, at)) if at >= first else after
        edges = edges_of_statement(noted, before, after, lake.alias)
        if edges:
            learn(before)
            learn(after)
        graph.add(edges)
    graph.add(edges_of_views(state, lake.alias))
    graph.add(edges_of_live(state, lake.alias, _definitions(lake, state)))
    return graph


def _definitions(lake: Lake, state: CatalogState) -> dict[int, tuple[str, str]]:
    """Returns the query of each live table, and the schema of its names, by table id; damaged ones are missing."""
    with lake.connect() as connection:
        tags = table_tags(connection, state.snapshot.snapshot_id, LIVE)
    found: dict[int, tuple[str, str]] = {}
    for (table_id, key), text in tags.items():
        if key == LIVE and table_id in state.tables:
            with suppress(CatalogError):
                definition = read_definition(text, state.tables[table_id].name)
                found[table_id] = definition.sql, definition.schema
    return found


def dependents(lake: Lake, before: CatalogState, after: CatalogState) -> tuple[str, ...]:
    """Returns what depends on columns that a change drops or renames; reads no history where there are none."""
    gone: set[Node] = set()
    for table_id in before.tables:
        old, new = before.tables[table_id] if _is_changed(before, after, table_id) else None, after.tables.get(table_id)
        if old is None:
            continue
        names = {column.column_id: column.name for column in new.columns} if new is not None else {}
        gone |= {
            Node(table_id, column.column_id) for column in old.columns if names.get(column.column_id) != column.name
        }
    if not gone:
        return ()
    names_of = _Names(lake.alias)
    graph = traced(lake, before, names_of.learn)
    names_of.learn(before)
    found = []
    for edge in graph:
        if edge.source in gone and edge.kind != "rows" and edge.target.entry_id != edge.source.entry_id:
            row = names_of.row(edge)
            target = ".".join(str(part) for part in (row["target"], row["target_column"]) if part is not None)
            found.append(f"{target} depends on {row['source']}.{row['source_column']}, by {row['via']}")
    return tuple(dict.fromkeys(found))


def _is_changed(before: CatalogState, after: CatalogState, table_id: int) -> bool:
    """Returns whether a table is another one now; makes no table that neither state has made."""
    made = {table.table_id for table in after.tables.made()}
    if table_id not in after.tables:
        return True
    return table_id in made and after.tables[table_id] != before.tables[table_id]


class _Names:
    """Names of entries by id: the present ones, or the last ones of those that are gone."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._states: list[CatalogState] = []

    def learn(self, state: CatalogState) -> None:
        if not self._states or self._states[-1].snapshot.schema_version != state.snapshot.schema_version:
            self._states.append(state)

    def row(self, step: Step | Edge) -> dict[str, object]:
        edge = step.edge if isinstance(step, Step) else step
        (source, source_column), (target, target_column) = self._shown(edge.source), self._shown(edge.target)
        return {
            "direction": step.direction if isinstance(step, Step) else None,
            "depth": step.depth if isinstance(step, Step) else None,
            "source": source,
            "source_column": source_column,
            "target": target,
            "target_column": target_column,
            "kind": edge.kind,
            "via": edge.via,
            "snapshot": edge.snapshot_id,
        }

    def _shown(self, node: Node) -> tuple[str, str | None]:
        for number, state in enumerate(reversed(self._states)):
            entry: Table | View | None = state.tables.get(node.entry_id) or state.views.get(node.entry_id)
            if entry is None:
                continue
            gone = " (dropped)" if number else ""
            return state.qualified_name(entry) + gone, self._column(node)
        return f"#{node.entry_id}", self._column(node)

    def _column(self, node: Node) -> str | None:
        if node.column is None or isinstance(node.column, str):
            return node.column
        for number, state in enumerate(reversed(self._states)):
            table = state.tables.get(node.entry_id)
            column = table.column_by_id(node.column) if table is not None else None
            if column is not None:
                return column.name + (" (dropped)" if number else "")
        return f"#{node.column}"


def _chosen(lakes: Lakes, state: CatalogState, name: str) -> Callable[[Node], bool]:
    """Returns the condition of the nodes that a dotted name means."""
    parts = split_name(name)
    entry = _entry(lakes, state, parts)
    if entry is not None:
        number = _id(entry)
        return lambda node: node.entry_id == number
    owner = _entry(lakes, state, parts[:-1]) if len(parts) > 1 else None
    if owner is None:
        known = [other for _, other in state.tables.names.values()] + [view.name for view in state.views.values()]
        raise EntryNotFoundError(f"There is no table, view or column {name}.{did_you_mean(parts[-1], known)}")
    number = _id(owner)
    if isinstance(owner, View):
        folded = parts[-1].casefold()
        return lambda node: (
            node.entry_id == number and isinstance(node.column, str) and node.column.casefold() == folded
        )
    column = owner.column(parts[-1])
    if column is None:
        hint = did_you_mean(parts[-1], [known.name for known in owner.columns])
        raise EntryNotFoundError(f'{owner.name} has no column "{parts[-1]}".{hint}')
    return lambda node: node == Node(number, column.column_id)


def _entry(lakes: Lakes, state: CatalogState, parts: tuple[str, ...]) -> Table | View | None:
    if not 1 <= len(parts) <= 3:
        return None
    catalog, schema = (None, None, *parts)[-3:-1]
    try:
        place = lakes.entry(catalog, schema, parts[-1])
    except EntryNotFoundError:
        return None
    if place.lake is not lakes.get():
        return None
    return state.find_table(place.schema, place.name) or state.find_view(place.schema, place.name)


def _id(entry: Table | View) -> int:
    return entry.view_id if isinstance(entry, View) else entry.table_id
