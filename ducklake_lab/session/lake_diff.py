"""Diffs of whole lakes between two snapshots."""

from __future__ import annotations

from ducklake_lab.diff.lake import LakeDiff, diff_lake
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import UsageError
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.read_states import At


def diff_current_lake(lakes: Lakes, engines: Engines, start: At, end: At) -> LakeDiff:
    """Returns the diff of the current lake between two snapshots; see `Session.diff`."""
    lake = lakes.get()
    if end is None and lakes.transaction is not None and lakes.transaction.lake is lake:
        raise UsageError(
            "The open transaction has changes of its own: tx.diffs() shows them; COMMIT or name the later snapshot."
        )
    with lakes.statement():
        is_fixed = end is not None
        return diff_lake(lake, lakes.state(lake, start), lakes.state(lake, end), engines, is_fixed=is_fixed)
