"""Runs several statements of one text; an error names its statement and the snapshots already committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.session.transactions.transactions import Transactions


class Several:
    """The statements of a text, run one by one.

    Args:
        count: the number of statements.
    """

    def __init__(self, transactions: Transactions, count: int) -> None:
        self._transactions = transactions
        self._count = count
        self._number = 0
        transactions.committed.clear()

    @contextmanager
    def next(self) -> Iterator[None]:
        """Runs a statement in the block; adds its number and the committed snapshots to its error."""
        self._number += 1
        before = len(self._transactions.committed)
        try:
            yield
        except DuckLakeError as error:
            if self._number > 1:
                made = self._transactions.committed[:before]
                error.args = (f"{str(error).rstrip()} Statement {self._number} of {self._count}{_staying(made)}.",)
            raise


def _staying(snapshots: list[int]) -> str:
    """Returns `; snapshot 10 stays` or `; snapshots 10 and 11 stay`."""
    if not snapshots:
        return ""
    if len(snapshots) == 1:
        return f"; snapshot {snapshots[0]} stays"
    if len(snapshots) > 3:  # ids of one lake ascend
        return f"; {len(snapshots)} snapshots, {snapshots[0]} to {snapshots[-1]}, stay"
    return f"; snapshots {', '.join(map(str, snapshots[:-1]))} and {snapshots[-1]} stay"
