"""Commits a transaction: conflict check, write, and retry when another commit was quicker."""

from __future__ import annotations

import random
import time
import warnings
from dataclasses import dataclass, replace

import sqlalchemy as sa

from ducklake_lab.catalog import attachments, inlined
from ducklake_lab.catalog.cache import CachedCatalog
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.options import read_options, write_option
from ducklake_lab.catalog.races import is_full, is_lock_timeout, is_lost_race, is_nul_byte, is_refusal
from ducklake_lab.catalog.snapshots import read_newest_with_options, read_unfinished
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import (
    CatalogLockedError,
    CommitUnknownError,
    OutdatedError,
    TransactionConflictError,
    TransactionError,
)
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.transaction import batches
from ducklake_lab.transaction.checking import check_conflicts
from ducklake_lab.transaction.expiry import delete_snapshots
from ducklake_lab.transaction.nul_bytes import refused_text
from ducklake_lab.transaction.own_changes import own_changes
from ducklake_lab.transaction.transaction import Transaction
from ducklake_lab.transaction.writer import CommitWriter

#: Seconds for which a commit waits for a catalog file that another process writes.
_HELD_SECONDS = 15.0


@dataclass(frozen=True)
class RetryPolicy:
    """Number and times of retries of a commit that lost a race without a conflict; the reference's defaults."""

    max_retries: int = 10
    wait_seconds: float = 0.1
    backoff: float = 1.5

    @classmethod
    def of(cls, lake: Lake) -> RetryPolicy:
        """The policy as the session has set it."""
        chosen = lake.session.retry
        return cls(
            int(chosen.get("max_retry_count", cls.max_retries)),
            chosen.get("retry_wait_ms", cls.wait_seconds * 1000) / 1000,
            chosen.get("retry_backoff", cls.backoff),
        )


class _LostRace(Exception):
    """Another commit took the snapshot id first."""


class _Held(Exception):
    """Another client holds a lock that the commit needs, and may have stopped; the text names it."""


def commit(transaction: Transaction, retry: RetryPolicy | None = None) -> Snapshot | None:
    """Commits; gives the new snapshot, or None where there was nothing to commit.

    The files that were written stay as they are through all retries. On any error they stay too: the caller rolls
    the transaction back, except after CommitUnknownError.

    Raises:
        BatchCommittedError: it is a batch of a stream that the lake has.
        OutdatedError: it was begun on cached entries that no longer hold.
        TransactionConflictError: another commit excludes this one.
        CommitUnknownError: the connection broke while committing.
        DataFileError: a file that was written is not there with its size.
        TransactionError: the retries were used up.
        ExpectationError: rows violate an expectation of their table that refuses them.
    """
    policy = retry or RetryPolicy.of(transaction.lake)
    if transaction.has_changes:
        _check_commit_message(transaction)
        transaction.check_expectations()
    if not transaction.has_changes:  # from the beginning, or as all rows were left out
        _commit_without_snapshot(transaction, policy)
        return None
    transaction.check_files()
    wait = policy.wait_seconds
    queue, began = True, time.monotonic()
    for _ in range(policy.max_retries + 1):
        try:
            snapshot = _try(transaction, queue=queue)
        except (_LostRace, _Held) as error:
            transaction.lake.cache.store(None)  # after any error the next try reads everything
            if isinstance(error, _Held):
                if not _goes_on(transaction.lake, began, queue=queue):
                    raise CatalogLockedError(f"{error} Nothing was written.") from error
                if queue and transaction.lake.location.path is None:
                    warnings.warn(f"{error} The commit goes on without waiting for it.", RuntimeWarning, stacklevel=2)
                queue = False
            # two commits that collided once do not collide again and again
            time.sleep(wait * random.uniform(0.5, 1))
            wait *= policy.backoff
            continue
        transaction.snapshot = snapshot
        if snapshot is not None:
            transaction.lake.last_committed = snapshot.snapshot_id
        if snapshot is None:
            _commit_without_snapshot(transaction, policy)
        transaction.committed()
        _forget(transaction)
        return snapshot
    _check_finished(transaction.lake)
    raise _lost(policy)


def _commit_without_snapshot(transaction: Transaction, policy: RetryPolicy) -> None:
    """Commit changes without a snapshot: options, expired snapshots, dropped inlined tables, the record of a batch."""
    if not _writes_beside(transaction):
        return
    wait = policy.wait_seconds
    for left in reversed(range(policy.max_retries + 1)):
        try:
            _try_without_snapshot(transaction)
            break
        except _LostRace as error:
            if not left:
                raise _lost(policy) from error
            time.sleep(wait * random.uniform(0.5, 1))
            wait *= policy.backoff
    _forget(transaction)


def _try_without_snapshot(transaction: Transaction) -> None:
    with transaction.lake.connect(fresh=True) as connection:
        try:
            lock_for_commit(connection)
            _check_batch(transaction, connection)
            _check_options(transaction, connection)
            writes = Writes(connection)
            _write_beside(transaction, writes)
            writes.flush()
            connection.commit()
        except (sa.exc.DBAPIError, duckdb.Error) as error:
            if is_lost_race(error) and not is_full(error) and not is_lock_timeout(error):
                raise _LostRace from error
            raise


def _lost(policy: RetryPolicy) -> TransactionError:
    return TransactionError(
        f"The commit lost against other commits {policy.max_retries + 1} times; nothing was written. Try again."
    )


def _forget(transaction: Transaction) -> None:
    """Forget the cached rows of a catalog that changed without a snapshot."""
    if transaction.expired or transaction.drops_superseded:
        transaction.lake.cache.forget()


def _writes_beside(transaction: Transaction) -> bool:
    """Returns whether it has changes that make no snapshot."""
    beside = transaction.new_options or transaction.expired or transaction.drops_superseded
    return bool(beside) or transaction.batch is not None


def _goes_on(lake: Lake, began: float, *, queue: bool) -> bool:
    """Returns whether a commit tries on after a vain wait: on a server without the queue, on a file for some time."""
    if lake.location.path is None:
        return queue
    return time.monotonic() - began < _HELD_SECONDS


def _check_finished(lake: Lake) -> None:
    """Raises TransactionError where another client's commit was cut off, and nobody can commit before it is settled."""
    with lake.connect(fresh=True) as connection:
        unfinished = read_unfinished(connection)
    if unfinished is not None:
        raise TransactionError(
            f"Nothing was written, as snapshot {unfinished} of {lake.location.display} is half written: another client is "
            "committing for long, or was cut off. If none is, close the snapshot as it is: INSERT INTO "
            f"{quote_identifier(lake.metadata_name)}.ducklake_snapshot_changes (snapshot_id, changes_made) VALUES "
            f"({unfinished}, '')."
        )


def _check_commit_message(transaction: Transaction) -> None:
    required = transaction.options.get("require_commit_message")
    if required is not None and required.casefold() == "true" and transaction.message is None:
        raise TransactionError(
            'The lake requires a commit message; use %%ducklake -m "…", session.sql(…, message="…"), or '
            "CALL set_commit_message in a transaction."
        )


def _write_beside(transaction: Transaction, writes: Writes) -> None:
    """Hold changes that make no snapshot."""
    for (scope, key), value in transaction.new_options.items():
        writes.then(write_option, scope, key, value)
    if transaction.batch is not None:
        batches.record(writes, transaction.batch)
    delete_snapshots(transaction.lake, writes, transaction.expired)
    if transaction.drops_superseded:
        flushed = [staged.flushed_tables for staged in transaction.data.values()]
        inlined.drop_superseded_tables(writes, {name: up_to for one in flushed for name, up_to in one.items()})


def _check_options(transaction: Transaction, connection: sa.Connection) -> None:
    """Raises TransactionConflictError where another client changed an option that the commit needs."""
    if not transaction.needed_options:
        return
    now = {key: value for scope, _, key, value in read_options(connection) if scope is None}
    for key, value in transaction.needed_options.items():
        if now.get(key) != value:
            raise TransactionConflictError(
                f"Another client changed {key} of the lake {transaction.lake.alias} meanwhile; run this again."
            )


def _check_tags(transaction: Transaction, connection: sa.Connection, latest: Snapshot) -> None:
    """Raises TransactionConflictError where another commit changed a tag that this one read or sets."""
    for (table_id, key), value in transaction.needed_tags.items():
        now = attachments.table_tags(connection, latest.snapshot_id, key)
        if now.get((table_id, key)) != value:
            name = transaction.base.tables[table_id].name
            raise TransactionConflictError(
                f'Transaction conflict: another commit changed the tag "{key}" of the table {name}. '
                "Nothing was written; run the transaction again."
            )


def _check_batch(transaction: Transaction, connection: sa.Connection) -> None:
    if transaction.batch is not None:
        batches.check_not_committed(connection, transaction.batch)


def _try(transaction: Transaction, *, queue: bool) -> Snapshot | None:
    database = transaction.lake.database
    with transaction.lake.connect(fresh=True) as connection:
        try:
            lock_for_commit(connection, queue=queue)
            latest = _latest(transaction, connection)
            _check_batch(transaction, connection)
            _check_options(transaction, connection)
            changes = own_changes(transaction)
            if latest.snapshot_id != transaction.base.snapshot.snapshot_id:
                check_conflicts(transaction, changes, connection)
                _check_tags(transaction, connection, latest)
            if not any(own.noted for own in changes):
                return None
            writer = CommitWriter(transaction, connection, latest, changes)
            snapshot = writer.write()
            _write_beside(transaction, writer.metadata)
            writer.metadata.flush()
        except (sa.exc.DBAPIError, duckdb.Error) as error:
            if is_full(error):
                raise TransactionError(database.full()) from error
            if is_lock_timeout(error):
                raise _Held(database.held_by(connection)) from error
            if is_lost_race(error):
                raise _LostRace from error
            if is_nul_byte(error):
                raise TransactionError(f"{refused_text(transaction)}, which PostgreSQL keeps in no text.") from error
            raise TransactionError(f"The catalog refused the commit: {_first_line(error)}") from error
        try:
            connection.commit()
        except (sa.exc.DBAPIError, duckdb.Error) as error:
            full = is_full(error)  # DuckDB calls it a lost race
            if is_lock_timeout(error):
                raise _Held(database.held_by(connection)) from error
            if is_lost_race(error) and not full:
                raise _LostRace from error
            if transaction.lake.holds(snapshot.snapshot_id, snapshot.snapshot_time):
                return snapshot
            if full:
                raise TransactionError(database.full()) from error
            if is_refusal(error):
                raise TransactionError(f"The catalog refused the commit: {_first_line(error)}") from error
            raise CommitUnknownError(
                f"It is not known whether snapshot {snapshot.snapshot_id} was committed ({_first_line(error)}); "
                "look at the newest snapshot before trying again. The files that were written are kept."
            ) from error
        _keep(transaction, writer, latest, snapshot, connection)
        return snapshot


def _latest(transaction: Transaction, connection: sa.Connection) -> Snapshot:
    """The newest snapshot.

    Raises:
        OutdatedError: entries or options have changed since the transaction began.
    """
    if transaction.known is None:
        return transaction.lake.newest_in(connection)
    latest, options = read_newest_with_options(connection)
    begun = transaction.base.snapshot
    same_entries = latest.schema_version == begun.schema_version and latest.snapshot_id >= begun.snapshot_id
    if not same_entries or set(options) != set(transaction.option_rows):
        raise OutdatedError(f"The lake {transaction.lake.alias} has changed; run the statement again.")
    return latest


def _keep(
    transaction: Transaction, writer: CommitWriter, latest: Snapshot, snapshot: Snapshot, connection: sa.Connection
) -> None:
    """Cache the catalog's new rows, if the commit changed nothing but data.

    Args:
        latest: the snapshot before.
    """
    lake = transaction.lake
    if writer.facts is None or _writes_beside(transaction):
        return
    kept, changed = lake.cache.by_newest(latest), lake.database.changed(connection)
    if changed is None and lake.database.content(connection) is None:
        known = kept or CachedCatalog(None, latest)
        lake.cache.store(replace(known, options=transaction.option_rows).after(None, snapshot, writer.facts))
    elif kept is not None and changed is not None and changed[0] == kept.content:
        lake.cache.store(kept.after(changed[1], snapshot, writer.facts))


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
