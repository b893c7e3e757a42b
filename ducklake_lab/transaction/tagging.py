"""Tag snapshots and remove tags; no snapshot is made."""

from __future__ import annotations

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.snapshot_tags import check_name, tagged, write_tag
from ducklake_lab.catalog.snapshots import read_snapshot


def tag_snapshot(lake: Lake, name: str, snapshot_id: int | None = None) -> int:
    """Tags a snapshot, the newest by default; a tag of that name moves. Gives the snapshot's id.

    Raises:
        SnapshotNotFoundError: there is no such snapshot.
        UsageError: no tag can have that name.
        TransactionError: the lake is read-only.
    """
    check_name(name)
    lake.check_writable()
    with lake.connect(fresh=True) as connection:
        lock_for_commit(connection)
        tagged_id = read_snapshot(connection, snapshot_id).snapshot_id
        write_tag(connection, name, tagged_id)
        connection.commit()
    return tagged_id


def untag_snapshot(lake: Lake, name: str) -> int:
    """Takes a tag away; gives the id of the snapshot that had it.

    Raises:
        SnapshotNotFoundError: there is no such tag.
        TransactionError: the lake is read-only.
    """
    lake.check_writable()
    with lake.connect(fresh=True) as connection:
        lock_for_commit(connection)
        tagged_id = tagged(connection, name)
        write_tag(connection, name, None)
        connection.commit()
    return tagged_id
