"""A resolver over a few tables, for tests of planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ducklake_lab.errors import EntryNotFoundError, did_you_mean
from ducklake_lab.model.entries import Column, MacroImplementation, MacroParameter
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import QueryPlan, parse, plan_delete, plan_insert, plan_query, plan_update
from ducklake_lab.sql.operations import At, Delete, Insert, Query, TableName, Update
from ducklake_lab.sql.plan import InputRows, NamedRows, Resolver, StoredMacro, StoredView

INTEGER, VARCHAR, DOUBLE = DataType("int32"), DataType("varchar"), DataType("float64")
SPOT = DataType("struct", (("x", INTEGER), ("deep", DataType("struct", (("y", VARCHAR),)))))

TABLES: dict[str, list[tuple[str, DataType]]] = {
    "flights": [
        ("month", INTEGER),
        ("carrier", VARCHAR),
        ("dep_delay", DOUBLE),
        ("tailnum", VARCHAR),
        ("flown", DataType("date")),
        ("dep", DataType("timestamp")),
        ("fare", DataType("decimal(10,2)")),
        ("spot", SPOT),
        ("late", DataType("boolean")),
        ("zoned", DataType("timestamptz")),
        ("stops", DataType("list", (("element", INTEGER),))),
    ],
    "planes": [("tailnum", VARCHAR), ("year", INTEGER)],
    "airlines": [("carrier", VARCHAR), ("name", VARCHAR)],
}


VIEWS = {
    "late_flights": StoredView("late_flights", "SELECT * FROM flights WHERE late", (), "lake", "main"),
    "names": StoredView("names", "SELECT carrier, name AS x FROM airlines", ("code",), "lake", "main"),
    "endless": StoredView("endless", "SELECT * FROM endless", (), "lake", "main"),
    "broken": StoredView("broken", "SELECT nothing FROM planes", (), "lake", "main"),
}
_PARAMETERS = (MacroParameter("a"), MacroParameter("b", "unknown", "5", "int32"))
MACROS = {
    ("scalar", "plus"): StoredMacro("plus", (MacroImplementation("(a + b)", _PARAMETERS),), "lake", "main"),
    ("scalar", "typed"): StoredMacro(
        "typed", (MacroImplementation("a", (MacroParameter("a", "int64"),)),), "lake", "main"
    ),
    ("scalar", "oldest"): StoredMacro(
        "oldest", (MacroImplementation("(SELECT (min(year) + x) FROM planes)", (MacroParameter("x"),)),), "lake", "main"
    ),
    ("table", "of_month"): StoredMacro(
        "of_month",
        (MacroImplementation("SELECT * FROM flights WHERE (month = m)", (MacroParameter("m"),)),),
        "lake",
        "main",
    ),
}


class Lakes(Resolver):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.tables: list[tuple[TableName, At | None]] = []
        self.functions: list[tuple[TableName, tuple[object, ...], dict[str, object]]] = []
        self.own_macros = dict(MACROS)

    def table(self, name: TableName, at: At | None) -> NamedRows:
        self.tables.append((name, at))
        if name.name.lower() not in TABLES:
            raise EntryNotFoundError(f'There is no table "{name}".{did_you_mean(name.name, TABLES)}')
        return InputRows(TABLES[name.name.lower()], (name.schema or "main", name.catalog or "lake"))

    def function(
        self, name: TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        if name.name in ("snapshots", "ducklake_list_files", "table_changes"):
            self.functions.append((name, tuple(args), dict(kwargs)))
            return [("snapshot_id", DataType("int64")), ("note", VARCHAR)]
        return None

    def view(self, name: TableName, at: At | None) -> StoredView | None:
        return VIEWS.get(name.name.lower())

    def macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        return self.macros(None).get((kind, name.name.lower())) if name.schema in ("main", "lake") else None

    def macros(self, lake_schema: tuple[str, str] | None) -> Mapping[tuple[str, str], StoredMacro]:
        return self.own_macros

    def owns(self, name: TableName) -> bool:
        return name.catalog == "memory" or name.schema in ("memory", "temp")

    def settings(self) -> tuple[tuple[str, str], ...]:
        return (("TimeZone", "UTC"),)

    def describe(self, query: str) -> Sequence[tuple[str, DataType | None]] | None:
        return [("k", INTEGER)] if "memory" in query or "temp" in query else None


def columns(table: str = "planes", **defaults: tuple[str, str]) -> list[Column]:
    """A table's columns; a default is (text, literal or expression)."""
    result = []
    for number, (name, kind) in enumerate(TABLES[table]):
        extra = {}
        if name in defaults:
            extra = dict(zip(("default_value", "default_value_type"), defaults[name], strict=True))
        result.append(Column.build(name, kind, number * 10 + 1, **extra))
    return result


def plan(text: str, params: Mapping[str, object] | None = None, lakes: Lakes | None = None) -> QueryPlan:
    """The plan of one query, INSERT, UPDATE or DELETE, that Spark can run; writes go to `planes`."""
    found = any_plan(text, params, lakes)
    found.for_spark()
    return found


def any_plan(text: str, params: Mapping[str, object] | None = None, lakes: Lakes | None = None) -> QueryPlan:
    """Plan a statement, though DuckDB alone may be able to run it."""
    operation = parse(text, params)[0].operation
    lakes = lakes or Lakes()
    if isinstance(operation, Query):
        return plan_query(operation, lakes)
    if isinstance(operation, Insert):
        return plan_insert(operation, columns(year=("1999", "literal")), lakes)
    if isinstance(operation, Update):
        return plan_update(operation, columns(year=("1 + 2", "expression")), lakes)
    assert isinstance(operation, Delete)
    return plan_delete(operation, lakes)
