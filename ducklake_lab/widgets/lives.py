"""The change that set a cell, and the life of its row, for a page; texts of a lake are plain text there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ducklake_lab.diff.diff import Diff
from ducklake_lab.diff.model import RowChange
from ducklake_lab.diff.row_diff import RowDiff
from ducklake_lab.model.row_life import RowChanged, RowLife
from ducklake_lab.redaction import hide
from ducklake_lab.widgets.html import clip, counted, readable, time, visible, zone

#: Most changes of a row, cells of a change, row ids that are offered, and characters of a value.
CHANGES, CELLS, ROWS, TEXT = 100, 40, 20, 300
_NAME, _SQL = 120, 4000


def life_of_cell(life: RowLife, column: str | None, *, is_open: bool = False) -> dict[str, Any]:
    """Returns a row's newest changes and the one that set a cell.

    Args:
        column: the cell's column; None for a value that is no column of the table.
        is_open: changes that are not committed are shown beside the row.
    """
    first = max(0, len(life.changes) - CHANGES)
    setter = None if column is None else life.setter(column)
    return {
        "table": _text(life.table),
        "row": str(life.row_id),
        "at": life.snapshot_id,
        "column": None if column is None else _text(column),
        "set": None if setter is None else _change(life.changes[setter], column),
        "sentence": _sentence(life, column, setter, is_open=is_open),
        "changes": [_change(change, column) for change in life.changes[first:]],
        "setter": None if setter is None or setter < first else setter - first,
        "earlier": first,
        "known_from": life.known_from,
    }


def looking_alike(table: str, ids: Sequence[int]) -> dict[str, Any]:
    """Returns the choice between rows that show the same values."""
    more = f"; the first {ROWS} are" if len(ids) > ROWS else ":"
    sentence = f"{counted(len(ids), 'row')} of {_text(table)} show these values{more}"
    return {"rows": [str(one) for one in ids[:ROWS]], "sentence": sentence}


def of_row(
    table: str, ids: Sequence[int], chosen: object, life: Callable[[int], RowLife], column: str | None, *, is_open: bool
) -> dict[str, Any]:
    """Returns the life of the only row, or of the chosen one, or the choice between several."""
    if chosen is not None:
        ids = [one for one in ids if str(one) == chosen]
    if len(ids) != 1:
        return looking_alike(table, ids)
    return life_of_cell(life(ids[0]), column, is_open=is_open)


def has_lives(diff: RowDiff) -> bool:
    """Returns whether what changed the rows of a diff can be read."""
    return isinstance(diff, Diff) and diff.lives is not None and not diff.key


def life_of_change(diff: RowDiff, row: RowChange, column: str, *, is_open: bool) -> dict[str, Any]:
    """Returns the life of a cell of a changed row.

    Args:
        is_open: the change is not committed, and may still be.
    """
    named_life = diff.life(row.row_id, row.kind, column) if isinstance(diff, Diff) else None
    if named_life is None:
        return {"sentence": f"No snapshot up to {diff.start.snapshot_id} has this value of {_text(column)}."}
    life, name = named_life
    return life_of_cell(life, name, is_open=is_open)


def _sentence(life: RowLife, column: str | None, setter: int | None, *, is_open: bool) -> str:
    """Returns a remark: of what is not known, and of what is not shown."""
    parts = []
    if column is None:
        parts.append(f"This value is no column of {_text(life.table)}.")
    elif setter is None:
        since = f" {life.known_from}" if life.known_from is not None else " that is left"
        parts.append(f"Set before snapshot{since}; earlier snapshots have expired.")
    elif life.changes[setter].time is None:
        parts.append("This snapshot has expired, and its author with it.")
    if is_open:
        parts.append("Changes that are not committed have no snapshot yet.")
    return " ".join(parts)


def _change(change: RowChanged, column: str | None) -> dict[str, Any]:
    cells: Mapping[str, list[str | None]] = {
        cell.column: [_text(cell.column), _value(cell.before), _value(cell.after)] for cell in change.cells
    }
    # the cell that is asked about stands first
    names = sorted(cells, key=lambda name: name != column)[:CELLS]
    where = clip(change.notebook or "", _NAME) + (f" [{change.cell}]" if change.cell is not None else "")
    moment = change.time
    return {
        "snapshot": change.snapshot_id,
        "kind": change.kind,
        "time": "" if moment is None else f"{time(moment, precise=True)} {zone(moment)}",
        "author": _text(change.author or ""),
        "message": _text(change.message or ""),
        "statement": readable(clip(hide(change.statement or ""), _SQL)).strip(),
        "origin": visible(where).strip(),
        "cells": [cells[name] for name in names],
        "more": len(cells) - len(names),
    }


def _text(text: str) -> str:
    return visible(clip(text, TEXT))


def _value(text: str | None) -> str | None:
    return None if text is None else _text(text)
