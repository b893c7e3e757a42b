"""Read texts that name a snapshot."""

from __future__ import annotations

from datetime import datetime


def named_snapshot(text: str) -> int | datetime | str:
    """The id of a snapshot, the ISO time at which it was the newest, or else its tag."""
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
