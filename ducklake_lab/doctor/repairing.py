"""Repairs: one commit each, planned again under the lock, and checked before it is committed."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.races import is_full, is_lock_timeout, is_lost_race, is_refusal
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.doctor.check import Check, Finding
from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.examine import hits
from ducklake_lab.doctor.plan import NoRepairError, Plan, apply, metadata_table
from ducklake_lab.doctor.registry import BY_NAME
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import CommitUnknownError, DuckLakeError, TransactionError
from ducklake_lab.storage import Storage

#: Tries of a commit that other commits overtake.
_TRIES = 10
_PAUSE = (0.02, 0.2)


@dataclass(frozen=True, slots=True)
class Repaired:
    """Repair of a finding, done or planned.

    Attributes:
        plan: its changes; None where there is no repair.
        note: `repaired`, `to repair`, or why there is no repair.
        snapshot_id: the snapshot that it made; None where it made none.
    """

    finding: Finding
    plan: Plan | None
    note: str
    snapshot_id: int | None = None


def preview(lake: Lake, findings: Sequence[Finding]) -> list[Repaired]:
    """Plan the repairs of findings; nothing is changed, and no file written."""
    repairs = []
    with lake.connect() as connection:
        context = Context(lake, connection, deep=True, is_preview=True)
        for finding in findings:
            try:
                plan = _plan(context, finding)
            except NoRepairError as error:
                repairs.append(Repaired(finding, None, f"none: {error}"))
                continue
            repairs.append(Repaired(finding, plan, "to repair" if plan is not None else "none: it is gone"))
    return repairs


def repair(lake: Lake, findings: Sequence[Finding], author: str | None = None) -> list[Repaired]:
    """Repair findings, one commit each; those that have no repair stay as they are.

    Raises:
        TransactionError: the lake is read-only, or other commits came first too often.
    """
    lake.check_writable()
    return [_repair(lake, finding, author) for finding in findings]


class _LostRaceError(Exception):
    """Another commit was quicker; nothing was written."""


def _repair(lake: Lake, finding: Finding, author: str | None) -> Repaired:
    for _ in range(_TRIES):
        try:
            return _try(lake, finding, author)
        except NoRepairError as error:
            return Repaired(finding, None, f"none: {error}")
        except _LostRaceError:
            time.sleep(random.uniform(*_PAUSE))
    raise TransactionError(f"The repair lost against other commits {_TRIES} times; nothing was written. Try again.")


def _try(lake: Lake, finding: Finding, author: str | None) -> Repaired:
    plan: Plan | None = None
    with lake.connect(fresh=True) as connection, lake.sharing(connection):
        try:
            lock_for_commit(connection)
            context = _context(lake, connection, finding)
            plan = _plan(context, finding)
            if plan is None:
                return Repaired(finding, None, "none: it is gone")
            writes = Writes(connection)
            apply(context, plan, writes)
            snapshot_id, moment = _add_snapshot(context, finding, plan, author, writes)
            writes.flush()
            _check_mended(lake, connection, finding)
        except BaseException as error:
            if plan is not None:
                Storage().discard(plan.written)
            if isinstance(error, Exception) and is_lost_race(error) and not is_lock_timeout(error):
                raise _LostRaceError from error
            raise
        try:
            connection.commit()
        except (sa.exc.DBAPIError, duckdb.Error) as error:
            refused = is_lost_race(error) or is_refusal(error) or is_full(error)
            if refused:
                Storage().discard(plan.written)
            if is_lost_race(error) and not is_full(error):
                raise _LostRaceError from error
            if refused:
                raise
            if not lake.holds(snapshot_id, moment):
                raise CommitUnknownError(
                    f"It is not known whether the repair of {finding.object} was committed as snapshot {snapshot_id}; ask the "
                    "doctor again. The files that were written are kept."
                ) from error
    lake.cache.store(None)
    lake.cache.forget()
    lake.last_committed = snapshot_id
    return Repaired(finding, plan, "repaired", snapshot_id)


def _context(lake: Lake, connection: sa.Connection, finding: Finding) -> Context:
    """The context of one finding, which looks at no more than its table."""
    table_id = finding.key.get("table_id")
    return Context(lake, connection, deep=True, table_id=table_id if isinstance(table_id, int) else None)


def _plan(context: Context, finding: Finding) -> Plan | None:
    check = BY_NAME[finding.check]
    if check.repair is None or not finding.can_repair:
        raise NoRepairError(check.reason or "the finding is a summary")
    rows = hits(context, check, 1, finding.key)
    if not rows:
        return None
    try:
        plan = check.repair.plan(context, rows[0])
    except (DuckLakeError, OSError, TypeError, ValueError) as error:
        raise NoRepairError(str(error).partition("\n")[0]) from None
    if plan.is_empty:
        raise NoRepairError("there is nothing to change")
    return plan


def _check_mended(lake: Lake, connection: sa.Connection, finding: Finding) -> None:
    check: Check = BY_NAME[finding.check]
    if hits(_context(lake, connection, finding), check, 1, finding.key):
        raise NoRepairError("the repair would leave it as it is")


def _add_snapshot(
    context: Context, finding: Finding, plan: Plan, author: str | None, writes: Writes
) -> tuple[int, datetime]:
    """Hold the snapshot of a repair, and return its id and time; it changes no row, as compactions do."""
    table = metadata_table(context, "ducklake_snapshot")
    s = table.c
    latest = context.connection.execute(
        sa.select(*table.c).where(s.snapshot_id == context.newest).order_by(s.next_file_id.desc()).limit(1)
    ).one()
    writes.expect(sa.select(sa.func.max(s.snapshot_id)), context.newest)
    snapshot_id, moment = context.newest + 1, datetime.now(UTC)
    writes.insert(
        table,
        snapshot_id=snapshot_id,
        snapshot_time=moment,
        schema_version=latest.schema_version,
        next_catalog_id=max(latest.next_catalog_id, plan.next_catalog_id),
        next_file_id=max(latest.next_file_id, plan.next_file_id),
    )
    writes.insert(
        metadata_table(context, "ducklake_snapshot_changes"),
        snapshot_id=snapshot_id,
        changes_made="" if plan.table_id is None else f"compacted_table:{plan.table_id:d}",
        author=author,
        commit_message=f"repair of {finding.check}: {finding.object}"[:400],
        commit_extra_info=plan.undo(),
    )
    return snapshot_id, moment
