"""The part of a session that answers what columns come from, and what depends on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from ducklake_lab.catalog.attachments import LIVE, table_tags
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_first_since
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
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.sql.operations import TableName

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
    """Lineage of a lake: the current one, or that of a name."""

    _lakes: Lakes

    def lineage(self, name: str | None = None, *, at: At = None) -> Result:
        """Returns what a table, view or column comes from and what depends on it: one row for each dependency.

        Views and live tables are traced as they are, statements as commits noted them. Columns: direction (upstream or downstream), depth,
        source, source_column, target, target_column, kind (`value`, `condition` for columns that decide which rows come, `rows`
        for tables of which no column is named), via (the statement) and snapshot (the last one; NULL for views and live tables). Statements
        that commits did not note are missing. Remarks of its `info` name views and live tables whose queries cannot be read,
        for example after a column was renamed: what these depend on is missing as well.

        Args:
            name: `table`, `table.column`, with the schema before it on request; all dependencies of the lake if left out.
            at: the snapshot up to which the lake is looked at; the newest by default.

        Raises:
            EntryNotFoundError: there is no such table, view or column.
        """
        with self._lakes.statement():
            if name is None:
                lake, chosen = self._lakes.get(), None
                state = self._lakes.state(lake, at)
            else:
                lake, state, chosen = _chosen(self._lakes, name, at)
            names = _Names(lake.alias)
            graph = traced(lake, state, names.learn)
            names.learn(state)
            steps: Iterable[Step | Edge] = graph.around(chosen) if chosen is not None else graph
            rows = [names.row(step) for step in steps]
            untraced = names.of(graph.untraced)
            info = RunInfo(
                remarks=[f"not traced, as their queries cannot be read: {', '.join(untraced)}"] if untraced else []
            )
        return Result(InMemory(pa.Table.from_pylist(rows, schema=_SCHEMA)), info=info)


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
    graph.add(edges_of_views(state, lake.alias, graph.untraced))
    graph.add(edges_of_live(state, lake.alias, _definitions(lake, state, graph.untraced), graph.untraced))
    return graph


def _definitions(lake: Lake, state: CatalogState, untraced: list[Node]) -> dict[int, tuple[str, str]]:
    """Returns the query of each live table, and the schema of its names, by table id.

    Args:
        untraced: gets those whose definitions are damaged.
    """
    with lake.connect() as connection:
        tags = table_tags(connection, state.snapshot.snapshot_id, LIVE)
    definitions: dict[int, tuple[str, str]] = {}
    for (table_id, key), text in tags.items():
        if key == LIVE and table_id in state.tables:
            try:
                definition = read_definition(text, state.tables[table_id].name)
            except CatalogError:
                untraced.append(Node(table_id))
            else:
                definitions[table_id] = definition.sql, definition.schema
    return definitions


def dependents(lake: Lake, before: CatalogState, after: CatalogState) -> tuple[str, ...]:
    """Returns what depends on tables, views and columns that a change drops or alters; reads no history where there are none.

    A column is altered by another name or type, a table by another name, a view by another query as well.
    """
    gone: set[Node] = set()
    whole: set[int] = set()
    for table_id in before.tables:
        if not _is_changed(before, after, table_id):
            continue
        old, new = before.tables[table_id], after.tables.get(table_id)
        if new is None or (old.name, old.schema_id) != (new.name, new.schema_id):
            whole.add(table_id)
            continue
        shapes = {column.column_id: (column.name, column.data_type) for column in new.columns}
        gone |= {
            Node(table_id, column.column_id)
            for column in old.columns
            if shapes.get(column.column_id) != (column.name, column.data_type)
        }
    whole |= _changed_views(before, after)
    if not gone and not whole:
        return ()
    names_of = _Names(lake.alias)
    graph = traced(lake, before, names_of.learn)
    names_of.learn(before)
    dependencies = []
    for edge in graph:
        target_id = edge.target.entry_id
        if target_id == edge.source.entry_id or not (target_id in after.tables or target_id in after.views):
            continue
        if edge.source in gone or edge.source.entry_id in whole:
            row = names_of.row(edge)
            source, target = (
                ".".join(str(part) for part in (row[end], row[f"{end}_column"]) if part is not None)
                for end in ("source", "target")
            )
            dependencies.append(f"{target} depends on {source}, by {row['via']}")
    return tuple(dict.fromkeys(dependencies))


def _changed_views(before: CatalogState, after: CatalogState) -> set[int]:
    """Returns the ids of views that a change drops, renames or gives another query, which makes another view."""
    if before.views is after.views:
        return set()
    return {
        number
        for number, old in before.views.items()
        if (new := after.views.get(number)) is None
        or (old.name, old.schema_id, old.sql, old.column_names) != (new.name, new.schema_id, new.sql, new.column_names)
    }


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

    def of(self, nodes: Iterable[Node]) -> list[str]:
        """Returns the names of entries, in order."""
        return sorted(self._shown(node)[0] for node in nodes)

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


def _chosen(lakes: Lakes, name: str, at: At) -> tuple[Lake, CatalogState, Callable[[Node], bool]]:
    """Returns the lake and state of a dotted name, and the condition of the nodes that it means."""
    parts = split_name(name)
    named = _entry(lakes, parts, at)
    if named is not None:
        lake, state, entry = named
        number = _id(entry)
        return lake, state, lambda node: node.entry_id == number
    named = _entry(lakes, parts[:-1], at) if len(parts) > 1 else None
    if named is None:
        state = lakes.state(lakes.get(), at)
        names = [other for _, other in state.tables.names.values()] + [view.name for view in state.views.values()]
        raise EntryNotFoundError(f"There is no table, view or column {name}.{did_you_mean(parts[-1], names)}")
    lake, state, owner = named
    number = _id(owner)
    if isinstance(owner, View):
        folded = parts[-1].casefold()
        return (
            lake,
            state,
            lambda node: node.entry_id == number and isinstance(node.column, str) and node.column.casefold() == folded,
        )
    column = owner.column(parts[-1])
    if column is None:
        hint = did_you_mean(parts[-1], [each.name for each in owner.columns])
        raise EntryNotFoundError(f'{owner.name} has no column "{parts[-1]}".{hint}')
    return lake, state, lambda node: node == Node(number, column.column_id)


def _entry(lakes: Lakes, parts: tuple[str, ...], at: At) -> tuple[Lake, CatalogState, Table | View] | None:
    name = TableName.of(parts)
    try:
        named = lakes.entry(name.catalog, name.schema, name.name, at)
    except EntryNotFoundError:
        return None
    entry = named.state.find_table(named.schema, named.name) or named.state.find_view(named.schema, named.name)
    return (named.lake, named.state, entry) if entry is not None else None


def _id(entry: Table | View) -> int:
    return entry.view_id if isinstance(entry, View) else entry.table_id
