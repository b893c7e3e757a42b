"""Tables of lakes that rows were read from, with the views and macros in between, each in one state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EntryRead:
    """A table in the state in which its rows were read, or a view or macro that was expanded.

    Attributes:
        lake: the identity of the lake, see `catalog.identity`.
        alias: the lake's name in SQL.
        snapshot_id: the snapshot; of uncommitted changes, the one that they are based on.
        time: the snapshot's time in UTC, as ISO text.
        schema: the names from the outermost schema to the entry's.
        entry_id: the id of the entry; None for one that no commit has made yet.
        uuid: the uuid of the entry; "" of a macro, which has none.
        kind: the kind of the entry.
        is_fixed: a snapshot was named, so that a second run reads the same rows.
        is_uncommitted: the state has changes of an open transaction.
        branch: the branch that the lake is; None for a lake itself.
    """

    lake: str
    alias: str
    snapshot_id: int
    time: str
    schema: tuple[str, ...]
    name: str
    entry_id: int | None
    uuid: str
    kind: Literal["table", "view", "macro"] = "table"
    is_fixed: bool = False
    is_uncommitted: bool = False
    branch: str | None = None

    @property
    def title(self) -> str:
        """The lake's alias, with the branch if it is one."""
        return self.alias if self.branch is None else f"{self.alias}#{self.branch}"
