"""A snapshot as of which a whole process reads its lakes, by environment variables (ADR 91)."""

from __future__ import annotations

import os

#: The snapshot: its id, a time or a tag.
AS_OF = "DUCKLAKE_LAB_AS_OF"
#: The alias of the only lake that it is about; without it, all lakes are.
ONLY = "DUCKLAKE_LAB_AS_OF_LAKE"
#: A file that gets a line per lake that was attached so: the snapshot's id, a blank, the alias.
RECORD = "DUCKLAKE_LAB_AS_OF_RECORD"


def wanted(*aliases: str) -> str | None:
    """Return the snapshot as of which a lake with one of these names is read; None for the newest."""
    at, only = os.environ.get(AS_OF), os.environ.get(ONLY)
    return at if at and (not only or only.casefold() in {alias.casefold() for alias in aliases}) else None


def record(alias: str, snapshot_id: int) -> None:
    """Notes that a lake is read as of a snapshot, if the process is to note it."""
    path = os.environ.get(RECORD)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{snapshot_id} {alias}\n")
