"""Reads snapshots and their changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.engines import SERVER
from ducklake_lab.catalog.options import OPTIONS, OptionRow
from ducklake_lab.catalog.servers import Server
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.collecting import without_collecting
from ducklake_lab.errors import SnapshotNotFoundError
from ducklake_lab.model.entries import Snapshot, SnapshotInfo

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
    unfinished_id = connection.scalar(
        sa.select(s.c.snapshot_id).where(s.c.snapshot_id == _NEWEST_ID.scalar_subquery(), ~_WHOLE)
    )
    return None if unfinished_id is None else int(unfinished_id)


def _commits_in_parts(connection: sa.Connection) -> bool:
    server: Server | None = connection.get_execution_options()[SERVER]
    return server is not None and server.commits_in_parts


def first_snapshot_since(connection: sa.Connection, moment: datetime) -> int:
    """The id of the first snapshot that is as young as a time, which is aware.

    Raises:
        SnapshotNotFoundError: all are older.
    """
    s = t.snapshot
    first_id = connection.scalar(sa.select(sa.func.min(s.c.snapshot_id)).where(s.c.snapshot_time >= moment))
    if first_id is None:
        raise SnapshotNotFoundError(f"There is no snapshot as young as {_shown(moment)}.")
    return int(first_id)


def read_first_since(connection: sa.Connection, snapshot_id: int) -> int | None:
    """The id of the oldest snapshot that is not older than one; None where there is none."""
    s = t.snapshot.c
    first_id = connection.scalar(sa.select(sa.func.min(s.snapshot_id)).where(s.snapshot_id >= snapshot_id))
    return None if first_id is None else int(first_id)


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
    infos = _history(connection, _HISTORY.where(t.snapshot.c.snapshot_id == snapshot_id))
    if not infos:
        raise SnapshotNotFoundError(_no_snapshot(connection, snapshot_id))
    return infos[0]


def read_changes(connection: sa.Connection, between: tuple[int, int]) -> list[tuple[int, str | None]]:
    """Read the ids of snapshots in a range, both ends included, with their `changes_made`, oldest first; None without."""
    s, c = t.snapshot.c, t.snapshot_changes.c
    query = sa.select(s.snapshot_id, c.changes_made).select_from(
        t.snapshot.outerjoin(t.snapshot_changes, s.snapshot_id == c.snapshot_id)
    )
    in_range = query.where(s.snapshot_id.between(*between)).order_by(s.snapshot_id)
    return [(number, changes) for number, changes in connection.execute(in_range)]


def read_times(connection: sa.Connection, snapshot_ids: Collection[int]) -> dict[int, datetime]:
    """Read the times of snapshots, in UTC; those that have expired are left out."""
    s = t.snapshot
    query = sa.select(s.c.snapshot_id, s.c.snapshot_time).where(one_of(connection, s.c.snapshot_id, snapshot_ids))
    return dict(connection.execute(query).all()) if snapshot_ids else {}


def read_infos(connection: sa.Connection, snapshot_ids: Collection[int]) -> dict[int, SnapshotInfo]:
    """Read some snapshots with their changes, by id; expired ones are missing."""
    infos = _history(connection, _HISTORY.where(t.one_of(connection, t.snapshot.c.snapshot_id, snapshot_ids)))
    return {info.snapshot_id: info for info in infos}


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


def check_is_kept(connection: sa.Connection, snapshot: Snapshot) -> None:
    """Raise where the snapshot and all others of its schema version have expired: rows of their entries may be gone."""
    s = t.snapshot.c
    by_id = sa.select(s.snapshot_id).where(s.snapshot_id == snapshot.snapshot_id)
    by_version = sa.select(s.snapshot_id).where(s.schema_version == snapshot.schema_version).limit(1)
    if connection.scalar(by_id) is None and connection.scalar(by_version) is None:
        raise SnapshotNotFoundError(_no_snapshot(connection, snapshot.snapshot_id))
