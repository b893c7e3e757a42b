"""Read attachments of entries: comments, partition keys, sort keys, and the parts of macros. One query each."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.tables import visible
from ducklake_lab.model.entries import (
    Macro,
    MacroImplementation,
    MacroParameter,
    PartitionField,
    PartitionSpec,
    SortKey,
    SortSpec,
)
from ducklake_lab.model.expectations import PREFIX

#: Tag of a table that holds the rows of a query: its definition, see `live/definition.py`.
LIVE = "ducklake_lab.live"


def comments_and_tags(
    connection: sa.Connection, snapshot_id: int
) -> tuple[dict[int, str | None], frozenset[int], dict[int, tuple[tuple[str, str], ...]]]:
    """The comments of tables and views, the ids of live tables, and the tags that hold expectations, by id; one query."""
    key = t.tag.c.key
    wanted = sa.or_(key.in_(("comment", LIVE)), key.startswith(PREFIX, autoescape=True))
    query = sa.select(t.tag.c.object_id, key, t.tag.c.value).where(visible(t.tag, snapshot_id), wanted)
    comments: dict[int, str | None] = {}
    live: set[int] = set()
    expectations: dict[int, dict[str, str]] = defaultdict(dict)
    for object_id, name, value in connection.execute(query).all():
        if name == "comment":
            comments[object_id] = value
        elif value is not None and name == LIVE:
            live.add(object_id)
        elif value is not None:
            expectations[object_id][name] = value
    return comments, frozenset(live), {number: tuple(sorted(tags.items())) for number, tags in expectations.items()}


def tag_of(connection: sa.Connection, snapshot_id: int, table_id: int, key: str) -> tuple[str, int] | None:
    """The value of one tag of a table, and the snapshot that set it; None where it is not set."""
    c = t.tag.c
    query = sa.select(c.value, c.begin_snapshot).where(
        visible(t.tag, snapshot_id), c.object_id == table_id, c.key == key, c.value.is_not(None)
    )
    tag = connection.execute(query).first()
    return (tag[0], tag[1]) if tag is not None else None


def table_tags(connection: sa.Connection, snapshot_id: int, prefix: str) -> dict[tuple[int, str], str]:
    """The tags of tables and views whose keys begin with a prefix, by id and key; comments are tags too.

    See https://ducklake.select/docs/stable/specification/tables/ducklake_tag.
    """
    key = t.tag.c.key
    query = sa.select(t.tag.c.object_id, key, t.tag.c.value).where(
        visible(t.tag, snapshot_id), key.startswith(prefix, autoescape=True), t.tag.c.value.is_not(None)
    )
    return {(object_id, name): value for object_id, name, value in connection.execute(query)}


def column_comments(connection: sa.Connection, snapshot_id: int) -> dict[tuple[int, int], str | None]:
    """The comments of columns, by table and column id."""
    c = t.column_tag
    query = sa.select(c.c.table_id, c.c.column_id, c.c.value).where(visible(c, snapshot_id), c.c.key == "comment")
    return {(table_id, column_id): value for table_id, column_id, value in connection.execute(query)}


def view_column_comments(connection: sa.Connection, snapshot_id: int) -> dict[int, dict[str, str | None]]:
    """The comments of views' columns, by view id and the column's name in the view's query."""
    v = t.view_column_tag
    comments: dict[int, dict[str, str | None]] = defaultdict(dict)
    if versions.has(connection, v):
        query = sa.select(v.c.view_id, v.c.column_name, v.c.value).where(visible(v, snapshot_id), v.c.key == "comment")
        for view_id, name, value in connection.execute(query):
            comments[view_id][name] = value
    return dict(comments)


def partitions(connection: sa.Connection, snapshot_id: int) -> dict[int, PartitionSpec]:
    """The partition keys of tables, by table id."""
    specs = _partitions(connection, visible(t.partition_info, snapshot_id))
    return {table_id: spec for (table_id, _), spec in specs.items()}


def partition_specs(connection: sa.Connection, table_id: int) -> dict[int, PartitionSpec]:
    """All partition keys that a table ever had, by partition id."""
    specs = _partitions(connection, t.partition_info.c.table_id == table_id)
    return {partition_id: spec for (_, partition_id), spec in specs.items()}


def _partitions(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> dict[tuple[int, int], PartitionSpec]:
    """Partition keys by table and partition id."""
    info, key = t.partition_info, t.partition_column
    query = (
        sa.select(info.c.table_id, info.c.partition_id, key.c.column_id, key.c.transform)
        .join(key, sa.and_(info.c.partition_id == key.c.partition_id, info.c.table_id == key.c.table_id))
        .where(condition)
        .order_by(info.c.table_id, key.c.partition_key_index)
    )
    fields: dict[tuple[int, int], list[PartitionField]] = defaultdict(list)
    for table_id, partition_id, column_id, transform in connection.execute(query):
        fields[table_id, partition_id].append(PartitionField(column_id, transform))
    return {key: PartitionSpec(key[1], tuple(keys)) for key, keys in fields.items()}


def sorts(connection: sa.Connection, snapshot_id: int) -> dict[int, SortSpec]:
    """The sort keys of tables, by table id."""
    info, key = t.sort_info, t.sort_expression
    query = (
        sa.select(
            info.c.table_id, info.c.sort_id, key.c.expression, key.c.sort_direction, key.c.null_order, key.c.dialect
        )
        .join(key, sa.and_(info.c.sort_id == key.c.sort_id, info.c.table_id == key.c.table_id))
        .where(visible(info, snapshot_id))
        .order_by(info.c.table_id, key.c.sort_key_index)
    )
    keys: dict[tuple[int, int], list[SortKey]] = defaultdict(list)
    for table_id, sort_id, expression, direction, null_order, dialect in connection.execute(query):
        keys[table_id, sort_id].append(SortKey(expression, direction, null_order.replace("_", " "), dialect))
    return {table: SortSpec(sort, tuple(sort_keys)) for (table, sort), sort_keys in keys.items()}


def macros(connection: sa.Connection, snapshot_id: int) -> dict[int, Macro]:
    """The macros with their implementations, by id; three queries, only one where there are none."""
    m = t.macro
    rows = connection.execute(sa.select(m).where(visible(m, snapshot_id))).mappings().all()
    if not rows:
        return {}
    live = sa.select(m.c.macro_id).where(visible(m, snapshot_id))
    parameters: dict[tuple[int, int], list[MacroParameter]] = defaultdict(list)
    p = t.macro_parameters
    query: sa.Select[Any] = sa.select(p).where(p.c.macro_id.in_(live)).order_by(p.c.column_id)
    for row in connection.execute(query).mappings():
        kind = row["default_value_type"]
        default = row["default_value"] if kind != "unknown" else None
        parameters[row["macro_id"], row["impl_id"]].append(
            MacroParameter(row["parameter_name"], row["parameter_type"], default, kind)
        )
    implementations: dict[int, list[MacroImplementation]] = defaultdict(list)
    kinds: dict[int, str] = {}
    i = t.macro_impl
    for row in connection.execute(sa.select(i).where(i.c.macro_id.in_(live)).order_by(i.c.impl_id)).mappings():
        own = tuple(parameters[row["macro_id"], row["impl_id"]])
        implementations[row["macro_id"]].append(MacroImplementation(row["sql"], own, row["dialect"]))
        kinds[row["macro_id"]] = row["type"]
    return {
        row["macro_id"]: Macro(
            row["macro_id"],
            row["schema_id"],
            row["macro_name"],
            "table" if kinds.get(row["macro_id"]) == "table" else "scalar",
            tuple(implementations[row["macro_id"]]),
        )
        for row in rows
    }
