"""Per column, the interval from min to max of every file: how well the files divide the column's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.history import FileEntry
from ducklake_lab.widgets.html import clip, escape

#: Columns drawn, best divided first.
_COLUMNS = 12
#: Files drawn per column; the depth counts all of them.
_FILES = 80
#: Files that the static view compares.
_LOOKED_AT = 200

STYLE = """
.dlk .dlk-range svg{background:var(--dlk-tint);border-radius:3px;margin:3px 0}
.dlk .dlk-range .dlk-soft{font-size:11px}
"""


@dataclass(frozen=True, slots=True)
class Intervals:
    """The files' ranges of one column.

    Attributes:
        spans: (low, high) per file, 0.0 to 1.0 of the column's whole range.
        depth: how many files hold a value of the column, on average over its range.
    """

    column: str
    low: str
    high: str
    spans: tuple[tuple[float, float], ...]
    depth: float


def sample(files: Sequence[FileEntry]) -> Sequence[FileEntry]:
    """An even part of very many files: enough to tell how well a column divides them."""
    return files if len(files) <= _LOOKED_AT else files[:: -(-len(files) // _LOOKED_AT)]


def intervals(files: Sequence[FileEntry]) -> list[Intervals]:
    """Every column with a range in at least two files, best divided first."""
    looked_at = sample(files)
    known: dict[str, list[ColumnStats]] = {}
    for entry in looked_at:
        for name, stats in entry.stats.items():
            known.setdefault(name, []).append(stats)
    found = [result for name, stats in known.items() if (result := of_column(stats, name)) is not None]
    found = [replace(item, depth=item.depth * len(files) / len(looked_at)) for item in found]
    # The sort is stable: columns alike in depth stay in the table's order.
    return sorted(found, key=lambda item: round(item.depth, 1))


def of_column(known: Iterable[ColumnStats], name: str) -> Intervals | None:
    """The intervals of one column; None where fewer than two files tell, or all hold one and the same value."""
    bounds = [
        (stats.min_value, stats.max_value)
        for stats in known
        if stats.min_value is not None and stats.max_value is not None
    ]
    return _intervals(name, bounds) if len(bounds) >= 2 else None


def _intervals(name: str, bounds: Sequence[tuple[str, str]]) -> Intervals | None:
    """None where all files hold one and the same value."""
    points = [text for pair in bounds for text in pair]
    place, texts = _scale(points)
    low, high = min(texts, key=place), max(texts, key=place)
    start, width = place(low), place(high) - place(low)
    if width <= 0:
        return None
    spans = tuple(((place(least) - start) / width, (place(most) - start) / width) for least, most in bounds)
    # A file of one value still holds that value: it counts as a narrow interval.
    depth = sum(max(most - least, 1 / (4 * len(bounds))) for least, most in spans)
    return Intervals(name, low, high, spans, max(depth, 1.0))


def _scale(points: Sequence[str]) -> tuple[Callable[[str], float], Sequence[str]]:
    """Puts values given as text on an axis: by amount where all are numbers or times, else by rank."""
    for parse in (float, _moment):
        try:
            places = {text: parse(text) for text in points}
        except (ValueError, OverflowError):
            continue
        if all(abs(value) < float("inf") for value in places.values()):
            return places.__getitem__, points
    ranks = {text: float(rank) for rank, text in enumerate(sorted(set(points)))}
    return ranks.__getitem__, points


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float(date.fromisoformat(text).toordinal() * 86400)


def section(files: Sequence[FileEntry]) -> str:
    """The strips of the best divided columns as HTML; "" where there is nothing to compare."""
    found = intervals(files)
    if not found:
        return ""
    strips = "".join(_strip(item, len(files)) for item in found[:_COLUMNS])
    note = f"{min(len(found), _COLUMNS)} of {len(found)} columns, best divided first" if len(found) > _COLUMNS else ""
    return (
        f"<h4>Ranges per column <small>one line per file from min to max; the fewer files share a value, "
        f'the more a filter skips. {note}</small></h4><div class="dlk-cols">{strips}</div>'
    )


def _strip(item: Intervals, total: int) -> str:
    shown = item.spans[:_FILES]
    step = 4.0 if len(shown) <= 24 else max(1.5, 96 / len(shown))
    height = step * len(shown) + 4
    lines = []
    for index, (low, high) in enumerate(shown):
        y = 3 + step * index + step / 2 - 1
        # A file of one value is drawn as a dot: a round cap on a line of no length.
        lines.append(
            f'<line x1="{1 + 98 * low:.1f}%" x2="{1 + 98 * max(high, low + 0.006):.1f}%" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="#4f7fd6" stroke-width="{max(1.2, step - 1.4):.1f}" stroke-linecap="round"/>'
        )
    label = f"{clip(item.column, 60)}: a value is in {item.depth:.1f} of {total} files on average"
    return (
        f'<div class="dlk-range"><div class="dlk-strip"><b>{escape(clip(item.column, 40))}</b>'
        f'<span class="dlk-soft">in {item.depth:.1f} of {total} files</span></div>'
        f'<svg role="img" aria-label="{escape(label)}" width="100%" height="{height:.0f}">{"".join(lines)}</svg>'
        f'<div class="dlk-strip dlk-soft"><span>{escape(clip(item.low, 22))}</span>'
        f"<span>{escape(clip(item.high, 22))}</span></div></div>"
    )
