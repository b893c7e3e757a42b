"""Names of snapshots, kept among the options of a lake, where other clients leave them alone (ADR 54)."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.options import write_option
from ducklake_lab.errors import SnapshotNotFoundError, UsageError, did_you_mean
from ducklake_lab.model.snapshot_names import named_snapshot

#: Prefix of options that are tags; the rest of the key is the name, the value the id of the snapshot.
PREFIX = "ducklake_lab_tag:"
_LONGEST = 100


def read_tags(connection: sa.Connection) -> dict[str, int]:
    """The ids of tagged snapshots by the names of the tags, in the order of the names."""
    m = t.lake_metadata
    query = sa.select(m.c.key, m.c.value).where(m.c.scope.is_(None), m.c.key.startswith(PREFIX, autoescape=True))
    ids = {str(key)[len(PREFIX) :]: value for key, value in connection.execute(query)}
    return {name: int(ids[name]) for name in sorted(ids) if str(ids[name]).isdecimal()}


def tagged(connection: sa.Connection, name: str) -> int:
    """The id of the snapshot that has a tag.

    Raises:
        SnapshotNotFoundError: there is no such tag.
    """
    tags = read_tags(connection)
    if name not in tags:
        hint = did_you_mean(name, tags) or " %ducklake tags lists them."
        raise SnapshotNotFoundError(f'There is no snapshot with the tag "{name}".{hint}')
    return tags[name]


def write_tag(connection: sa.Connection, name: str, snapshot_id: int | None) -> None:
    """Stores a tag, or with None takes it away; the caller commits."""
    write_option(connection, (None, None), PREFIX + name, None if snapshot_id is None else str(snapshot_id))


def check_name(name: str) -> str:
    """Check that a tag can have a name: it could not be the id or the time of a snapshot.

    Raises:
        UsageError: it cannot.
    """
    if not name or len(name) > _LONGEST or name != name.strip() or not name.isprintable():
        raise UsageError(f"A tag is a text of up to {_LONGEST} printable characters, without blanks around it.")
    if not isinstance(named_snapshot(name), str):
        raise UsageError(f'"{name}" could be the id or the time of a snapshot; choose another name for the tag.')
    return name
