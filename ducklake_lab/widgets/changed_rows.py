"""Changed rows of a diff as a page's grid takes them: which columns it shows, and ranges of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ducklake_lab.diff.model import RowChange, RowChoice
from ducklake_lab.widgets import diff_rows, values
from ducklake_lab.widgets.arrow import pack
from ducklake_lab.widgets.html import clip, count, counted, visible

if TYPE_CHECKING:
    from ducklake_lab.diff.row_diff import RowDiff

_TEXT = 300
#: Most columns of a grid.
MOST = 400


def facts(diff: RowDiff, choice: RowChoice, *, every: bool) -> dict[str, Any]:
    """Returns `columns` as [name, type, whether it is a number], `passing` as the number of chosen rows, and a `note`.

    Args:
        every: all columns, up to MOST; otherwise changed ones, and some to identify a row.
    """
    names, types = diff.names, {column.name: column.type for column in diff.columns}
    whole_rows = not choice.changed and choice.kind != "updated" and diff.summary.updated < diff.summary.changed
    changed = dict.fromkeys([*([choice.changed] if choice.changed else []), *diff_rows.most_changed(diff.columns)])
    if every:
        shown = list(dict.fromkeys([*diff.key, *changed, *names]))[:MOST]
    else:
        shown = diff_rows.chosen_names(names, changed, diff.key, whole_rows=whole_rows)
    notes = [f"a sample of {count(diff.count(choice))}"] if diff.sampled is not None else []
    if len(shown) < len(names):
        notes.append(f"{counted(len(names) - len(shown), 'more column')} not shown")
    return {
        "columns": [
            [name, clip(types.get(name, ""), 60).lower(), values.is_number(types.get(name, ""))] for name in shown
        ],
        "passing": diff.passing(choice),
        "note": " · ".join(notes),
    }


def packed(rows: Sequence[RowChange], names: Sequence[str]) -> bytes:
    """Returns rows with both values of each cell of some columns as texts; NULL is null."""
    columns: dict[str, tuple[str, list[object]]] = {
        "kind": ("text", [row.kind for row in rows]),
        "id": ("text", [str(row.row_id) for row in rows]),
    }
    for place, name in enumerate(names):
        columns[f"b{place}"] = ("text", [_text((row.before or {}).get(name)) for row in rows])
        columns[f"a{place}"] = ("text", [_later(row, name) for row in rows])
        columns[f"d{place}"] = ("bool", [name in row.changed for row in rows])
        columns[f"l{place}"] = ("bool", [row.after is None or name not in row.after for row in rows])
    return pack(columns)


def _later(row: RowChange, name: str) -> str | None:
    """The later value of a cell, with the change of a number in a diff of answers."""
    text = _text((row.after or {}).get(name))
    return text if text is None or name not in row.steps else f"{text} {visible(diff_rows.step(row, name))}"


def _text(value: object) -> str | None:
    return None if value is None else visible(clip(values.text(value), _TEXT))
