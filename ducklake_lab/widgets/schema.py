"""A foldable tree of a lake's schemas, tables and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ducklake_lab.model.entries import Column, Macro, Table, View
from ducklake_lab.model.quoting import path_parts
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.transforms import parse_transform
from ducklake_lab.widgets.html import DOT, cell, clip, count, counted, escape, heading, size, table, view

if TYPE_CHECKING:
    from ducklake_lab.scan.counts import TableCounts
    from ducklake_lab.session.names.system_tables import ViewComments
    from ducklake_lab.session.overview import TableInfo

#: Most tables in a tree that shows them unfolded.
_OPEN_TABLES = 1
#: Most tables with their columns; others are only named.
LIMIT = 100
_COLUMNS = 500
_SCHEMA_END = "</div></details>"

_STYLE = """
.dlk .dlk-tree details{margin:1px 0}.dlk .dlk-tree summary{padding:1px 3px;border-radius:3px}
.dlk .dlk-tree summary:hover{background:var(--dlk-tint)}
.dlk .dlk-tree .dlk-in{margin:2px 0 8px 17px;padding-left:12px;border-left:1px solid var(--dlk-line)}
.dlk .dlk-tree summary .dlk-soft{margin-left:8px}
"""


@dataclass(frozen=True, slots=True)
class TableNode:
    """A table of the tree.

    Attributes:
        rows: number of rows; None if none was ever inserted, or the catalog does not know.
        bytes: size of its data files; None as for `rows`.
    """

    table: Table
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """A schema of the tree.

    Attributes:
        name: its name; the path of a nested schema, see `schema_path`.
    """

    name: str
    tables: tuple[TableNode, ...]
    views: tuple[View, ...] = ()
    macros: tuple[Macro, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The names from the outermost schema to this one."""
        return path_parts(self.name)


@dataclass(frozen=True, slots=True)
class SchemaTree:
    """A tree of a lake's schemas at one snapshot, which notebooks display.

    Attributes:
        schemas: the schemas; each one directly before its nested ones.
        view_comments: the comments of view columns, by view id and column.
    """

    lake: str
    schemas: tuple[SchemaNode, ...]
    snapshot_id: int | None = None
    view_comments: ViewComments = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        lines = []
        for schema in self.schemas:
            indent = "  " * (len(schema.parts) - 1)
            lines.append(indent + schema.parts[-1])
            for node in schema.tables:
                lines.append(f"{indent}  {node.table.name}  ({_facts(node)})")
                lines += [f"{indent}    {column.name}  {column.data_type.sql()}" for column in node.table.columns]
        return "\n".join(lines)


def build(lake: str, tables: Iterable[TableInfo], snapshot_id: int | None = None) -> SchemaTree:
    """Returns the tree of one lake from a session's table listing."""
    by_schema: dict[str, list[TableNode]] = {}
    for info in tables:
        if info.lake == lake:
            node = TableNode(info.table, info.record_count, info.file_size_bytes)
            by_schema.setdefault(info.schema, []).append(node)
    schemas = tuple(
        SchemaNode(name, tuple(sorted(nodes, key=lambda node: node.table.name)))
        for name, nodes in sorted(by_schema.items())
    )
    return SchemaTree(lake, schemas, snapshot_id)


def of_catalog(
    lake: str, state: CatalogState, counts: Mapping[int, TableCounts], view_comments: ViewComments
) -> SchemaTree:
    """Returns the tree of all entries of a lake at a snapshot, empty schemas included."""
    nodes = []
    for schema in sorted(state.schemas.values(), key=lambda schema: schema.parts):
        tables = []
        for entry in state.tables_of(schema.schema_id):
            totals = counts.get(entry.table_id)
            tables.append(TableNode(entry, totals.rows if totals else 0, totals.bytes if totals else 0))
        views = sorted((v for v in state.views.values() if v.schema_id == schema.schema_id), key=lambda v: v.name)
        macros = sorted((m for m in state.macros.values() if m.schema_id == schema.schema_id), key=lambda m: m.name)
        nodes.append(SchemaNode(schema.name, tuple(tables), tuple(views), tuple(macros)))
    return SchemaTree(lake, tuple(nodes), state.snapshot.snapshot_id, view_comments)


def render(tree: SchemaTree) -> str:
    """Returns foldable lists of schemas, tables and columns, which Tab and Enter can reach."""
    tables = [node for schema in tree.schemas for node in schema.tables]
    facts = [counted(len(tree.schemas), "schema"), counted(len(tables), "table")]
    if tree.snapshot_id is not None:
        facts.insert(0, f"snapshot {tree.snapshot_id}")
    if any(node.rows is not None for node in tables):
        facts.append(counted(sum(node.rows or 0 for node in tables), "row"))
    if any(node.bytes is not None for node in tables):
        facts.append(size(sum(node.bytes or 0 for node in tables)))
    left = LIMIT
    parts = [
        f'<p><span class="dlk-title">{escape(tree.lake)}</span> <span class="dlk-soft">{DOT.join(facts)}</span></p>'
    ]
    around: list[tuple[str, ...]] = []
    for schema in tree.schemas:
        while around and schema.parts[: len(around[-1])] != around[-1]:
            around.pop()
            parts.append(_SCHEMA_END)
        shown = schema.tables[: max(left, 0)]
        left -= len(shown)
        parts.append(_schema(schema, shown, tree, unfold=len(tables) <= _OPEN_TABLES))
        around.append(schema.parts)
    parts += [_SCHEMA_END] * len(around)
    return view(f'<div class="dlk-tree">{"".join(parts)}</div>', style=_STYLE, label=f"Schemas of {tree.lake}")


def _schema(schema: SchemaNode, shown: Sequence[TableNode], tree: SchemaTree, unfold: bool) -> str:
    """Returns a schema without its end, `_SCHEMA_END`, because nested schemas may follow."""
    inside = "".join(_table(node, unfold) for node in shown)
    inside += "".join(_view(entry, tree.view_comments.get(entry.view_id, {})) for entry in schema.views[:LIMIT])
    inside += "".join(map(_macro, schema.macros[:LIMIT]))
    if len(shown) < len(schema.tables):
        names = ", ".join(escape(clip(node.table.name, 60)) for node in schema.tables[len(shown) : len(shown) + 200])
        inside += f"<details><summary>{count(len(schema.tables) - len(shown))} more tables</summary>{names}</details>"
    return (
        f"<details open><summary><b>{escape(clip(schema.parts[-1], 120))}</b> "
        f'<span class="dlk-soft">{counted(len(schema.tables), "table")}</span></summary>'
        f'<div class="dlk-in">{inside or ("" if _is_parent(schema, tree) else "No tables.")}'
    )


def _is_parent(schema: SchemaNode, tree: SchemaTree) -> bool:
    return any(other.parts[:-1] == schema.parts for other in tree.schemas)


def _view(entry: View, comments: Mapping[str, str]) -> str:
    comment = f'<p class="dlk-soft">{escape(clip(entry.comment, 400))}</p>' if entry.comment else ""
    for name, text in list(comments.items())[:_COLUMNS]:
        comment += f'<p class="dlk-soft">{escape(clip(name, 120))}: {escape(clip(text, 200))}</p>'
    return (
        f"<details><summary>{escape(clip(entry.name, 120))} "
        f'<span class="dlk-soft">view</span></summary><div class="dlk-in">{comment}'
        f'<code class="dlk-mono">{escape(clip(view_sql(entry), 2000))}</code></div></details>'
    )


def view_sql(entry: View) -> str:
    """Returns the query of a view, without the placeholder for its lake."""
    return entry.sql.replace("{DUCKLAKE_CATALOG}.", "")


def _macro(entry: Macro) -> str:
    forms = "".join(f"<li>{escape(clip(text, 400))}</li>" for text in macro_signatures(entry))
    return (
        f"<details><summary>{escape(clip(entry.name, 120))} "
        f'<span class="dlk-soft">{entry.kind} macro</span></summary><ul class="dlk-in dlk-mono">{forms}</ul></details>'
    )


def macro_signatures(entry: Macro) -> list[str]:
    """Returns the signatures of a macro, one per overload."""
    return [
        f"{entry.name}({', '.join(parameter.name for parameter in one.parameters)})" for one in entry.implementations
    ]


def _table(node: TableNode, unfold: bool) -> str:
    columns = [(column, 0) for column in node.table.columns]
    rows = [row for column, depth in columns[:_COLUMNS] for row in _column(column, depth)]
    more = "" if len(columns) <= _COLUMNS else f'<p class="dlk-soft">{count(len(columns) - _COLUMNS)} more columns</p>'
    comment = f'<p class="dlk-soft">{escape(clip(node.table.comment, 400))}</p>' if node.table.comment else ""
    listing = table((heading("column"), heading("type"), heading(""), heading("")), rows)
    return (
        f"<details{' open' if unfold else ''}><summary>{escape(clip(node.table.name, 120))} "
        f'<span class="dlk-soft">{escape(_facts(node))}</span></summary>'
        f'<div class="dlk-in">{comment}{listing}{more}</div></details>'
    )


def _facts(node: TableNode) -> str:
    facts = [counted(len(node.table.columns), "column")]
    if node.rows is not None:
        facts.insert(0, counted(node.rows, "row"))
    if node.bytes is not None:
        facts.append(size(node.bytes))
    keys = partition_keys(node.table)
    if keys:
        facts.append("partitioned by " + ", ".join(keys))
    if node.table.sort is not None:
        facts.append("sorted by " + ", ".join(sort_keys(node.table)))
    return DOT.join(facts)


def partition_keys(entry: Table) -> list[str]:
    """Returns the partition keys as written: `month(time_hour)`, `origin`, `bucket(8, id)`."""
    keys = []
    for key in entry.partition.fields if entry.partition else ():
        column = entry.column_by_id(key.column_id)
        name = column.name if column else f"column {key.column_id}"
        keys.append(parse_transform(key.transform).written(name))
    return keys


def sort_keys(entry: Table) -> list[str]:
    """Returns the sort keys as written, with DESC and NULLS FIRST only if they differ from the default."""
    keys = []
    for key in entry.sort.keys if entry.sort is not None else ():
        down = " DESC" if key.direction == "DESC" else ""
        keys.append(f"{key.expression}{down}{' NULLS FIRST' if key.null_order == 'NULLS FIRST' else ''}")
    return keys


def _column(column: Column, depth: int) -> list[str]:
    default = "" if column.default_value in (None, "NULL") else clip(str(column.default_value), 60)
    indent = "\u2003" * depth + ("└ " if depth else "")
    cells = (
        cell(indent + escape(clip(column.name, 120)), title=column.name if len(column.name) > 120 else ""),
        cell(f'<span class="dlk-mono">{escape(clip(column.data_type.sql().lower(), 90))}</span>'),
        cell("" if column.nulls_allowed else "not null"),
        cell(
            (f'default <span class="dlk-mono">{escape(default)}</span> ' if default else "")
            + (f'<span class="dlk-soft">{escape(clip(column.comment, 200))}</span>' if column.comment else "")
        ),
    )
    rows = [f"<tr>{''.join(cells)}</tr>"]
    # The type already names a list's element and a map's key and value; fields of structs get rows.
    for child in column.children if column.type == "struct" else _structs_inside(column):
        rows += _column(child, depth + 1)
    return rows


def _structs_inside(column: Column) -> tuple[Column, ...]:
    return tuple(child for child in column.children if child.children)
