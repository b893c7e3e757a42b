"""Tags of tables that only this product reads, merged three ways by key; expectations are part of the definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ducklake_lab.catalog.attachments import LIVE, table_tags
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.merging.conflicts import Conflict, Reason, TableRules, Unsettled, Words
from ducklake_lab.model.entries import Table
from ducklake_lab.model.expectations import PREFIX
from ducklake_lab.model.live import moved_definition
from ducklake_lab.model.state import CatalogState
from ducklake_lab.transaction.transaction import Transaction

#: Keys of the product begin so.
OWN = "ducklake_lab."
_Tags = Mapping[tuple[int, str], str]


def arriving(key: str, value: str | None) -> str | None:
    """Return a tag as a table gets it that comes from another history."""
    return moved_definition(value) if key == LIVE and value is not None else value


@dataclass(frozen=True, slots=True)
class MergedTags:
    """The tags of a merge, as theirs has them, and as both sides began.

    Attributes:
        theirs, base: by table id and key.
    """

    theirs: _Tags
    base: _Tags

    @classmethod
    def read(cls, lake: Lake, tip: CatalogState, base: CatalogState) -> MergedTags:
        """Reads the tags of two states of theirs."""
        with lake.connect() as connection:
            both = [table_tags(connection, state.snapshot.snapshot_id, OWN) for state in (tip, base)]
        theirs, began = ({key: value for key, value in tags.items() if not key[1].startswith(PREFIX)} for tags in both)
        return cls(theirs, began)

    def changed(self, their_id: int) -> list[str]:
        """Returns the keys that theirs changed for a table."""
        keys = {key for number, key in (*self.theirs, *self.base) if number == their_id}
        return sorted(key for key in keys if self.theirs.get((their_id, key)) != self.base.get((their_id, key)))

    def plan(
        self,
        transaction: Transaction,
        theirs: Table,
        ours: Table,
        title: str,
        rules: TableRules,
        words: Words,
        unsettled: Unsettled,
    ) -> dict[str, str | None]:
        """Returns the tags that our table gets; notes conflicts that no rule settles."""
        tags: dict[str, str | None] = {}
        for key in self.changed(theirs.table_id):
            table_key = theirs.table_id, key
            now = transaction.tag(ours, key)
            their, old, our = (
                arriving(key, value) for value in (self.theirs.get(table_key), self.base.get(table_key), now)
            )
            if our == their:
                if now != their:
                    tags[key] = their
                continue
            if our != old and rules.whole is None:
                reason = words.reason(Reason.DEFINITION, f"tag {key}")
                unsettled.add(Conflict(title, None, None, old, our, their, reason))
            if our == old or rules.whole == "theirs":
                tags[key] = their
        return tags
