"""Tables of lakes that rows were read from, each in one state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table in the state in which its rows were read.

    Attributes:
        lake: the identity of the lake, see `Lake.identity`.
        alias: the lake's name in SQL.
        snapshot_id: the snapshot; of uncommitted changes, the one that they are based on.
        time: the snapshot's time in UTC, as ISO text.
        schema: the names from the outermost schema to the table's.
        table_id: the table's id; None for a table that no commit has made yet.
        uuid: the table's uuid.
        is_fixed: a snapshot was named, so that a second run reads the same rows.
        is_uncommitted: the state has changes of an open transaction.
    """

    lake: str
    alias: str
    snapshot_id: int
    time: str
    schema: tuple[str, ...]
    name: str
    table_id: int | None
    uuid: str
    is_fixed: bool = False
    is_uncommitted: bool = False
