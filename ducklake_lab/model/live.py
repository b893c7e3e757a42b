"""Refuses changes of live tables that only their queries make."""

from __future__ import annotations

from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Table

_ROWS = "only REFRESH changes its rows; change the tables that its query reads"


def check_not_live(table: Table, title: str, what: str = _ROWS) -> None:
    """Checks that rows of a table may be written by hand.

    Args:
        what: the rule that a live table has, for the message.

    Raises:
        UsageError: it is a live table.
    """
    if table.is_live:
        raise UsageError(f"{title} is a live table, and {what}.")
