"""Statements that lose against another commit run again, from the newest snapshot (ADR 53)."""

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
#: Seconds after which a statement does not begin again: to repeat what takes minutes is for its caller to decide.
_SECONDS = 60.0


def until_committed(transactions: Transactions, run: Callable[[], _Done], *, reads: bool) -> _Done:
    """The result of the first run that no other commit excludes.

    A statement of an open transaction runs once: what its caller decided by may be what has changed.

    Args:
        reads: it reads rows of lakes; others begin on cached rows (ADR 81).

    Raises:
        TransactionConflictError: each run was excluded, as often as the session tries; nothing was written.
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
                assert transactions.last is not None  # who raises it was writing
                lake = transactions.last.lake
                policy = RetryPolicy.of(lake)
                if runs > policy.max_retries or time.monotonic() - began > _SECONDS:
                    if runs > 1:
                        raise TransactionConflictError(f"{error} It ran {runs} times.") from error
                    raise
                if runs == 1:
                    waits = turn.enter_context(lake.database.turn())
                if not waits:
                    # later and later, so that those that met do not all meet again
                    transactions.lakes.release()
                    time.sleep(policy.wait_seconds * policy.backoff**runs * random.random())
                    transactions.lakes.keep_open()


def on_what_is_known(transactions: Transactions, run: Callable[[], _Done]) -> _Done | None:
    """What a commit begun without asking a catalog gives; None where it has to run with what the catalog says.

    Whatever error comes up may be one only of what was known, so the catalog decides. An error after the commit stays.

    Args:
        run: reads no rows of lakes.
    """
    if transactions.is_writing:
        return None
    with transactions.assuming() as known:
        if not known:
            return None
        try:
            return run()
        except CommitUnknownError:
            raise
        except DuckLakeError:
            if transactions.last is not None and transactions.last.snapshot is not None:
                raise
            return None
