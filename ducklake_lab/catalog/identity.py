"""Signs of a lake: its identity, records of reads, and marks that differ after each commit."""

from __future__ import annotations

import hashlib
from datetime import UTC
from typing import Literal

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.file_marks import mark_of
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import LOCAL_ID_START, Macro, Table, View
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.state import CatalogState

#: Id of the schema that a lake is made with.
_FIRST_SCHEMA = 0


def identity(lake: Lake, state: CatalogState) -> str:
    """Return what names a lake, wherever its catalog is: the uuid of the schema that it was made with.

    A branch has that of its lake, with its own name. A lake that has dropped this schema is named by a digest of its catalog's
    location, without secrets.
    """
    first = state.schemas.get(_FIRST_SCHEMA)
    if first is not None:
        return first.uuid if lake.branch is None else f"{first.uuid}#{lake.branch.casefold()}"
    location = lake.location
    address = f"{location.backend} {location.url.host} {location.url.port} {location.url.database} {location.schema}"
    return hashlib.sha256(address.encode()).hexdigest()[:32]


def read_of(
    lake: Lake,
    state: CatalogState,
    entry: Table | View | Macro,
    *,
    is_fixed: bool = False,
    is_uncommitted: bool = False,
) -> EntryRead:
    """Return the record of a read of a table, or of an expanded view or macro, in one state."""
    kind: Literal["table", "view", "macro"]
    match entry:
        case Table():
            kind, entry_id, uuid = "table", entry.table_id, entry.uuid
        case View():
            kind, entry_id, uuid = "view", entry.view_id, entry.uuid
        case Macro():
            kind, entry_id, uuid = "macro", entry.macro_id, ""
    return EntryRead(
        lake=identity(lake, state),
        alias=lake.alias,
        branch=lake.branch,
        snapshot_id=state.snapshot.snapshot_id,
        time=state.snapshot.snapshot_time.astimezone(UTC).isoformat(),
        schema=state.schema_of(entry).parts,
        name=entry.name,
        entry_id=entry_id if entry_id < LOCAL_ID_START else None,
        uuid=uuid,
        kind=kind,
        is_fixed=is_fixed or lake.at is not None,
        is_uncommitted=is_uncommitted,
    )


def change_mark(lake: Lake) -> object:
    """Return what differs after each commit: the times of the catalog's files, or a server's newest snapshot.

    No file is opened, and any thread may call it.
    """
    if lake.location.path is not None:
        return mark_of(lake.location.path).files
    with lake.database.connect(reads=True) as connection:
        return connection.scalar(sa.select(sa.func.max(t.snapshot.c.snapshot_id)))
