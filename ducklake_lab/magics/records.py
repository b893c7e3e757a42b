"""Records of outputs as a page sends them. It has them from a notebook, which anybody may have written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ducklake_lab.errors import UsageError
from ducklake_lab.model.reads import RecordedPart


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a record; the id is None for one that no commit had made.

    Attributes:
        part: what was read of a table.
    """

    kind: str
    entry_id: int | None
    schema: tuple[str, ...]
    name: str
    part: RecordedPart


@dataclass(frozen=True, slots=True)
class Recorded:
    """A state in the record of an output.

    Attributes:
        tables: the tables that were read.
        definitions: the views and macros that were expanded.
    """

    lake: str
    alias: str
    snapshot: int
    time: str
    tables: tuple[Entry, ...]
    definitions: tuple[Entry, ...]


def parsed(given: object) -> list[Recorded]:
    """Returns the records that a page sends; it has them from a notebook, which anybody may have written."""
    try:
        if not isinstance(given, list):
            raise TypeError
        return [
            Recorded(
                _of(str, one["lake"]),
                _of(str, one["alias"]),
                _of(int, one["snapshot"]),
                _of(str, one["time"]),
                tuple(_entry("table", entry) for entry in _of(list, one["tables"])),
                tuple(_entry(_of(str, entry["kind"]), entry) for entry in _of(list, one.get("definitions", []))),
            )
            for one in given
        ]
    except (TypeError, KeyError, IndexError, AttributeError):
        raise UsageError("The records of outputs have a form that this version does not know.") from None


def _entry(kind: str, given: Mapping[str, object]) -> Entry:
    if kind not in ("table", "view", "macro"):
        raise TypeError
    schema = tuple(_of(str, part) for part in _of(list, given["schema"]))
    entry_id = None if given["id"] is None else _of(int, given["id"])
    part = RecordedPart.of(given) if kind == "table" else RecordedPart()
    return Entry(kind, entry_id, schema, _of(str, given["name"]), part)


def _of(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and not 0 <= value < 1 << 62):
        raise TypeError
    return value
