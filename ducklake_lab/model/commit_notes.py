"""Notes of a commit about its statements, in `commit_extra_info` (spec: ducklake_snapshot_changes).

The specification leaves that text to the writer. Here it is a JSON object with the members of `CommitNote`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

#: Characters of SQL that are kept of a commit.
LONGEST = 4_000
#: Characters of a text that is read; longer ones are none of ours.
_LONGEST_READ = 100_000


@dataclass(frozen=True, slots=True)
class Restored:
    """A table that was restored to a snapshot.

    Attributes:
        snapshot_id: of that snapshot.
        at_most: rows moved whose values were not compared, so that counts of moved rows are upper bounds.
    """

    snapshot_id: int
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """A branch that was merged.

    Attributes:
        branch: its name.
        snapshot_id: the last of its snapshots that was merged.
        authors: of the snapshots that were merged, each once.
    """

    branch: str
    snapshot_id: int
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Other states that a commit takes its content from.

    Attributes:
        restored: ids of the tables that were restored, each with its snapshot.
        reverted: ids of the snapshots whose changes it takes back.
        merged: the branch that it merges.
    """

    restored: Mapping[int, Restored] = field(default_factory=dict)
    reverted: Sequence[int] = ()
    merged: Merged | None = None

    def members(self) -> dict[str, object]:
        """Return the members of a note that say so."""
        members: dict[str, object] = {}
        if self.restored:
            members["restored"] = [
                {"table_id": table, "snapshot_id": to.snapshot_id} | ({"at_most": True} if to.at_most else {})
                for table, to in self.restored.items()
            ]
        if self.reverted:
            members["reverted"] = list(dict.fromkeys(self.reverted))
        if self.merged is not None:
            members["merged"] = {"branch": self.merged.branch, "snapshot_id": self.merged.snapshot_id}
            if self.merged.authors:
                members["merged"] |= {"authors": list(self.merged.authors)}  # type: ignore[operator]
        return members


#: The origin of most commits.
NOWHERE = Origin()

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class CommitNote:
    """Note of a commit about its statements and their origin; unknown members are None.

    Attributes:
        statement: the SQL, statements of a transaction with `;` and a new line between them, with `***` for secrets, cut
            after `LONGEST` characters.
        is_cut: some of the SQL is missing.
        kind: `UPDATE`, `ALTER TABLE`, …; several of a transaction with commas between them.
        duration_ms: from the begin of each statement to its end, or to that of the commit's preparation; in all.
        notebook: the name of the notebook's file.
        cell: the number of the cell's execution.
        restored: ids of the tables that were restored, each with its snapshot.
        reverted: ids of the snapshots whose changes it takes back.
        merged: the branch that it merges.
    """

    statement: str | None = None
    is_cut: bool = False
    kind: str | None = None
    duration_ms: float | None = None
    notebook: str | None = None
    cell: int | None = None
    restored: tuple[tuple[int, Restored], ...] = ()
    reverted: tuple[int, ...] = ()
    merged: Merged | None = None


@dataclass(frozen=True, slots=True)
class StatementNote:
    """One statement of a commit: its SQL without secrets, its kind, how long it took, and whether SQL is missing."""

    text: str
    kind: str
    seconds: float
    is_cut: bool = False


def write(
    statements: Sequence[StatementNote],
    context: Mapping[str, object],
    origin: Origin = NOWHERE,
) -> str | None:
    """Write the note of some statements and of the place they ran at; None for an empty one.

    Args:
        context: further members, such as `notebook` and `cell`.
    """
    members: dict[str, object] = {}
    if statements:
        text = ";\n".join(note.text for note in statements if note.text)
        if text:
            members["statement"] = text[:LONGEST]
        if len(text) > LONGEST or any(note.is_cut for note in statements):
            members["is_cut"] = True
        members["kind"] = ", ".join(dict.fromkeys(note.kind for note in statements))
        members["duration_ms"] = round(1000 * sum(note.seconds for note in statements), 1)
    members |= {name: value for name, value in context.items() if value is not None}
    members |= origin.members()
    return _text(members) if members else None


def with_origin(text: str, origin: Origin) -> str:
    """Add an origin to another writer's text: to its object, or in a line below it."""
    members = origin.members()
    if not members:
        return text
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        note = None
    if isinstance(note, dict):
        return _text({**note, **members, **note}) if members.keys() - note.keys() else text
    line = _text(members)
    return text if text.endswith(line) else f"{text}\n{line}"


def _text(members: Mapping[str, object]) -> str:
    # half of a surrogate pair is no text that a database takes
    return json.dumps(members, ensure_ascii=False).encode(errors="replace").decode()


def read(text: str | None) -> CommitNote | None:
    """Read a note that `write`, or another writer like it, made; None for any other text."""
    if text is None or len(text) > _LONGEST_READ:
        return None
    if not text.lstrip().startswith("{"):
        # see `with_origin`
        text = text.rpartition("\n")[2]
        if not text.startswith(('{"restored"', '{"reverted"', '{"merged"')):
            return None
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    note = CommitNote(
        statement=_of_type(members, "statement", str),
        is_cut=_of_type(members, "is_cut", bool) or False,
        kind=_of_type(members, "kind", str),
        duration_ms=_milliseconds(members),
        notebook=_of_type(members, "notebook", str),
        cell=_of_type(members, "cell", int),
        restored=_restored(members),
        reverted=tuple(one for one in _of_type(members, "reverted", list) or () if type(one) is int),
        merged=_merged(members),
    )
    return note if note != CommitNote() else None


def _of_type(members: Mapping[str, object], name: str, kind: type[_Value]) -> _Value | None:
    value = members.get(name)
    return value if type(value) is kind else None


def _restored(members: Mapping[str, object]) -> tuple[tuple[int, Restored], ...]:
    pairs = []
    for entry in _of_type(members, "restored", list) or ():
        table, snapshot = (entry.get(name) if isinstance(entry, dict) else None for name in ("table_id", "snapshot_id"))
        if type(table) is int and type(snapshot) is int:
            pairs.append((table, Restored(snapshot, entry.get("at_most") is True)))
    return tuple(pairs)


def _merged(members: Mapping[str, object]) -> Merged | None:
    entry = _of_type(members, "merged", dict) or {}
    branch, snapshot = _of_type(entry, "branch", str), _of_type(entry, "snapshot_id", int)
    if branch is None or snapshot is None:
        return None
    authors = tuple(one for one in _of_type(entry, "authors", list) or () if isinstance(one, str))
    return Merged(branch, snapshot, authors)


def _milliseconds(members: Mapping[str, object]) -> float | None:
    value = members.get("duration_ms")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None
