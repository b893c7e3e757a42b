"""The text form of a diff for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.widgets import values
from ducklake_lab.widgets.diff_rows import MARKS, has_row_ids, step
from ducklake_lab.widgets.html import percent, visible

if TYPE_CHECKING:
    from ducklake_lab.diff.row_diff import RowDiff


def text(diff: RowDiff) -> str:
    """Returns a diff as lines of text: counts, schema, segments and rows, marked −, + and →."""
    s = diff.summary
    end = diff.end.snapshot_id if diff.end is not None else "uncommitted"
    lines = [
        f"{diff.table}  snapshot {diff.start.snapshot_id} → {end}",
        f"{s.deleted:,} deleted · {s.inserted:,} inserted · {s.updated:,} updated · {s.unchanged:,} unchanged"
        f" · {s.cells:,} cells changed",
    ]
    for change in diff.schema:
        was, now = (" ".join(side) if side else "" for side in (change.before, change.after))
        lines.append(f"schema: {change.kind} {' → '.join(part for part in (was, now) if part)}")
    for p in diff.patterns:
        among = f", {percent(p.unchanged_share)} of unchanged rows" if p.unchanged_share is not None else ""
        lines.append(f"{percent(p.share)} of {p.kind} rows have {p.condition}{among}")
    for row in diff.page(diff.limit, 0, diff.choice, as_shown=True):
        cells = []
        side = row.after or row.before or {}
        for name in dict.fromkeys([*(name for name in diff.key if name in side), *side]):
            after = side[name]
            if name in row.changed and row.before is not None:
                by = step(row, name)
                cells.append(f"{name}={values.text(row.before.get(name))}→{values.text(after)}{by and ' ' + by}")
            elif row.kind != "updated" or name in diff.key:
                cells.append(f"{name}={values.text(after)}")
        number = f" {row.row_id}" if has_row_ids(diff) else ""
        lines.append(f"{MARKS[row.kind]}{number}  {'  '.join(cells)}")
    if (more := diff.count(diff.choice) - diff.limit) > 0:
        lines.append(f"… {more:,} more changed rows")
    return "\n".join(visible(line) for line in lines)
