"""Runs statements that conflict with another commit again, on the newest snapshot (ADR 53)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from ducklake_lab.errors import CommitUnknownError, DuckLakeError, TransactionConflictError
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.commit import RetryPolicy

_Done = TypeVar("_Done")
#: Seconds after which a statement does not run again; the user decides whether to repeat minutes of work.
_SECONDS = 60.0
#: Most seconds between two runs.
_LONGEST_WAIT = 10.0


def until_committed(
    transactions: Transactions,
    run: Callable[[], _Done],
    *,
    reads: bool,
    seconds: float = _SECONDS,
    is_counted: bool = True,
) -> _Done:
    """Returns the result of the first run without a conflict.

    A statement in an open transaction runs once: its user may have decided by rows that have changed since.

    Args:
        reads: the statement reads rows of lakes; other statements begin on cached entries (ADR 81).
        seconds: after which it does not run again.
        is_counted: so many retries as a commit has are enough; if not, they are only where the session sets their number. Each
            conflict is a commit of somebody else, so that all of several writers come to an end.

    Raises:
        TransactionConflictError: every allowed run conflicted; nothing is written.
    """
    if transactions.is_writing:
        return run()
    if not reads and (result := on_what_is_known(transactions, run)) is not None:
        return result
    began, runs, waits = time.monotonic(), 0, False
    with ExitStack() as turn:
        while True:
            runs += 1
            try:
                return run()
            except TransactionConflictError as error:
                assert transactions.last is not None  # a statement that raises it has written
                lake = transactions.last.lake
                policy = RetryPolicy.of(lake)
                is_last = runs > policy.max_retries and (is_counted or "max_retry_count" in lake.session.retry)
                if is_last or time.monotonic() - began > seconds:
                    if runs > 1:
                        raise TransactionConflictError(f"{error} It ran {runs} times.") from error
                    raise
                if runs == 1:
                    waits = turn.enter_context(lake.database.turn())
                if not waits:
                    # waits grow, so that the conflicting clients do not all meet again
                    transactions.lakes.release()
                    time.sleep(min(policy.wait_seconds * policy.backoff**runs, _LONGEST_WAIT) * random.random())
                    transactions.lakes.keep_open()


def on_what_is_known(transactions: Transactions, run: Callable[[], _Done]) -> _Done | None:
    """Commits on cached entries without asking the catalog; returns None if the statement must run on fresh ones.

    An error before the commit may come from stale entries, so the catalog decides, and so does it where expectations left out all
    rows. An error after the commit stays.

    Args:
        run: a statement that reads no rows of lakes.
    """
    if transactions.is_writing:
        return None
    with transactions.assuming() as is_assumed:
        if not is_assumed:
            return None
        try:
            done = run()
            # a commit fails on stale entries; without one, expectations that are gone may have left all rows out
            is_unsure = transactions.last is not None and transactions.last.is_empty_by_expectations
            return None if is_unsure else done
        except CommitUnknownError:
            raise
        except DuckLakeError:
            if transactions.last is not None and transactions.last.snapshot is not None:
                raise
            return None
