"""Names and colours of values that stand beside each other in a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ducklake_lab.model.history import ChangeKind

#: Fills with at least 3:1 contrast on white and near-black, which colour-blind readers distinguish too.
KIND_COLORS: Mapping[ChangeKind, str] = {
    "insert": "#159a72",
    "update": "#c07c00",
    "delete": "#d9482f",
    "restore": "#4f7fd6",
    "schema": "#8a63d2",
    "maintenance": "#7d8590",
    "none": "#a0a7af",
}


def label(text: str | None) -> str:
    """Name a value: NULL as such; texts that read as NULL or as empty in quotes."""
    if text is None:
        return "NULL"
    return f"'{text}'" if text in ("NULL", "") or text[0] == text[-1] == "'" else text


def state_title(snapshot_id: int, *, uncommitted: bool) -> str:
    """State of a lake that is read: a snapshot id, and whether uncommitted changes are read with it."""
    return f"{snapshot_id} + uncommitted changes" if uncommitted else str(snapshot_id)


def distinct(labels: Iterable[str]) -> list[str]:
    """The labels, numbered where an earlier one is the same: bars of one label would lie over each other."""
    taken: dict[str, None] = {}
    for text in labels:
        name, number = text, 2
        while name in taken:
            name, number = f"{text} ({number})", number + 1
        taken[name] = None
    return list(taken)
