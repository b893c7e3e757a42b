"""Runs pieces of maintenance: one commit each, within a budget, and after everybody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ducklake_lab.autopilot.estimates import MESSAGE, note_of
from ducklake_lab.autopilot.plan import Piece
from ducklake_lab.autopilot.policy import Policy
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import TransactionConflictError
from ducklake_lab.files.options import target_file_size
from ducklake_lab.maintenance.cleanup_old_files import cleanup_old_files
from ducklake_lab.maintenance.expire_snapshots import expire_snapshots, find_expirable
from ducklake_lab.maintenance.flush_inlined_data import flush_inlined_data
from ducklake_lab.maintenance.merge_adjacent_files import MergeOptions, merge_adjacent_files
from ducklake_lab.maintenance.rewrite_data_files import rewrite_data_files
from ducklake_lab.model.entries import Table
from ducklake_lab.transaction.transaction import Transaction

Outcome = Literal["done", "nothing left", "yielded", "over the budget"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The end of one piece.

    Attributes:
        snapshot: the snapshot it became; None where it made none.
        seconds: of its run.
        reason: why it is not done.
    """

    piece: Piece
    outcome: Outcome
    snapshot: int | None = None
    seconds: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Workshop:
    """Places that a run needs.

    Attributes:
        begin: opens a transaction that commits at its end.
        table: the table of a state with plain sort keys, by its id; None where it was dropped.
        expire_before, delete_before: times of the lake's options; None for never.
    """

    lake: Lake
    engines: Engines
    begin: Callable[[], AbstractContextManager[Transaction]]
    table: Callable[[Transaction, int], Table | None]
    expire_before: datetime | None
    delete_before: datetime | None


def run(pieces: Sequence[Piece], policy: Policy, place: Workshop) -> Iterator[Receipt]:
    """Run pieces in their order, and yield a receipt after each; stopping between two loses nothing.

    A piece that meets another client's commit is left for the next run, so that writers never wait for it.

    Args:
        policy: the lake's own, for the budget.
    """
    began, read = time.monotonic(), 0
    for piece in pieces:
        spent = time.monotonic() - began
        if policy.budget_seconds is not None and spent >= policy.budget_seconds:
            yield Receipt(piece, "over the budget", reason=f"the run had its {policy.budget_seconds:g} seconds")
            continue
        if policy.budget_bytes is not None and read + piece.read_bytes > policy.budget_bytes:
            yield Receipt(piece, "over the budget", reason=f"the run reads at most {policy.budget_bytes:,} bytes")
            continue
        start = time.monotonic()
        try:
            snapshot, is_done = _run(piece, place)
        except TransactionConflictError as conflict:
            yield Receipt(piece, "yielded", seconds=time.monotonic() - start, reason=str(conflict))
            continue
        read += piece.read_bytes
        yield Receipt(piece, "done" if is_done else "nothing left", snapshot, time.monotonic() - start)


def _run(piece: Piece, place: Workshop) -> tuple[int | None, bool]:
    """Return the snapshot that a piece became, and whether it did anything."""
    if piece.step == "clean up":
        return None, bool(cleanup_old_files(place.lake, place.delete_before, dry_run=False))
    began = time.monotonic()
    with place.begin() as transaction:
        if piece.step == "expire":
            found = find_expirable(place.lake, versions=None, older_than=place.expire_before)
            is_done = bool(expire_snapshots(transaction, found))
        else:
            is_done = _compact(piece, transaction, place)
        if transaction.has_changes:
            transaction.message = f"{MESSAGE}{piece.gain} in {piece.name}"
            transaction.extra_info = note_of(piece, time.monotonic() - began)
    made = transaction.snapshot
    return (made.snapshot_id if made is not None else None), is_done


def _compact(piece: Piece, transaction: Transaction, place: Workshop) -> bool:
    assert piece.table is not None  # only work on the whole lake has none
    table = place.table(transaction, piece.table.table_id)
    if table is None:
        return False
    if piece.step == "flush":
        return flush_inlined_data(transaction, table) > 0
    if piece.step == "merge":
        options = MergeOptions(target_file_size(transaction.options, table), files=piece.file_ids)
        return bool(merge_adjacent_files(transaction, table, options, place.engines))
    # the plan has chosen the files
    return bool(rewrite_data_files(transaction, table, 0.0, place.engines, piece.file_ids))
