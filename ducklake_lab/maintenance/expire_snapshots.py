"""expire_snapshots: snapshots are forgotten, and what only they could see goes with them (spec: maintenance)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.transaction.expiry import delete_snapshots, read_expirable


def expire_snapshots(
    lake: Lake, *, versions: Collection[int] | None, older_than: datetime | None, dry_run: bool
) -> list[SnapshotInfo]:
    """Forgets the snapshots of these ids, or older than a time; they, as they were.

    The newest one always stays. Those with tags stay, too; to name their ids is an error.
    """
    chosen = [
        info
        for info in read_expirable(lake, with_tags=versions is not None)
        if (versions is not None and info.snapshot_id in versions)
        or (versions is None and older_than is not None and info.snapshot_time < older_than)
    ]
    if not dry_run:
        delete_snapshots(lake, [info.snapshot_id for info in chosen])
    return chosen
