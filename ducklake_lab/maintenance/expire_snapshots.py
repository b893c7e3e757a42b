"""expire_snapshots: removes snapshots, with the rows and files that only they see (spec: maintenance)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.transaction.expiry import check_expirable, read_expirable
from ducklake_lab.transaction.transaction import Transaction


def find_expirable(lake: Lake, *, versions: Collection[int] | None, older_than: datetime | None) -> list[SnapshotInfo]:
    """The snapshots of these ids, or older than a time, without the newest one; those with tags or branches only by their ids."""
    return [
        info
        for info in read_expirable(lake, with_tags=versions is not None)
        if (versions is not None and info.snapshot_id in versions)
        or (versions is None and older_than is not None and info.snapshot_time < older_than)
    ]


def expire_snapshots(transaction: Transaction, chosen: Sequence[SnapshotInfo]) -> list[SnapshotInfo]:
    """Stage the expiry of snapshots, and return them; the transaction's own snapshot stays.

    Raises:
        CatalogError: one of them has a tag or a branch.
    """
    going = [info for info in chosen if info.snapshot_id != transaction.base.snapshot.snapshot_id]
    if going:
        with transaction.lake.connect() as connection:
            check_expirable(connection, [info.snapshot_id for info in going])
    transaction.expire(info.snapshot_id for info in going)
    return going
