"""Rules of live tables: only their queries change rows, and definitions that come from another history start anew."""

from __future__ import annotations

import json

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


def moved_definition(text: str) -> str:
    """Return the tag of a live table whose rows came from another history: no snapshot here is theirs.

    The next refresh computes the table anew. A text that is no definition stays as it is.
    """
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(parts, dict):
        return text
    # what a refresh notes beside the query belongs to the rows of its own history
    return json.dumps({**parts, "snapshot": -1, "sources": {}, "entries": {}, "settings": {}}, ensure_ascii=False)
