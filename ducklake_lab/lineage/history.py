"""Statements that wrote tables, from the notes of commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model import commit_notes
from ducklake_lab.model.changes import parse_changes
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse

#: Words without which no statement names a table that it reads.
_READING = ("from", "using", "table", "join", "update", "merge")


@dataclass(frozen=True, slots=True)
class Noted:
    """A statement of a snapshot that wrote a table from others.

    Attributes:
        changed: ids of the tables that the snapshot changed, and folded names of those that it created.
    """

    snapshot_id: int
    operation: op.CreateTable | op.Insert | op.Update | op.Merge
    changed: frozenset[int | str]
    via: str


def noted_statements(lake: Lake) -> Iterator[Noted]:
    """Yields the statements of the lake's snapshots that may have moved values between tables, oldest first.

    Statements that a commit did not note, or of which it noted a part, are missing.
    """
    with lake.connect() as connection:
        history = read_history(connection)
    for info in history:
        note = commit_notes.read(info.commit_extra_info)
        if note is None or note.statement is None or note.is_cut:
            continue
        if not any(word in note.statement.casefold() for word in _READING):
            continue
        changed: set[int | str] = set()
        for change in parse_changes(info.changes_made):
            changed.add(change.value if isinstance(change.value, int) else change.value[-1].casefold())
        for operation in _operations(note.statement):
            yield Noted(info.snapshot_id, operation, frozenset(changed), _VIA[type(operation)])


_VIA: dict[type, str] = {
    op.CreateTable: "CREATE TABLE AS",
    op.Insert: "INSERT",
    op.Update: "UPDATE",
    op.Merge: "MERGE",
}


def _operations(text: str) -> Iterator[op.CreateTable | op.Insert | op.Update | op.Merge]:
    try:
        statements = parse(text, keep_refused=True)
    except DuckLakeError:
        return  # another writer's text, or one with parameters, whose values are not noted
    for statement in statements:
        operation = statement.operation
        is_written = isinstance(operation, op.CreateTable | op.Insert) and operation.query is not None
        if is_written or isinstance(operation, op.Update | op.Merge):
            yield operation  # type: ignore[misc]
