"""Reads entries and snapshots: a fixed, small number of set-based queries, whatever the number of tables.

Of a lake with many tables, the columns of those that a statement names are read, each with a query of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import attachments, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.engines import SERVER
from ducklake_lab.catalog.options import OPTIONS, OptionRow
from ducklake_lab.catalog.servers import Server
from ducklake_lab.catalog.tables import one_of, visible
from ducklake_lab.collecting import without_collecting
from ducklake_lab.errors import CatalogError, SnapshotNotFoundError
from ducklake_lab.model.entries import Column, ColumnLife, ColumnVersion, Schema, Snapshot, SnapshotInfo, Table, View
from ducklake_lab.model.quoting import schema_path
from ducklake_lab.model.state import CatalogState, Tables

#: Opens the catalog.
Connect = Callable[[], AbstractContextManager[sa.Connection]]
#: Levels of columns within columns.
_DEEPEST = 100
#: Number of columns within one of a type; a struct has some.
_PARTS = {"list": 1, "map": 2}
#: Up to so many tables, the columns of all of them are read at once.
_FEW_TABLES = 100
#: Of more tables, the columns of so many are read one by one; a caller that asks for another likely asks for all.
_ONE_BY_ONE = 8
#: With the snapshot, as another client may have migrated the catalog.
_VERSION = sa.select(t.lake_metadata.c.value).where(t.lake_metadata.c.key == "version").limit(1).scalar_subquery()
_SNAPSHOT = sa.select(
    t.snapshot.c.snapshot_id,
    t.snapshot.c.snapshot_time,
    t.snapshot.c.schema_version,
    t.snapshot.c.next_catalog_id,
    t.snapshot.c.next_file_id,
    _VERSION,
)
_OTHER = t.snapshot.alias()
#: DuckDB knows the largest id from its statistics, where ORDER BY reads the ids of all snapshots.
_NEWEST_ID = sa.select(sa.func.max(_OTHER.c.snapshot_id))
_NEWEST = _SNAPSHOT.where(t.snapshot.c.snapshot_id == _NEWEST_ID.scalar_subquery())

#: The newest whose commit is whole, where commits are seen in part: the row of their changes comes last.
_WHOLE = sa.exists().where(t.snapshot_changes.c.snapshot_id == t.snapshot.c.snapshot_id)
_NEWEST_WHOLE_ID = sa.select(sa.func.max(t.snapshot_changes.c.snapshot_id)).where(
    t.snapshot_changes.c.snapshot_id <= _NEWEST_ID.scalar_subquery()
)
_NEWEST_WHOLE = _SNAPSHOT.where(t.snapshot.c.snapshot_id == _NEWEST_WHOLE_ID.scalar_subquery())

_SNAPSHOT_COLUMNS = len(_SNAPSHOT.selected_columns)
_NEWEST_WITH_OPTIONS, _NEWEST_WHOLE_WITH_OPTIONS = (
    query.add_columns(*OPTIONS.selected_columns).join(t.lake_metadata, sa.true()) for query in (_NEWEST, _NEWEST_WHOLE)
)


def read_snapshot(connection: sa.Connection, at: int | datetime | None = None) -> Snapshot:
    """The newest snapshot, the one of that id, or the newest not younger than that time, which is aware.

    Raises:
        SnapshotNotFoundError: there is none.
    """
    in_parts = _commits_in_parts(connection)
    query = _NEWEST_WHOLE if in_parts else _NEWEST
    if isinstance(at, datetime):
        newest = _NEWEST_ID.where(_OTHER.c.snapshot_time <= at)
        if in_parts:
            newest = newest.where(sa.exists().where(t.snapshot_changes.c.snapshot_id == _OTHER.c.snapshot_id))
        query = _SNAPSHOT.where(t.snapshot.c.snapshot_id == newest.scalar_subquery())
    elif at is not None:
        query = _SNAPSHOT.where(t.snapshot.c.snapshot_id == at)
        if in_parts:
            query = query.where(_WHOLE)
    row = connection.execute(query).first()
    if row is None:
        raise SnapshotNotFoundError(_no_snapshot(connection, at))
    *values, version = row
    versions.check_unchanged(connection, version)
    return Snapshot(*values)


def read_newest_with_options(connection: sa.Connection) -> tuple[Snapshot, Sequence[OptionRow]]:
    """Read the newest snapshot and the rows of `read_options` in one query."""
    in_parts = _commits_in_parts(connection)
    rows = connection.execute(_NEWEST_WHOLE_WITH_OPTIONS if in_parts else _NEWEST_WITH_OPTIONS).all()
    if not rows:
        raise SnapshotNotFoundError(_no_snapshot(connection, None))
    *values, version = rows[0][:_SNAPSHOT_COLUMNS]
    versions.check_unchanged(connection, version)
    return Snapshot(*values), [(scope, scope_id, key, value) for *_, scope, scope_id, key, value in rows]


def read_unfinished(connection: sa.Connection) -> int | None:
    """The id of the newest snapshot if a client has written it in part; it may be writing, or have been cut off."""
    if not _commits_in_parts(connection):
        return None
    s = t.snapshot
    found = connection.scalar(
        sa.select(s.c.snapshot_id).where(s.c.snapshot_id == _NEWEST_ID.scalar_subquery(), ~_WHOLE)
    )
    return None if found is None else int(found)


def _commits_in_parts(connection: sa.Connection) -> bool:
    server: Server | None = connection.get_execution_options()[SERVER]
    return server is not None and server.commits_in_parts


def first_snapshot_since(connection: sa.Connection, moment: datetime) -> int:
    """The id of the first snapshot that is as young as a time, which is aware.

    Raises:
        SnapshotNotFoundError: all are older.
    """
    s = t.snapshot
    found = connection.scalar(sa.select(sa.func.min(s.c.snapshot_id)).where(s.c.snapshot_time >= moment))
    if found is None:
        raise SnapshotNotFoundError(f"There is no snapshot as young as {_shown(moment)}.")
    return int(found)


def read_first_since(connection: sa.Connection, snapshot_id: int) -> int | None:
    """The id of the oldest snapshot that is not older than one; None where there is none."""
    s = t.snapshot.c
    found = connection.scalar(sa.select(sa.func.min(s.snapshot_id)).where(s.snapshot_id >= snapshot_id))
    return None if found is None else int(found)


def _no_snapshot(connection: sa.Connection, at: int | datetime | None) -> str:
    first, last, since = connection.execute(
        sa.select(
            sa.func.min(t.snapshot.c.snapshot_id),
            sa.func.max(t.snapshot.c.snapshot_id),
            sa.func.min(t.snapshot.c.snapshot_time, type_=t.snapshot.c.snapshot_time.type),
        )
    ).one()
    if last is None:
        return "The catalog has no snapshots; it was not initialised completely."
    if isinstance(at, datetime):
        return f"There is no snapshot as old as {_shown(at)}; the first is of {_shown(since.astimezone(at.tzinfo))}."
    return f"There is no snapshot {at}; the lake has snapshots {first} to {last}."


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} {moment.tzinfo}"


@without_collecting()
def read_history(
    connection: sa.Connection, last: int | None = None, between: tuple[int, int] | None = None
) -> list[SnapshotInfo]:
    """Read all snapshots with their changes, oldest first; only the `last` newest, or a range of ids, if given."""
    query = _HISTORY.order_by(t.snapshot.c.snapshot_id.desc()).limit(last)
    if between is not None:
        query = query.where(t.snapshot.c.snapshot_id.between(*between))
    rows = _history(connection, query)
    rows.reverse()
    return rows


def read_history_of(connection: sa.Connection, snapshot_id: int) -> SnapshotInfo:
    """Read one snapshot with its changes.

    Raises:
        SnapshotNotFoundError: there is none of that id.
    """
    found = _history(connection, _HISTORY.where(t.snapshot.c.snapshot_id == snapshot_id))
    if not found:
        raise SnapshotNotFoundError(_no_snapshot(connection, snapshot_id))
    return found[0]


def read_changes(connection: sa.Connection, between: tuple[int, int]) -> list[tuple[int, str | None]]:
    """Read the ids of snapshots in a range, both ends included, with their `changes_made`, oldest first; None without."""
    s, c = t.snapshot.c, t.snapshot_changes.c
    query = sa.select(s.snapshot_id, c.changes_made).select_from(
        t.snapshot.outerjoin(t.snapshot_changes, s.snapshot_id == c.snapshot_id)
    )
    found = query.where(s.snapshot_id.between(*between)).order_by(s.snapshot_id)
    return [(number, changes) for number, changes in connection.execute(found)]


def read_times(connection: sa.Connection, snapshot_ids: Collection[int]) -> dict[int, datetime]:
    """Read the times of snapshots, in UTC; those that have expired are left out."""
    s = t.snapshot
    query = sa.select(s.c.snapshot_id, s.c.snapshot_time).where(one_of(connection, s.c.snapshot_id, snapshot_ids))
    return dict(connection.execute(query).all()) if snapshot_ids else {}


def read_infos(connection: sa.Connection, snapshot_ids: Collection[int]) -> dict[int, SnapshotInfo]:
    """Read some snapshots with their changes, by id; expired ones are missing."""
    found = _history(connection, _HISTORY.where(t.one_of(connection, t.snapshot.c.snapshot_id, snapshot_ids)))
    return {info.snapshot_id: info for info in found}


_HISTORY = sa.select(
    t.snapshot.c.snapshot_id,
    t.snapshot.c.snapshot_time,
    t.snapshot.c.schema_version,
    t.snapshot_changes.c.changes_made,
    t.snapshot_changes.c.author,
    t.snapshot_changes.c.commit_message,
    t.snapshot_changes.c.commit_extra_info,
).select_from(t.snapshot.outerjoin(t.snapshot_changes, t.snapshot.c.snapshot_id == t.snapshot_changes.c.snapshot_id))


def _history(connection: sa.Connection, query: sa.Select[Any]) -> list[SnapshotInfo]:
    return [
        SnapshotInfo(snapshot_id, moment, version, changes or "", *rest)
        for snapshot_id, moment, version, changes, *rest in connection.execute(query).all()
    ]


@without_collecting()
def read_state(connection: sa.Connection, snapshot: Snapshot, connect: Connect) -> CatalogState:
    """All entries at the snapshot.

    Args:
        connect: opens the catalog again for columns of many tables, which are read when they are first asked for.
    """
    at = snapshot.snapshot_id
    partitions = attachments.partitions(connection, at)
    sorts = attachments.sorts(connection, at)
    comments, live, tags = attachments.comments_and_tags(connection, at)
    column_comments = attachments.view_column_comments(connection, at)
    schemas, hidden = _schemas(connection, at)
    tables = {
        table_id: row
        for table_id, *row in connection.execute(_TABLES.where(visible(t.table, at))).all()
        if row[0] not in hidden
    }
    columns = _columns(connection, at) if len(tables) <= _FEW_TABLES else _columns_by_table(snapshot, connect)

    def make(table_id: int) -> Table:
        schema_id, name, uuid, path, path_is_relative = tables[table_id]
        return Table(
            table_id=table_id,
            uuid=uuid,
            schema_id=schema_id,
            name=name,
            path=path or "",
            columns=columns(table_id),
            path_is_relative=_flag(path_is_relative),
            partition=partitions.get(table_id),
            sort=sorts.get(table_id),
            comment=comments.get(table_id),
            is_live=table_id in live,
            tags=tags.get(table_id, ()),
        )

    names = {table_id: (row[0], row[1]) for table_id, row in tables.items()}
    views = {
        row["view_id"]: View(
            row["view_id"],
            row["view_uuid"],
            row["schema_id"],
            row["view_name"],
            row["dialect"],
            row["sql"],
            row["column_aliases"] or "",
            comments.get(row["view_id"]),
            column_comments.get(row["view_id"], {}),
        )
        for row in _rows(connection, sa.select(t.view).where(visible(t.view, at)))
        if row["schema_id"] not in hidden
    }
    macros = {i: macro for i, macro in attachments.macros(connection, at).items() if macro.schema_id not in hidden}
    return CatalogState(snapshot, schemas, Tables(names, make, tagged=tags.keys() & names.keys()), views, macros)


def _schemas(connection: sa.Connection, at: int) -> tuple[dict[int, Schema], set[int]]:
    """Return the schemas of a snapshot by id, and the ids of invisible ones, whose parent is not visible."""
    s = t.schema
    parent = versions.column(connection, s.c.parent_schema_id)
    query = sa.select(s.c.schema_id, s.c.schema_name, parent, s.c.schema_uuid, s.c.path, s.c.path_is_relative)
    rows = {schema_id: row for schema_id, *row in connection.execute(query.where(visible(s, at))).all()}
    found, hidden = {}, set()
    for schema_id, (own, above, uuid, path, relative) in rows.items():
        names, parent_id, seen = [own], above, {schema_id}
        while parent_id in rows and parent_id not in seen:
            seen.add(parent_id)
            names.insert(0, rows[parent_id][0])
            parent_id = rows[parent_id][1]
        if parent_id in seen:
            raise CatalogError(
                f"The catalog is damaged: the schema {own} is inside of itself; restore it from a backup."
            )
        if parent_id is None:
            found[schema_id] = Schema(schema_id, uuid, schema_path(names), path or "", _flag(relative), above)
        else:
            hidden.add(schema_id)
    return found, hidden


def read_columns(connection: sa.Connection, table_id: int, snapshot_id: int) -> tuple[Column, ...]:
    """The columns one table had at a snapshot."""
    return _columns(connection, snapshot_id, table_id)(table_id)


def read_column_versions(connection: sa.Connection, table_id: int) -> list[ColumnVersion]:
    """Read all versions of a table's columns, at any depth, one for each row of `ducklake_column`."""
    c = t.column.c
    query = sa.select(c.column_id, c.parent_column, c.column_name, c.column_type, c.begin_snapshot)
    return [ColumnVersion(*row) for row in connection.execute(query.where(c.table_id == table_id))]


def read_column_lives(connection: sa.Connection, table_id: int, at: int) -> dict[int, list[ColumnLife]]:
    """Read when a table had each of its columns, at any depth, up to a snapshot; the last life of a column may end there.

    Whatever its names and types were; `restore` and `revert` bring a dropped column back.
    """
    c = t.column.c
    query = sa.select(c.column_id, c.begin_snapshot, c.end_snapshot)
    query = query.where(c.table_id == table_id, c.begin_snapshot <= at)
    lives: defaultdict[int, list[ColumnLife]] = defaultdict(list)
    for column_id, begin, end in connection.execute(query.order_by(c.begin_snapshot)):
        found, last = lives[column_id], at if end is None else min(end - 1, at)
        if found and found[-1].last == begin - 1:
            begin = found.pop().first
        found.append(ColumnLife(begin, last))
    return dict(lives)


def highest_column_id(connection: sa.Connection, table_id: int) -> int:
    """The highest column id a table ever used, dropped columns included; 0 for none."""
    query = sa.select(sa.func.max(t.column.c.column_id)).where(t.column.c.table_id == table_id)
    return connection.scalar(query) or 0


#: With UUIDs as texts, which drivers make objects of.
_TABLES = sa.select(
    t.table.c.table_id,
    t.table.c.schema_id,
    t.table.c.table_name,
    sa.cast(t.table.c.table_uuid, sa.String),
    t.table.c.path,
    t.table.c.path_is_relative,
)
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


def _columns_by_table(snapshot: Snapshot, connect: Connect) -> Callable[[int], tuple[Column, ...]]:
    """Columns as `_columns` gives them, read when a table is first asked for; other commits may have been made since.

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
                _check_is_kept(connection, snapshot)
                asked.add(table_id)
                if len(asked) <= _ONE_BY_ONE:
                    return read_columns(connection, table_id, snapshot.snapshot_id)
                rest = _columns(connection, snapshot.snapshot_id)
        return rest(table_id)

    return columns


def _check_is_kept(connection: sa.Connection, snapshot: Snapshot) -> None:
    """Raise where the snapshot and all others of its schema version have expired: rows of their entries may be gone."""
    s = t.snapshot.c
    by_id = sa.select(s.snapshot_id).where(s.snapshot_id == snapshot.snapshot_id)
    by_version = sa.select(s.snapshot_id).where(s.schema_version == snapshot.schema_version).limit(1)
    if connection.scalar(by_id) is None and connection.scalar(by_version) is None:
        raise SnapshotNotFoundError(_no_snapshot(connection, snapshot.snapshot_id))


def _columns(
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
                    nulls_allowed=_flag(nulls_allowed),
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


def _flag(value: bool | None) -> bool:
    return value is not False


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[Any]:
    return connection.execute(query).mappings().all()
