"""A searchable tree of a lake's entries; a click on "query" writes a query into the notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import traitlets

from ducklake_lab.errors import EntryNotFoundError, UsageError, did_you_mean
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import path_parts, path_title, quoted_if_needed, quoted_path
from ducklake_lab.widgets import lineage as lineage_view
from ducklake_lab.widgets import schema as schema_view
from ducklake_lab.widgets.html import clip, counted, escape, size, view, visible
from ducklake_lab.widgets.mounted import Mounted, script, styles
from ducklake_lab.widgets.schema import SchemaTree, TableNode

_NAME = 160


class SchemaBrowser(Mounted):
    """A browser for schemas, tables with their columns, views and macros.

    Attributes:
        tree: the displayed tree.
        query: search words, for names of tables, columns, views and macros, and for comments.
        selected: [schema, table] of the selected table, view or macro, or []; for a nested schema, its path.
        inserted: the last written query.
        picture: the lineage of the entry that it was asked of last, as HTML; "" for none.

    Args:
        lineage: returns the rows and remarks of `session.lineage` for a name in SQL; without it there is no lineage.
    """

    _esm = script("schema")
    _css = styles("schema")

    nodes: traitlets.List[object] = traitlets.List().tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    matches: object = traitlets.List(default_value=None, allow_none=True).tag(sync=True)
    selected = traitlets.List(traitlets.Unicode()).tag(sync=True)
    inserted = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    traces = traitlets.Bool().tag(sync=True)
    picture = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        tree: SchemaTree,
        lineage: Callable[[str], tuple[Sequence[Mapping[str, object]], Sequence[str]]] | None = None,
    ) -> None:
        self.tree = tree
        self._lineage = lineage
        self._places: list[tuple[str, str, Any]] = [
            (schema.name, name, entry)
            for schema in tree.schemas
            for name, entry in (
                *((node.table.name, node) for node in schema.tables),
                *((view.name, view) for view in schema.views),
                *((macro.name, macro) for macro in schema.macros),
            )
        ]
        self._texts: list[str] | None = None
        tables = [entry for _, _, entry in self._places if isinstance(entry, TableNode)]
        facts = [f"snapshot {tree.snapshot_id}"] if tree.snapshot_id is not None else []
        facts += [counted(len(tree.schemas), "schema"), counted(len(tables), "table")]
        facts += [counted(sum(node.rows or 0 for node in tables), "row"), size(sum(node.bytes or 0 for node in tables))]
        super().__init__(nodes=self._nodes(), title=tree.lake, note=" · ".join(facts), traces=lineage is not None)
        self.observe(self._search, ["query"])

    def _nodes(self) -> list[object]:
        """Returns per schema its display name, entries [index, name, kind, facts, comment], name and depth."""
        by_schema: dict[str, list[object]] = {schema.name: [] for schema in self.tree.schemas}
        for index, (schema, name, entry) in enumerate(self._places):
            if isinstance(entry, TableNode):
                kind, facts, comment = "table", _facts(entry), entry.table.comment
            elif hasattr(entry, "implementations"):
                kind, facts, comment = f"{entry.kind} macro", "", None
            else:
                kind, facts, comment = "view", "", entry.comment
            by_schema[schema].append(
                [index, visible(clip(name, _NAME)), kind, facts, visible(clip(comment or "", 200))]
            )
        parts = {name: path_parts(name) for name in by_schema}
        return [
            [visible(clip(parts[name][-1], _NAME)), entries, name, len(parts[name]) - 1]
            for name, entries in by_schema.items()
        ]

    @traitlets.validate("selected")
    def _known(self, proposal: Any) -> list[str]:
        chosen: list[str] = list(proposal["value"])
        if not chosen:
            return chosen
        schema, name, _ = self._places[self._find(chosen)]
        return [schema, name]

    def _find(self, chosen: list[str]) -> int:
        for called in (lambda schema: schema, path_title):
            for index, (schema, name, _) in enumerate(self._places):
                if [called(schema), name] == chosen:
                    return index
        names = [f"{path_title(schema)}.{name}" for schema, name, _ in self._places]
        wanted = ".".join(chosen)
        raise EntryNotFoundError(f"There is no {wanted} in this lake.{did_you_mean(wanted, names)}")

    def _search(self, _change: object) -> None:
        words = self.query.casefold().split()
        if not words:
            self.matches = None
            return
        if self._texts is None:
            self._texts = [self._text(schema, name, entry) for schema, name, entry in self._places]
        self.matches = [at for at, text in enumerate(self._texts) if all(word in text for word in words)]

    def _text(self, schema: str, name: str, entry: Any) -> str:
        """Returns the searchable text of an entry."""
        parts = [path_title(schema), name]
        if isinstance(entry, TableNode):
            parts.append(entry.table.comment or "")
            parts += [text for column in entry.table.all_columns() for text in (column.name, column.comment or "")]
        elif not hasattr(entry, "implementations"):
            parts.append(entry.comment or "")
            parts += [text for pair in self.tree.view_comments.get(entry.view_id, {}).items() for text in pair]
        return "\n".join(parts).casefold()

    def answer_columns(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the rows below an entry: [depth, name, type, facts, comment] each."""
        entry = self._places[int(content["index"])][2]
        if isinstance(entry, TableNode):
            keys = {field.column_id for field in entry.table.partition.fields} if entry.table.partition else set()
            return {"rows": [row for column in entry.table.columns for row in _rows(column, 0, keys)]}
        if hasattr(entry, "implementations"):
            return {"rows": [[0, visible(text), "", "", ""] for text in schema_view.macro_signatures(entry)]}
        comments = self.tree.view_comments.get(entry.view_id, {})
        return {
            "rows": [
                *([0, visible(clip(name, _NAME)), "", "", visible(clip(text, 200))] for name, text in comments.items()),
                [0, visible(clip(schema_view.view_sql(entry), 2000)), "", "", ""],
            ]
        }

    def answer_choose(self, content: dict[str, Any]) -> dict[str, Any]:
        """Selects an entry, and returns a query on it."""
        schema, name, entry = self._places[int(content["index"])]
        self.selected = [schema, name]
        path = ".".join(map(quoted_if_needed, (self.tree.lake, *path_parts(schema), name)))
        if isinstance(entry, TableNode):
            columns = ", ".join(quoted_if_needed(column.name) for column in entry.table.columns[:30])
            chosen = columns if len(entry.table.columns) <= 30 and columns else "*"
            sql = f"SELECT {chosen}\nFROM {path}\nLIMIT 100"
        elif getattr(entry, "kind", "") == "scalar":
            sql = f"SELECT {path}()"
        else:
            sql = f"FROM {path}{'()' if getattr(entry, 'kind', '') == 'table' else ''}\nLIMIT 100"
        if content.get("insert"):
            self.inserted = sql
        return {"sql": f"%%ducklake\n{sql}"}

    def answer_lineage(self, content: dict[str, Any]) -> None:
        """Draws the lineage of a table or view."""
        schema, name, entry = self._places[int(content["index"])]
        if self._lineage is None or hasattr(entry, "implementations"):
            raise UsageError(f"{name} has no lineage here; choose a table or a view.")
        rows, remarks = self._lineage(quoted_path(self.tree.lake, schema, name))
        columns = [column.name for column in entry.table.columns] if isinstance(entry, TableNode) else []
        title = f"{path_title(schema)}.{name}"
        self.selected = [schema, name]
        self.picture = view(
            f"<h4>Lineage of {escape(clip(title, _NAME))}</h4>{lineage_view.drawn(title, columns, rows, remarks)}",
            style=lineage_view.STYLE,
            label=f"Lineage of {clip(title, _NAME)}",
        )

    def answer_still(self, _content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static form, for the saved output."""
        return {"html": self._repr_html_()}

    def still(self) -> str:
        return schema_view.render(self.tree) + self.picture

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tree.schemas)

    def __repr__(self) -> str:
        return repr(self.tree)


def _facts(node: TableNode) -> str:
    facts = [counted(node.rows or 0, "row"), size(node.bytes or 0), counted(len(node.table.columns), "column")]
    keys = schema_view.partition_keys(node.table)
    if keys:
        facts.append("by " + ", ".join(keys))
    order = schema_view.sort_keys(node.table)
    if order:
        facts.append("sorted by " + ", ".join(order))
    return visible(clip(" · ".join(facts), 300))


def _rows(column: Column, depth: int, keys: set[int]) -> Iterator[list[Any]]:
    default = column.default_value if column.default_value not in (None, "NULL") else None
    facts = ["partition key"] if column.column_id in keys else []
    facts += [] if column.nulls_allowed else ["not null"]
    facts += [f"default {clip(str(default), 60)}"] if default is not None else []
    yield [
        depth,
        visible(clip(column.name, _NAME)),
        visible(clip(column.data_type.sql().lower(), 120)),
        visible(" · ".join(facts)),
        visible(clip(column.comment or "", 200)),
    ]
    for child in column.children:
        yield from _rows(child, depth + 1, keys)
