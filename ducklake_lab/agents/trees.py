"""Checks queries by the trees of DuckDB's parser: each node, function and table is one that is known to be harmless."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ducklake_lab.agents.functions import FUNCTIONS, LAKE_FUNCTIONS, TABLE_FUNCTIONS
from ducklake_lab.agents.words import plain_text, read_words, refused
from ducklake_lab.duckdb.syntax import tree_of
from ducklake_lab.model.entries import Macro, Table, View
from ducklake_lab.model.state import CatalogState
from ducklake_lab.sql.parse.references import find_references
from ducklake_lab.sql.parse.tokens import split

#: Views and macros that name each other, at most.
_DEEPEST = 8
#: Names of tables, views, schemas and queries in WITH: no path, no URL, no pattern of files.
_NAME = re.compile(r"[^\W\d](?:[\w $-]*[\w$])?")
_CLASSES = frozenset(
    "CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION LAMBDA OPERATOR STAR SUBQUERY WINDOW BETWEEN "
    "POSITIONAL_REFERENCE DEFAULT LAMBDA_REF".split()
)
_NODES = frozenset("SELECT_NODE SET_OPERATION_NODE RECURSIVE_CTE_NODE".split())
_TABLES = frozenset("BASE_TABLE SUBQUERY JOIN TABLE_FUNCTION EXPRESSION_LIST EMPTY EMPTY_FROM PIVOT SHOW_REF".split())
_MODIFIERS = frozenset("ORDER_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER DISTINCT_MODIFIER".split())
_ORDERS = frozenset("ORDER_DEFAULT ASCENDING DESCENDING".split())
_KNOWN = _NODES | _TABLES | _MODIFIERS | _ORDERS
#: Databases and schemas that are no part of a lake, even where a lake has a schema of that name.
_RESERVED = re.compile(r"__ducklake|(?:system|temp|memory|pg_catalog|information_schema)\Z", re.IGNORECASE)
_VIEW_CATALOG = "{DUCKLAKE_CATALOG}."

Scope = frozenset[str]


def is_plain_name(name: str) -> bool:
    """Return whether a name is that of an entry for certain, and no path of a file."""
    return len(name) <= 200 and _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Known:
    """The lake whose entries a statement may name.

    Attributes:
        alias: the lake's name in SQL.
        state: its entries.
        schema: the schema of unqualified names.
        depth: the number of views and macros around the text.
        state_at: returns the entries at a snapshot, for AT (VERSION => …); None refuses it.
        checked: ids of the views and macros that passed.
        is_branch: the entries are those of a branch, whose folders are all in its own.
    """

    alias: str
    state: CatalogState
    schema: str = "main"
    depth: int = 0
    state_at: Callable[[int], CatalogState] | None = None
    checked: set[tuple[str, int]] = field(default_factory=set, compare=False)
    is_branch: bool = False

    def places(self, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield each (schema, name) that a name of one to three parts may mean in this lake."""
        if len(parts) == 3:
            if parts[0].casefold() == self.alias.casefold():
                yield parts[1], parts[2]
        elif len(parts) == 2:
            yield parts[0], parts[1]
            if parts[0].casefold() == self.alias.casefold():
                yield "main", parts[1]
                yield self.schema, parts[1]
        else:
            yield self.schema, parts[0]
            yield "main", parts[0]

    def entries(self, parts: Sequence[str]) -> list[Table | View]:
        """Return the tables and views that a name may mean; empty if none."""
        if not all(map(is_plain_name, parts)) or any(_RESERVED.match(part) for part in parts[:-1]):
            return []
        named: list[Table | View] = []
        for schema, name in self.places(parts):
            if self.state.find_schema(schema) is not None:
                entries = (self.state.find_table(schema, name), self.state.find_view(schema, name))
                named += [one for one in entries if one is not None]
        return named

    def macros(self, parts: Sequence[str]) -> list[Macro]:
        """Return the macros of the lake that a call may mean; for a plain name those of any schema."""
        if len(parts) > 1:
            wanted = {(s.casefold(), n.casefold()) for s, n in self.places(parts)}
        else:
            wanted = {(s.name.casefold(), parts[0].casefold()) for s in self.state.schemas.values()}
        return [
            macro
            for macro in self.state.macros.values()
            if (self.state.schema_of(macro).name.casefold(), macro.name.casefold()) in wanted
        ]

    def inside(self, schema: str) -> Known:
        if self.depth >= _DEEPEST:
            raise refused(f"views and macros name each other more than {_DEEPEST} deep")
        return replace(self, schema=schema, depth=self.depth + 1)

    def at(self, clause: Any) -> Known:
        """Return the lake at the snapshot of an AT clause, which must be a literal id: views differ between snapshots."""
        expression = clause.get("expr", {}) if isinstance(clause, dict) else {}
        version = expression.get("value", {}).get("value") if expression.get("class") == "CONSTANT" else None
        if self.state_at is None or str(clause.get("unit", "")).upper() != "VERSION" or type(version) is not int:
            raise refused("AT takes the id of a snapshot: AT (VERSION => 3)")
        return replace(self, state=self.state_at(version), checked=set())


def check_query(text: str, known: Known) -> None:
    """Check one query, with the views and macros that it names.

    Raises:
        UsageError: it does not pass.
    """
    trees = _trees(text)
    if len(trees) != 1:
        raise refused("one statement at a time")
    checker = _Checker(known)
    checker.node(trees[0].get("node"), frozenset())
    if any(set(tree) - {"node", "named_param_map"} for tree in trees) or trees[0].get("named_param_map"):
        raise refused("parameters are not allowed")
    check_references(text, known, checker.tables)


def check_expression(text: str, known: Known) -> None:
    """Check a list of expressions, such as that of UPDATE … SET."""
    trees = _trees(f"SELECT {text}")
    node = trees[0].get("node", {}) if len(trees) == 1 else {}
    if node.get("from_table", {}).get("type") not in ("EMPTY", "EMPTY_FROM") or node.get("type") != "SELECT_NODE":
        raise refused("an expression is expected, and no query")
    check_query(f"SELECT {text}", known)


def check_references(text: str, known: Known, tables: set[tuple[str, ...]] | None = None) -> None:
    """Check that the tables which our planner finds in a text are entries of the lake.

    Args:
        tables: those that DuckDB's parser found, which must be the same.
    """
    references = {
        _folded(one.name.schema is not None, (one.name.catalog, one.name.schema, one.name.name))
        for one in find_references(text, split(text)[0])
        if one.arguments is None
    }
    for parts in references:
        _check_entry(parts, known)
    if tables is not None and references != tables:
        raise refused("it is not certain which tables it names; name each by its name alone, and queries otherwise")


def _folded(_: bool, parts: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in parts if part)


def _trees(text: str) -> list[Any]:
    try:
        trees = tree_of(text)
    except RecursionError:
        raise refused("it is nested too deeply") from None
    if not trees:
        raise refused("DuckDB does not read it as a query, which is what is allowed here")
    return trees


def _check_entry(parts: Sequence[str], known: Known) -> None:
    entries = known.entries(parts)
    if not entries:
        shown = ".".join(parts)[:80]
        raise refused(f"{shown!r} is no table or view of the lake; files and other databases are out of reach")
    for entry in entries:
        if isinstance(entry, View):
            _check_view(entry, known)


def _check_view(view: View, known: Known) -> None:
    if view.dialect.casefold() != "duckdb":
        raise refused(f"the view {view.name!r} is in another dialect")
    if ("view", view.view_id) not in known.checked:
        check_query(_stored(view.sql, known), known.inside(known.state.schema_of(view).name))
        known.checked.add(("view", view.view_id))


def _stored(sql: str, known: Known) -> str:
    """Return the query of a view, or the body of a macro, with the lake's alias."""
    text = plain_text(sql.replace(_VIEW_CATALOG, f'"{known.alias}".'))
    read_words(text)
    return text


def _check_macros(macros: Sequence[Macro], known: Known) -> None:
    for macro in macros:
        if ("macro", macro.macro_id) in known.checked:
            continue
        inside = known.inside(known.state.schema_of(macro).name)
        for one in macro.implementations:
            if one.dialect.casefold() != "duckdb":
                raise refused(f"the macro {macro.name!r} is in another dialect")
            text = _stored(one.sql, known)
            check_query(text if macro.kind == "table" else f"SELECT ({text})", inside)
            if any(parameter.is_optional for parameter in one.parameters):
                raise refused(f"the macro {macro.name!r} has parameters with defaults")
        known.checked.add(("macro", macro.macro_id))


class _Checker:
    """Walks the tree of one query.

    Attributes:
        tables: the names of tables that no WITH defines, folded.
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        self.tables: set[tuple[str, ...]] = set()

    def node(self, node: Any, scope: Scope) -> None:
        """Check a query; names of WITH count from the query after their own."""
        if not isinstance(node, dict) or node.get("type") not in _NODES:
            raise refused("it holds a query of an unknown kind")
        inner = scope
        for entry in node.get("cte_map", {}).get("map", ()):
            name = str(entry["key"])
            if not is_plain_name(name) or name.casefold() in inner:
                raise refused(f"a query in WITH needs a name of its own, other than {name[:80]!r}")
            if self.known.entries([name]):
                raise refused(f"the query {name!r} in WITH has the name of a table; give it another one")
            value = entry["value"]
            if set(value) - {"query", "materialized", "aliases", "key_targets"}:
                raise refused("its WITH is not understood")
            query = value["query"]["node"]
            is_recursive = query.get("type") == "RECURSIVE_CTE_NODE"
            self.node(query, inner | {name.casefold()} if is_recursive else inner)
            for key in value.get("key_targets", ()):
                self.walk(key, inner)
            inner = inner | {name.casefold()}
        for key, value in node.items():
            if key in ("left", "right"):
                self.node(value, inner)
            elif key != "cte_map":
                self.walk(value, inner)

    def walk(self, value: Any, scope: Scope) -> None:
        """Check a part of a tree, whatever it is."""
        if isinstance(value, list):
            for one in value:
                self.walk(one, scope)
            return
        if not isinstance(value, dict):
            return
        kind, type_ = value.get("class"), value.get("type")
        type_ = None if isinstance(type_, dict) else type_  # that of a constant
        if kind is not None:
            self.expression(value, scope)
        elif type_ in _NODES:
            self.node(value, scope)
            return
        elif type_ in _TABLES:
            self.table(value, scope)
        elif type_ is not None and type_ not in _KNOWN and not str(type_).endswith("_TYPE_INFO"):
            raise refused(f"it holds a part that is not understood ({str(type_)[:40]})")
        if kind == "CONSTANT":
            return
        for key, part in value.items():
            if not (type_ == "TABLE_FUNCTION" and key == "function" and kind is None):
                self.walk(part, scope)

    def expression(self, value: dict[str, Any], scope: Scope) -> None:
        kind = value["class"]
        if kind not in _CLASSES:
            raise refused(f"it holds an expression that is not allowed here ({str(kind)[:40].lower()})")
        if kind in ("FUNCTION", "WINDOW"):
            self.call(value)

    def call(self, value: dict[str, Any]) -> None:
        """Check a call of a scalar function, aggregate or window function."""
        name = str(value.get("function_name", "")).casefold()
        qualifiers = [str(part) for part in (value.get("catalog"), value.get("schema")) if part]
        macros = [m for m in self.known.macros([*qualifiers, name]) if m.kind == "scalar"]
        _check_macros(macros, self.known)
        is_own = name in FUNCTIONS and qualifiers in ([], ["main"])
        if not macros and not is_own:
            shown = ".".join([*qualifiers, name])[:80]
            raise refused(f"the function {shown!r} is not among those that are allowed")

    def table(self, value: dict[str, Any], scope: Scope) -> None:
        match value["type"]:
            case "BASE_TABLE":
                parts = [str(value.get(key, "")) for key in ("catalog_name", "schema_name", "table_name")]
                named = [part for part in parts if part]
                if len(named) == 1 and named[0].casefold() in scope and not value.get("at_clause"):
                    return
                if (clause := value.get("at_clause")) is not None:
                    entries = self.known.at(clause).entries(named)
                    if not entries or not all(isinstance(entry, Table) for entry in entries):
                        raise refused(f"{'.'.join(named)[:80]!r} was no table at that snapshot")
                _check_entry(named, self.known)
                self.tables.add(tuple(part.casefold() for part in named))
            case "TABLE_FUNCTION":
                self.table_function(value.get("function"), scope)
            case "SHOW_REF":
                if value.get("show_type") not in ("DESCRIBE", "SUMMARY") or "query" not in value:
                    raise refused("it shows something other than a table or a query")
                if set(value) - {"type", "query_location", "query", "show_type", "alias"}:
                    raise refused("it shows something that is not understood")

    def table_function(self, function: Any, scope: Scope) -> None:
        """Check a call in FROM."""
        if not isinstance(function, dict) or function.get("class") != "FUNCTION":
            raise refused("it holds a table function that is not understood")
        name = str(function.get("function_name", "")).casefold()
        qualifiers = [str(part) for part in (function.get("catalog"), function.get("schema")) if part]
        macros = [m for m in self.known.macros([*qualifiers, name]) if m.kind == "table"]
        _check_macros(macros, self.known)
        of_lake = [part.casefold() for part in qualifiers] in (
            [self.known.alias.casefold()],
            [self.known.alias.casefold(), "main"],
        )
        is_own = not qualifiers and name in TABLE_FUNCTIONS
        if of_lake and name in LAKE_FUNCTIONS:
            self.lake_arguments(function.get("children", ()))
        elif not (macros or is_own):
            shown = ".".join([*qualifiers, name])[:80]
            raise refused(f"the table function {shown!r} is not among those that are allowed")
        for key, part in function.items():
            if key not in ("class", "type"):
                self.walk(part, scope)

    def lake_arguments(self, arguments: Sequence[Any]) -> None:
        """Check that the arguments of a lake's function are constants, and the first one names a table."""
        for index, one in enumerate(arguments):
            if not isinstance(one, dict) or one.get("class") != "CONSTANT":
                raise refused("functions of the lake take literals")
            text = one.get("value", {}).get("value")
            if index == 0 and not (isinstance(text, str) and self.known.entries([text])):
                raise refused("the first argument of the lake's functions is the name of a table")
