"""Reads the columns of tables, at a snapshot and over time.

Of a lake with many tables, the columns of those that a statement names are read, each with a query of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import attachments
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.snapshots import check_is_kept
from ducklake_lab.catalog.tables import visible
from ducklake_lab.collecting import without_collecting
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Column, ColumnLife, ColumnVersion, Snapshot

#: Opens the catalog.
Connect = Callable[[], AbstractContextManager[sa.Connection]]
#: Levels of columns within columns.
_DEEPEST = 100
#: Number of columns within one of a type; a struct has some.
_PARTS = {"list": 1, "map": 2}
#: The columns of so many tables are read one by one; a caller that asks for another one likely asks for all.
_ONE_BY_ONE = 8

_COLUMNS = sa.select(
    t.column.c.table_id,
    t.column.c.parent_column,
    t.column.c.column_id,
    t.column.c.column_order,
    t.column.c.column_name,
    t.column.c.column_type,
    t.column.c.nulls_allowed,
    t.column.c.initial_default,
    t.column.c.default_value,
    t.column.c.default_value_type,
    t.column.c.default_value_dialect,
    t.column.c.begin_snapshot,
)


def read_columns(connection: sa.Connection, table_id: int, snapshot_id: int) -> tuple[Column, ...]:
    """The columns one table had at a snapshot."""
    return columns_of(connection, snapshot_id, table_id)(table_id)


def read_column_versions(connection: sa.Connection, table_id: int) -> list[ColumnVersion]:
    """Read all versions of a table's columns, at any depth, one for each row of `ducklake_column`."""
    c = t.column.c
    query = sa.select(c.column_id, c.parent_column, c.column_name, c.column_type, c.begin_snapshot, c.end_snapshot)
    return [ColumnVersion(*row) for row in connection.execute(query.where(c.table_id == table_id))]


def column_lives(versions: Iterable[ColumnVersion], at: int) -> dict[int, list[ColumnLife]]:
    """Return when a table had each of its columns, at any depth, up to a snapshot; the last life of a column may end there.

    Whatever its names and types were; `restore` and `revert` bring a dropped column back.
    """
    lives: defaultdict[int, list[ColumnLife]] = defaultdict(list)
    for version in sorted(versions, key=lambda version: version.begin_snapshot):
        begin, end = version.begin_snapshot, version.end_snapshot
        if begin > at:
            break
        own, last = lives[version.column_id], at if end is None else min(end - 1, at)
        if own and own[-1].last == begin - 1:
            begin = own.pop().first
        own.append(ColumnLife(begin, last))
    return dict(lives)


def highest_column_id(connection: sa.Connection, table_id: int) -> int:
    """The highest column id a table ever used, dropped columns included; 0 for none."""
    query = sa.select(sa.func.max(t.column.c.column_id)).where(t.column.c.table_id == table_id)
    return connection.scalar(query) or 0


def columns_by_table(snapshot: Snapshot, connect: Connect) -> Callable[[int], tuple[Column, ...]]:
    """Columns as `columns_of` gives them, read when a table is first asked for; other commits may have been made since.

    Raises:
        SnapshotNotFoundError: the returned function raises it if all snapshots with these entries have expired.
    """
    asked: set[int] = set()
    rest: Callable[[int], tuple[Column, ...]] | None = None

    @without_collecting()
    def columns(table_id: int) -> tuple[Column, ...]:
        nonlocal rest
        if rest is None:
            with connect() as connection:
                check_is_kept(connection, snapshot)
                asked.add(table_id)
                if len(asked) <= _ONE_BY_ONE:
                    return read_columns(connection, table_id, snapshot.snapshot_id)
                rest = columns_of(connection, snapshot.snapshot_id)
        return rest(table_id)

    return columns


def columns_of(
    connection: sa.Connection, snapshot_id: int, table_id: int | None = None
) -> Callable[[int], tuple[Column, ...]]:
    """Return a function from a table's id to its columns at a snapshot; it knows one table only, if that is given."""
    query = _COLUMNS.where(visible(t.column, snapshot_id)).order_by(t.column.c.column_order)
    if table_id is not None:
        query = query.where(t.column.c.table_id == table_id)
    comments = attachments.column_comments(connection, snapshot_id)
    by_table: dict[int, list[Any]] = defaultdict(list)
    # tens of thousands of rows for many tables: fetched at once, and taken by place
    for row in connection.execute(query).all():
        if row[2] is None or row[5] is None:
            raise ValueError("a column without an id or a type")  # the connection finds the damage
        by_table[row[0]].append(row)

    def columns(table: int) -> tuple[Column, ...]:
        by_parent: dict[int | None, list[Any]] = defaultdict(list)
        rows = by_table.get(table, ())
        for _, parent, *row in rows:
            by_parent[parent].append(row)
        for of_row, word in ((lambda row: row[2], "ids"), (lambda row: (row[1], row[4]), "names")):
            if len(set(map(of_row, rows))) < len(rows):
                raise CatalogError(
                    f"The catalog is damaged: columns of the table with the id {table} share their {word}; "
                    "restore it from a backup."
                )

        def build(parent: int | None, level: int = 0) -> tuple[Column, ...]:
            if level > _DEEPEST:
                return ()
            return tuple(
                Column(
                    column_id=column_id,
                    order=order,
                    name=name,
                    type=_type(type_name, len(by_parent[column_id]) if column_id in by_parent else 0, level),
                    nulls_allowed=flag(nulls_allowed),
                    initial_default=initial,
                    default_value=default,
                    default_value_type=default_type or "",
                    default_value_dialect=dialect or "",
                    children=build(column_id, level + 1) if column_id in by_parent else (),
                    comment=comments.get((table, column_id)),
                    begin_snapshot=begin_snapshot,
                )
                for (
                    column_id,
                    order,
                    name,
                    type_name,
                    nulls_allowed,
                    initial,
                    default,
                    default_type,
                    dialect,
                    begin_snapshot,
                ) in by_parent[parent]
            )

        return build(None)

    return columns


def _type(name: str, parts: int, level: int) -> str:
    """Return the type of a column; a type without values where its parts do not fit it."""
    if name == "struct":
        fits = parts > 0 and level < _DEEPEST
    else:
        fits = parts == _PARTS.get(name, 0) and (not parts or level < _DEEPEST)
    return name if fits else f"{name} of unusable parts"


def flag(value: bool | None) -> bool:
    """Return a flag of the catalog, where NULL is true."""
    return value is not False
