"""Remarks on a branch: comments on tables, rows and cells, approvals, and requests for changes.

They are options of the branch's own catalog (ADR 106): other clients leave those alone, no snapshot has them, and no merge brings them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.options import write_option
from ducklake_lab.errors import EntryNotFoundError, UsageError

Kind = Literal["comment", "approval", "request"]
#: "approved earlier" is an approval of an earlier state of the branch.
Verdict = Literal["changes asked for", "approved", "approved earlier"]

#: Prefix of the options that are remarks; the rest of the key is the remark's id.
PREFIX = "ducklake_lab_remark:"
#: Most characters of a text, and of an author's name.
LONGEST, LONGEST_NAME = 5_000, 200
#: Most remarks that are read, the newest.
MOST = 1_000
#: Each kind, and what its author did.
DEEDS: Mapping[Kind, str] = {"comment": "comment", "approval": "approved", "request": "changes asked for"}


@dataclass(frozen=True, slots=True)
class Remark:
    """Remark of somebody on a branch.

    Attributes:
        remark_id: letters and digits.
        kind: `comment`; `approval`; or `request`, which asks for changes.
        text: of up to 5,000 characters; "" for an approval without words.
        author: the name that the session gave; None without one.
        time: in UTC.
        snapshot_id: the branch's snapshot that its author had seen.
        generation: the number of the branch's catalog, which a rebase makes anew.
        table: `schema.table`; None for the branch as a whole.
        table_id: of the table on the branch.
        row_id: None for a table as a whole, or for a column.
        column: None for a whole row or table.
    """

    remark_id: str
    kind: Kind
    text: str
    author: str | None
    time: datetime
    snapshot_id: int
    generation: int = 0
    table: str | None = None
    table_id: int | None = None
    row_id: int | None = None
    column: str | None = None

    @property
    def about(self) -> str:
        """The place that it is about, in words: `main.t row 17 amount`; "" for the branch as a whole."""
        row = f" row {self.row_id}" if self.row_id is not None else ""
        column = f" {self.column}" if self.column is not None else ""
        return f"{self.table}{row}{column}" if self.table is not None else ""

    def to_dict(self) -> dict[str, Any]:
        """The remark as values that JSON has."""
        return {
            "id": self.remark_id,
            "kind": self.kind,
            "text": self.text,
            "author": self.author,
            "time": self.time.isoformat(),
            "snapshot_id": self.snapshot_id,
            "table": self.table,
            "row_id": self.row_id,
            "column": self.column,
        }

    def json(self) -> str:
        """Return the remark as text, without its id."""
        given = {name: value for name, value in self.to_dict().items() if name != "id" and value is not None}
        given |= {"generation": self.generation}
        if self.table_id is not None:
            given["table_id"] = self.table_id
        # half of a surrogate pair is no text that a database takes
        return json.dumps(given, ensure_ascii=False).encode(errors="replace").decode()


def new_remark(
    kind: Kind,
    text: str,
    author: str | None,
    snapshot_id: int,
    generation: int,
    *,
    table: tuple[str, int] | None = None,
    row_id: int | None = None,
    column: str | None = None,
) -> Remark:
    """Return a remark of now.

    Args:
        table: its name and its id.

    Raises:
        UsageError: it has no text, and is no approval; or the text or the name is too long.
    """
    text = text.strip()
    if not text and kind != "approval":
        raise UsageError("A comment, or a request for changes, needs a text.")
    if len(text) > LONGEST:
        raise UsageError(f"A comment has up to {LONGEST:,} characters, and this one {len(text):,}; shorten it.")
    name = (author or "").strip() or None
    if name is not None and len(name) > LONGEST_NAME:
        raise UsageError(f"The name of an author has up to {LONGEST_NAME} characters.")
    title, table_id = table if table is not None else (None, None)
    return Remark(
        uuid.uuid4().hex,
        kind,
        text,
        name,
        datetime.now(UTC),
        snapshot_id,
        generation,
        title,
        table_id,
        row_id,
        column,
    )


def read_remarks(connection: sa.Connection) -> list[Remark]:
    """Return the remarks of a branch, oldest first; options that are no remarks of ours are left out."""
    m = t.lake_metadata
    query = sa.select(m.c.key, m.c.value).where(m.c.scope.is_(None), m.c.key.startswith(PREFIX, autoescape=True))
    read = (_read(str(key)[len(PREFIX) :], str(value)) for key, value in connection.execute(query))
    return sorted((one for one in read if one is not None), key=lambda one: (one.time, one.remark_id))[-MOST:]


def _read(remark_id: str, text: str) -> Remark | None:
    try:
        given = json.loads(text)
        moment = datetime.fromisoformat(given["time"])
        remark = Remark(
            remark_id,
            given["kind"],
            given["text"],
            given.get("author"),
            moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC),
            given["snapshot_id"],
            given.get("generation", 0),
            given.get("table"),
            given.get("table_id"),
            given.get("row_id"),
            given.get("column"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    texts = (remark.kind, remark.text, *_given(remark.author, remark.table, remark.column))
    numbers = (remark.snapshot_id, remark.generation, *_given(remark.table_id, remark.row_id))
    is_valid = (
        remark_id.isascii()
        and remark_id.isalnum()
        and all(isinstance(one, str) for one in texts)
        and remark.kind in DEEDS
        and all(type(one) is int for one in numbers)
        and (remark.table is not None or (remark.row_id is None and remark.column is None))
    )
    return remark if is_valid else None


def _given(*values: object) -> list[object]:
    return [value for value in values if value is not None]


def write_remark(connection: sa.Connection, remark: Remark) -> None:
    """Store a remark; the caller commits."""
    write_option(connection, (None, None), PREFIX + remark.remark_id, remark.json())


def remove_remark(connection: sa.Connection, remark_id: str) -> None:
    """Remove a remark; the caller commits.

    Raises:
        EntryNotFoundError: the branch has no such remark.
    """
    known = {one.remark_id for one in read_remarks(connection)}
    if remark_id not in known:
        raise EntryNotFoundError(f'The branch has no remark "{remark_id[:60]}"; review.remarks lists them.')
    write_option(connection, (None, None), PREFIX + remark_id, None)


def verdict_of(remarks: Iterable[Remark], snapshot_id: int, generation: int) -> Verdict | None:
    """Return the verdict of the newest approval or request of each author; None where nobody gave one.

    One request for changes outweighs all approvals. It holds until its author approves, or it is removed.

    Args:
        snapshot_id, generation: the state of the branch that is judged.
    """
    latest: dict[str | None, Remark] = {}
    for remark in remarks:
        if remark.kind != "comment":
            latest[remark.author] = remark
    if any(one.kind == "request" for one in latest.values()):
        return "changes asked for"
    if any((one.snapshot_id, one.generation) == (snapshot_id, generation) for one in latest.values()):
        return "approved"
    return "approved earlier" if latest else None


def carried(
    remarks: Sequence[Remark], first_rows: Mapping[int, int], table_ids: Mapping[int, int | None]
) -> list[Remark]:
    """Return the remarks of a branch as they are after its rebase.

    Rows that came on the branch have other ids then: a remark on one of them is about its table, and says so.

    Args:
        first_rows: the first row ids that the branch gave out, by table id; of a table that is absent all are its own.
        table_ids: ids of tables now, by those from before; None for a table that is gone. Others are as they were.
    """
    found = []
    for remark in remarks:
        changed = remark
        if remark.row_id is not None and remark.row_id >= first_rows.get(remark.table_id or 0, 0):
            text = f"{remark.text}\n(on row {remark.row_id}, which has another id since a rebase)"
            changed = replace(changed, row_id=None, text=text.strip())
        if remark.table_id is not None and remark.table_id in table_ids:
            changed = replace(changed, table_id=table_ids[remark.table_id])
        found.append(changed)
    return found
