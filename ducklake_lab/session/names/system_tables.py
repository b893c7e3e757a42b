"""DuckDB's system listings, extended by the entries of lakes: duckdb_tables(), information_schema, SHOW TABLES."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.metadata import metadata_columns
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import ExpansionError
from ducklake_lab.model.entries import Column, Schema, Table, View
from ducklake_lab.model.quoting import quote_identifier, quote_text, quoted_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.counts import table_counts
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.stored_definitions import resolved
from ducklake_lab.sql.plan import MOST_EXPANSIONS
from ducklake_lab.sql.types import type_or_none

#: (query, lake and schema that resolve its names first or None, limit of nested view expansions)
#: -> columns of the query; empty if it cannot be bound.
QueryColumns = Callable[[str, tuple[str, str] | None, int], list[tuple[str, DataType]]]

#: Comments of view columns, by view id and column.
ViewComments = Mapping[int, Mapping[str, str]]

#: Distance between the first ids of two lakes in listings; the first lake's ids start here.
_OIDS = 1_000_000
#: A view's limit of nested expansions if other views of the lake have used up the common limit.
_FEWEST_EXPANSIONS = 16
#: Text columns that DuckDB 2.0 added to listings, by function.
_LATER = {"duckdb_schemas": "parent_schema"}
#: DuckDB's type ids.
_TYPE_IDS = {
    "boolean": 10, "int8": 11, "int16": 12, "int32": 13, "int64": 14, "date": 15, "time": 16, "timestamp_s": 17,
    "timestamp_ms": 18, "timestamp": 19, "timestamp_ns": 20, "float32": 22, "float64": 23, "varchar": 25, "blob": 26,
    "interval": 27, "uint8": 28, "uint16": 29, "uint32": 30, "uint64": 31, "timestamptz": 32, "timetz": 34,
    "uint128": 49, "int128": 50, "uuid": 54, "struct": 100, "list": 101, "map": 102, "json": 25,
}  # fmt: skip
_BITS = {
    "int8": 8, "int16": 16, "int32": 32, "int64": 64, "int128": 128, "uint8": 8, "uint16": 16, "uint32": 32,
    "uint64": 64, "uint128": 128, "float32": 24, "float64": 53,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view.

    Attributes:
        stored: its name in the view's query, under which the lake stores its comment; "" if unknown.
        comment: its comment, or None.
    """

    name: str
    data_type: DataType
    stored: str
    comment: str | None


class SystemTables:
    """The functions and system views that list entries, extended by those of the attached lakes."""

    def __init__(self, lakes: Lakes, database: SessionDatabase, query_columns: QueryColumns) -> None:
        self._lakes = lakes
        self._database = database
        self._query_columns = query_columns
        self._functions: dict[str, Callable[[Lake, int, CatalogState], Iterator[dict[str, object]]]] = {
            "duckdb_databases": self._databases,
            "duckdb_schemas": self._schemas,
            "duckdb_tables": self._tables,
            "duckdb_views": self._views,
            "duckdb_columns": self._columns,
            "duckdb_functions": self._macros,
            "pragma_database_size": self._sizes,
        }
        self._bodies: dict[tuple[str, str], str | None] = {}
        self._shapes: dict[str, tuple[tuple[str, DataType], ...]] = {}
        self._allowed = MOST_EXPANSIONS
        # by lake: its views, and by view id the expansion limit at which a view with too many expansions failed
        self._endless: dict[str, tuple[Mapping[int, View], dict[int, int]]] = {}
        # while the listings of one statement are made: columns by query, and by what resolves its names first
        self._known: dict[tuple[str, tuple[str, str] | None], list[tuple[str, DataType]]] | None = None

    @contextmanager
    def one_statement(self) -> Iterator[None]:
        """Describe each view once while the block runs, for all listings of a statement."""
        outer, self._known = self._known, {}
        try:
            yield
        finally:
            self._known = outer

    def is_function(self, name: str) -> bool:
        """Returns whether a function's listing includes entries of lakes."""
        return name.casefold() in self._functions

    def columns(self, name: str) -> tuple[tuple[str, DataType], ...]:
        """Returns the columns of a function's result."""
        folded = name.casefold()
        if folded not in self._shapes:
            described = self._database.describe(f"FROM {folded}()")
            shape = tuple((name, type_or_none(kind) or DataType("varchar")) for name, kind in described)
            new = _LATER.get(folded)
            lacks = new is not None and new not in (name for name, _ in shape)
            self._shapes[folded] = (*shape, (new, DataType("varchar"))) if lacks and new is not None else shape
        return self._shapes[folded]

    def rows(self, name: str) -> pa.Table:
        """Returns the rows of a listing function."""
        self._allowed = MOST_EXPANSIONS
        folded = name.casefold()
        lakes = ", ".join(quote_text(lake.alias) for lake in self._lakes)
        hidden = f"WHERE database_name NOT IN ({lakes})" if lakes else ""
        own = self._database.run(f"FROM {folded}() {hidden}").table
        new = _LATER.get(folded)
        if new is not None and new not in own.column_names:
            own = own.append_column(new, pa.nulls(own.num_rows, pa.string()))
        entries = [
            {"internal": False, "temporary": False, "tags": [], "options": [], **row}
            for number, lake in enumerate(self._lakes, 1)
            for row in self._functions[folded](lake, number * _OIDS, self._lakes.state(lake))
        ]
        return pa.concat_tables([own, pa.Table.from_pylist(entries, own.schema)]) if entries else own

    def schema_oid(self, lake: Lake, schema: str) -> int:
        """Returns the id of a schema in listings."""
        number = next(number for number, other in enumerate(self._lakes, 1) if other is lake)
        return number * _OIDS + self._lakes.state(lake).schema(schema).schema_id

    def view_query(self, schema: str | None, name: str) -> str | None:
        """Returns the query of a system view that lists entries, e.g. information_schema.tables; else None."""
        key = ((schema or "main").casefold(), name.casefold())
        if key not in self._bodies:
            listed = self._database.run(
                "SELECT sql FROM duckdb_views() WHERE internal AND lower(schema_name) = "
                f"{quote_text(key[0])} AND lower(view_name) = {quote_text(key[1])}"
            ).table
            text = listed.column(0)[0].as_py() if listed.num_rows else None
            lists = text is not None and any(function in text for function in self._functions)
            self._bodies[key] = text.partition(" AS ")[2].rstrip("; \n") if lists and text is not None else None
        return self._bodies[key]

    # Entries of one lake; ids count from `base`

    def _databases(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        yield {
            "database_name": lake.alias,
            "database_oid": base,
            "path": str(lake.location.path or lake.location.display),
            "type": "ducklake",
            "readonly": lake.read_only,
            "encrypted": False,
            "tags": [("data_path", lake.data_path)],
        }
        if lake.metadata_is_listed:
            yield {
                "database_name": lake.metadata_name,
                "database_oid": base + _OIDS // 2,
                "path": str(lake.location.path or lake.location.display),
                "type": lake.location.type,
                "readonly": lake.read_only,
                "encrypted": False,
            }

    def _sizes(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        with lake.connect() as connection:
            counts = table_counts(lake, connection, state.snapshot.snapshot_id)
        size = sum(count.bytes for count in counts.values())
        shown = self._database.run(f"SELECT format_bytes({size}) AS size").table.column("size")[0].as_py()
        yield {"database_name": lake.alias, "database_size": shown}

    def _schemas(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        for schema in state.schemas.values():
            yield {
                "oid": base + schema.schema_id,
                "parent_schema": schema.parts[-2] if schema.parent_id is not None else None,
                "parent_schema_oid": base + schema.parent_id if schema.parent_id is not None else None,
                **_place(lake, base, schema.schema_id, schema.parts[-1]),
            }

    def _tables(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        with lake.connect() as connection:
            counts = table_counts(lake, connection, state.snapshot.snapshot_id)
        for table in state.tables.values():
            schema = state.schema_of(table)
            count = counts.get(table.table_id)
            yield {
                **_place(lake, base, schema.schema_id, schema.parts[-1]),
                "table_name": table.name,
                "table_oid": base + table.table_id,
                "comment": table.comment,
                "has_primary_key": False,
                "estimated_size": count.rows if count is not None else 0,
                "column_count": len(table.columns),
                "index_count": 0,
                "check_constraint_count": 0,
                "sql": create_table_sql(table),
            }
        if lake.metadata_is_listed:
            yield from _metadata_tables(lake, base + _OIDS // 2)

    def _views(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        for view in state.views.values():
            schema = state.schema_of(view)
            yield {
                **_place(lake, base, schema.schema_id, schema.parts[-1]),
                "view_name": view.name,
                "view_oid": base + view.view_id,
                "comment": view.comment,
                "column_count": len(self._shown_columns(lake, schema, view)),
                "sql": f"CREATE VIEW {_name(view.name)}{_names(view.column_names)} AS {resolved(view.sql, lake.alias)};",
                "is_bound": True,
            }

    def _columns(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        for table in state.tables.values():
            schema = state.schema_of(table)
            for index, column in enumerate(table.columns, 1):
                yield {
                    **_place(lake, base, schema.schema_id, schema.parts[-1]),
                    "table_name": table.name,
                    "table_oid": base + table.table_id,
                    "comment": column.comment,
                    "column_default": default_text(column),
                    "is_nullable": column.nulls_allowed,
                    **_shape(index, column.name, column.data_type),
                }
        for view in state.views.values():
            schema = state.schema_of(view)
            for index, shown in enumerate(self.view_columns(lake, schema, view), 1):
                yield {
                    **_place(lake, base, schema.schema_id, schema.parts[-1]),
                    "table_name": view.name,
                    "table_oid": base + view.view_id,
                    "comment": shown.comment,
                    "is_nullable": True,
                    **_shape(index, shown.name, shown.data_type),
                }

    def _macros(self, lake: Lake, base: int, state: CatalogState) -> Iterator[dict[str, object]]:
        for macro in state.macros.values():
            schema = state.schema_of(macro)
            for overload in macro.implementations:
                types = [parameter.type for parameter in overload.parameters]
                yield {
                    **_place(lake, base, schema.schema_id, schema.parts[-1]),
                    "database_oid": str(base),
                    "function_name": macro.name,
                    "function_oid": base + macro.macro_id,
                    "function_type": "macro" if macro.kind == "scalar" else "table_macro",
                    "parameters": [parameter.name for parameter in overload.parameters],
                    "parameter_types": [None if kind == "unknown" else DataType(kind).sql() for kind in types],
                    "macro_definition": resolved(overload.sql, lake.alias),
                    "examples": [],
                    "categories": [],
                }

    def view_comments(self, lake: Lake, state: CatalogState) -> ViewComments:
        """Returns the comments of view columns, by view id and column name in the view.

        If a view's query cannot be bound, the names are those in the query.
        """
        self._allowed = MOST_EXPANSIONS
        comments = {}
        for view in state.views.values():
            own = view.column_comments
            if view.column_aliases and own:
                columns = self.view_columns(lake, state.schema_of(view), view)
                own = {column.name: column.comment for column in columns} or own
            comments[view.view_id] = {name: text for name, text in own.items() if text}
        return comments

    def _shown_columns(self, lake: Lake, schema: Schema, view: View) -> list[tuple[str, DataType]]:
        return self._columns_of(lake, view, f"FROM {quoted_path(lake.alias, schema.name, view.name)}")

    def _columns_of(
        self, lake: Lake, view: View, query: str, lake_schema: tuple[str, str] | None = None
    ) -> list[tuple[str, DataType]]:
        """Returns the columns of a view's query; none if the view expands to too many views.

        Each such view halves the limit for the others in one listing. It is not tried again while the lake's views
        are the same.
        """
        if self._known is not None and (query, lake_schema) in self._known:
            return self._known[query, lake_schema]
        views = self._lakes.state(lake).views
        if lake.alias not in self._endless or self._endless[lake.alias][0] is not views:
            self._endless[lake.alias] = (views, {})
        tried = self._endless[lake.alias][1]
        if self._allowed <= tried.get(view.view_id, 0):
            return []
        try:
            columns = self._query_columns(query, lake_schema, self._allowed)
        except ExpansionError:
            tried[view.view_id] = self._allowed
            self._allowed = max(self._allowed // 2, _FEWEST_EXPANSIONS)
            return []
        if self._known is not None:
            self._known[query, lake_schema] = columns
        return columns

    def view_columns(self, lake: Lake, schema: Schema, view: View, *, stored: bool = False) -> list[ViewColumn]:
        """Returns the columns of a view; none if its query cannot be bound.

        Args:
            stored: look up the names in the view's query, even if no column has a comment.
        """
        shown = self._shown_columns(lake, schema, view)
        inner = [name for name, _ in shown]
        if view.column_aliases and (stored or view.column_comments):
            inner_columns = self._columns_of(lake, view, resolved(view.sql, lake.alias), (lake.alias, schema.name))
            inner = [name for name, _ in inner_columns] or [""] * len(shown)
        comments = {name.casefold(): text for name, text in view.column_comments.items()}
        return [
            ViewColumn(name, kind, own, comments.get(own.casefold()))
            for (name, kind), own in zip(shown, inner, strict=True)
        ]


def _metadata_tables(lake: Lake, base: int) -> Iterator[dict[str, object]]:
    with lake.connect() as connection:
        for number, name in enumerate(lake.database.tables_with_prefix(connection, ""), 1):
            columns = metadata_columns(lake.database, connection, name)
            yield {
                **_place(lake, base, 0, "main"),
                "database_name": lake.metadata_name,
                "table_name": name,
                "table_oid": base + number,
                "column_count": len(columns),
            }


def _place(lake: Lake, base: int, schema_id: int, schema: str) -> dict[str, object]:
    return {
        "database_name": lake.alias,
        "database_oid": base,
        "schema_name": schema,
        "schema_oid": base + schema_id,
    }


def _shape(index: int, name: str, kind: DataType) -> dict[str, object]:
    """Returns the type columns of duckdb_columns() for one column."""
    row: dict[str, object] = {
        "column_name": name,
        "column_index": index,
        "data_type": kind.sql(),
        "data_type_id": 21 if kind.decimal is not None else _TYPE_IDS.get(kind.name),
    }
    if kind.decimal is not None:
        row |= {"numeric_precision": kind.decimal[0], "numeric_precision_radix": 10, "numeric_scale": kind.decimal[1]}
    elif kind.name in _BITS:
        row |= {"numeric_precision": _BITS[kind.name], "numeric_precision_radix": 2, "numeric_scale": 0}
    return row


def default_text(column: Column) -> str | None:
    """Returns the default of a column as DuckDB lists it; None for nested columns without one."""
    value = column.default_value
    if value is None or value.upper() == "NULL":
        return None if column.data_type.is_nested else "NULL"
    if column.default_value_type == "expression":
        return value
    return quote_text(value)


def create_table_sql(table: Table, qualifier: str = "", name: Callable[[str], str] | None = None) -> str:
    """Returns CREATE TABLE as DuckDB writes it.

    Args:
        qualifier: the qualifier before the table's name.
        name: quotes a name; by default only if necessary.
    """
    name = name or _name
    return f"CREATE TABLE {qualifier}{name(table.name)}({declared_columns(table, name)});"


def declared_columns(table: Table, name: Callable[[str], str] = quote_identifier) -> str:
    """Returns the columns of a table as CREATE TABLE declares them."""
    return ", ".join(
        f"{name(column.name)} {column.data_type.sql()}"
        + (f" DEFAULT({default})" if (default := default_text(column)) is not None else "")
        + ("" if column.nulls_allowed else " NOT NULL")
        for column in table.columns
    )


@cache
def _reserved() -> frozenset[str]:
    """Returns DuckDB's reserved words."""
    words = evaluate("SELECT keyword_name AS k FROM duckdb_keywords() WHERE keyword_category = 'reserved'", {})
    return frozenset(words.column("k").to_pylist())


def _names(names: Sequence[str]) -> str:
    return f" ({', '.join(map(_name, names))})" if names else ""


def _name(name: str) -> str:
    plain = name.isidentifier() and name == name.lower() and name not in _reserved()
    return name if plain else quote_identifier(name)
