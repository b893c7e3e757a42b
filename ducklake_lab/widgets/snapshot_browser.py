"""A browser for the history of a lake; static HTML in a notebook without a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import traitlets

from ducklake_lab.errors import DuckLakeError, UsageError
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.widgets import snapshots, timeline
from ducklake_lab.widgets.arrow import pack
from ducklake_lab.widgets.html import KIND_LABELS, clip, escape, visible, zone
from ducklake_lab.widgets.mounted import Mounted, script, styles

#: (table, earlier snapshot, later snapshot) -> static HTML of the diff
DiffProvider = Callable[[str, int, int], str]
#: snapshot -> static HTML of the lake at that snapshot
LakeProvider = Callable[[int], str]

_KINDS = tuple(KIND_LABELS)
#: Most characters of a snapshot's SQL.
_LONGEST = 4000
#: Most tables with diffs at a time.
_TABLES = 10


class SnapshotBrowser(Mounted):
    """Timeline and list of snapshots.

    Attributes:
        selected: id of the selected snapshot, or None. A new value selects in the notebook.
        compare: (earlier, later) ids of the two compared snapshots, or ().
        query: filter words; `table:x`, `author:x`, `tag:x`, `notebook:x` and `kind:x` search only there.
        hidden: kinds of change that are not shown.
        zone: the time zone of displayed times.
        between: (first, last) in milliseconds since 1970, or ().
        history: all snapshots, oldest first.
    """

    _esm = script("snapshots")
    _css = styles("snapshots")

    overview = traitlets.Bytes().tag(sync=True)
    filter = traitlets.Int(0).tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Int(None, allow_none=True).tag(sync=True)
    compare = traitlets.List(traitlets.Int()).tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    kinds = traitlets.List(traitlets.Unicode()).tag(sync=True)
    hidden = traitlets.List(traitlets.Unicode()).tag(sync=True)
    between = traitlets.List(traitlets.Float()).tag(sync=True)
    title = traitlets.Unicode("Snapshots").tag(sync=True)
    can_diff = traitlets.Bool(False).tag(sync=True)
    can_look = traitlets.Bool(False).tag(sync=True)
    zone = traitlets.Unicode("UTC").tag(sync=True)

    def __init__(
        self,
        history: Sequence[HistoryEntry],
        *,
        title: str = "Snapshots",
        diff: DiffProvider | None = None,
        lake: LakeProvider | None = None,
    ) -> None:
        self.history = tuple(history)
        self._ids = {entry.info.snapshot_id for entry in self.history}
        self._diff = diff
        self._lake = lake
        self._texts: dict[int, str] = {}
        self.shown = self.history[::-1]
        present = {entry.kind for entry in self.history}
        super().__init__(
            overview=_numbers(self.shown),
            total=len(self.history),
            kinds=[kind for kind in _KINDS if kind in present],
            title=title,
            can_diff=diff is not None,
            can_look=lake is not None,
            zone=zone(self.history[0].info.snapshot_time) if self.history else "UTC",
        )
        self.observe(self._filter, ["query", "hidden", "between"])

    @traitlets.validate("selected")
    def _known(self, proposal: Any) -> int | None:
        chosen: int | None = proposal["value"]
        if chosen is not None:
            self._require(chosen)
        return chosen

    @traitlets.validate("compare")
    def _pair(self, proposal: Any) -> list[int]:
        chosen = sorted(proposal["value"])
        if chosen and len(chosen) != 2:
            raise UsageError(f"compare takes two snapshot ids, or none; not {len(chosen)}.")
        for snapshot in chosen:
            self._require(snapshot)
        return chosen

    def _require(self, snapshot: int) -> None:
        if snapshot not in self._ids:
            raise UsageError(f"There is no snapshot {snapshot} in this history.")

    def _filter(self, _change: object) -> None:
        words = self.query.casefold().split()
        low, high = self.between if len(self.between) == 2 else (float("-inf"), float("inf"))
        self.shown = tuple(
            entry
            for entry in reversed(self.history)
            if entry.kind not in self.hidden
            and low <= entry.info.snapshot_time.timestamp() * 1000 <= high
            and all(self._has(entry, word) for word in words)
        )
        with self.hold_sync():
            self.filter += 1
            self.overview = _numbers(self.shown)

    def _has(self, entry: HistoryEntry, word: str) -> bool:
        if word.startswith("table:"):
            return any(word[6:] in name.casefold() for name in entry.tables)
        if word.startswith("tag:"):
            return any(word[4:] in name.casefold() for name in entry.tags)
        if word.startswith("author:"):
            return word[7:] in (entry.info.author or "").casefold()
        if word.startswith("notebook:"):
            return word[9:] in ((entry.note and entry.note.notebook) or "").casefold()
        if word.startswith("kind:"):
            return word[5:] in f"{KIND_LABELS[entry.kind]}\n{(entry.note and entry.note.kind) or ''}".casefold()
        number = entry.info.snapshot_id
        if number not in self._texts:
            info = entry.info
            made = (snapshots.origin(entry), snapshots.statement(entry, _LONGEST))
            parts = (str(number), info.author or "", entry.message, *entry.changes, *entry.tables, *made)
            self._texts[number] = "\n".join(parts).casefold()
        return word in self._texts[number]

    def answer_page(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns texts of a range of displayed snapshots."""
        start, count = int(content["start"]), int(content["count"])
        rows = self.shown[start : start + count]
        return {}, [
            pack(
                {
                    "author": ("text", [visible(clip(entry.info.author or "", 80)) for entry in rows]),
                    "message": ("text", [visible(clip(entry.message, 400)) for entry in rows]),
                    "changes": ("text", [_changes(entry) for entry in rows]),
                    "origin": ("text", [snapshots.origin(entry) for entry in rows]),
                    "statement": ("text", [snapshots.statement(entry, _LONGEST) for entry in rows]),
                }
            )
        ]

    def answer_between(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the tables that changed after one snapshot, up to another."""
        start, end = int(content["start"]), int(content["end"])
        tables = {name for entry in self.history if start < entry.info.snapshot_id <= end for name in entry.tables}
        return {"tables": sorted(tables)}

    def answer_diff(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static view of the requested diff."""
        if self._diff is None:
            raise UsageError("This browser has no lake to compare snapshots of.")
        return {"html": self._diff(str(content["table"]), int(content["start"]), int(content["end"]))}

    def answer_diffs(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static diffs of all tables that a snapshot changed, against the snapshot before it."""
        if self._diff is None:
            raise UsageError("This browser has no lake to compare snapshots of.")
        end = int(content["snapshot"])
        self._require(end)
        tables = next(entry.tables for entry in self.history if entry.info.snapshot_id == end)
        parts = []
        for name in tables[:_TABLES]:
            try:
                parts.append(self._diff(name, end - 1, end))
            except DuckLakeError as error:
                parts.append(f"<p><b>{escape(name)}</b> {escape(str(error))}</p>")
        more = f"<p>{len(tables) - _TABLES} more tables; choose two snapshots to compare one of them.</p>"
        return {"html": "".join(parts) + (more if len(tables) > _TABLES else "") or "<p>It touched no table.</p>"}

    def answer_lake(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static view of the lake at a snapshot."""
        if self._lake is None:
            raise UsageError("This browser has no lake to look into.")
        return {"html": self._lake(int(content["snapshot"]))}

    def still(self) -> str:
        return snapshots.render(self.history, self.title)

    def __len__(self) -> int:
        return len(self.history)

    def __getitem__(self, index: Any) -> Any:
        return self.history[index]

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self.history)

    def __repr__(self) -> str:
        newest = sorted(self.history, key=lambda entry: entry.info.snapshot_id, reverse=True)
        return "\n".join(timeline.describe(entry) for entry in newest[: snapshots.LIMIT]) or "No snapshots."


def _changes(entry: HistoryEntry) -> str:
    """Returns the changes of a snapshot, one per line."""
    more = f"\n{len(entry.changes) - 40} more" if len(entry.changes) > 40 else ""
    return clip("\n".join(visible(clip(change, 120)) for change in entry.changes[:40]), 4000) + more


def _numbers(entries: Sequence[HistoryEntry]) -> bytes:
    """Returns the numbers of all snapshots for the timeline."""
    return pack(
        {
            "id": ("long", [entry.info.snapshot_id for entry in entries]),
            "time": ("float", [entry.info.snapshot_time.timestamp() * 1000 for entry in entries]),
            "kind": ("int", [_KINDS.index(entry.kind) for entry in entries]),
            "version": ("long", [entry.info.schema_version for entry in entries]),
            "added": ("long", [entry.rows_added for entry in entries]),
            "removed": ("long", [entry.rows_removed for entry in entries]),
            "at_most": ("int", [int(entry.at_most) for entry in entries]),
            "bytes_added": ("long", [entry.bytes_added for entry in entries]),
            "bytes_removed": ("long", [entry.bytes_removed for entry in entries]),
        }
    )
