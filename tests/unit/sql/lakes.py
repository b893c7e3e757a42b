"""A resolver over a few tables, for tests of planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ducklake_lab.errors import EntryNotFoundError, did_you_mean
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import QueryPlan, parse, plan_delete, plan_insert, plan_query, plan_update
from ducklake_lab.sql.operations import At, Delete, Insert, Query, TableName, Update

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


class Lakes:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.tables: list[tuple[TableName, At | None]] = []
        self.functions: list[tuple[TableName, tuple[object, ...], dict[str, object]]] = []

    def table(self, name: TableName, at: At | None) -> Sequence[tuple[str, DataType]]:
        self.tables.append((name, at))
        if name.name.lower() not in TABLES:
            raise EntryNotFoundError(f'There is no table "{name}".{did_you_mean(name.name, TABLES)}')
        return TABLES[name.name.lower()]

    def function(
        self, name: TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        if name.name in ("snapshots", "ducklake_list_files", "table_changes"):
            self.functions.append((name, tuple(args), dict(kwargs)))
            return [("snapshot_id", DataType("int64")), ("note", VARCHAR)]
        return None


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
    """The plan of one query, INSERT, UPDATE or DELETE; writes go to `planes`."""
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
