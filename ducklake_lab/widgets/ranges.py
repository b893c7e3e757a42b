"""Ranges of each column in the files, from min to max: how well the files divide the column's values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.history import FileEntry
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.types import DataType
from ducklake_lab.model.values import Scalar, bound
from ducklake_lab.widgets.html import clip, escape

if TYPE_CHECKING:
    from ducklake_lab.session.listings import FileListing

#: Most columns drawn, best divided first.
_COLUMNS = 12
#: Most files drawn per column; the depth counts all of them.
_FILES = 80
#: Most files that the static view compares.
_LOOKED_AT = 200

STYLE = """
.dlk .dlk-range svg{background:var(--dlk-tint);border-radius:3px;margin:3px 0}
.dlk .dlk-range .dlk-soft{font-size:11px}
"""


@dataclass(frozen=True, slots=True)
class Intervals:
    """The files' ranges in one column.

    Attributes:
        spans: (low, high) per file, as shares 0.0 to 1.0 of the column's whole range.
        depth: the average number of files that a filter on one value reads, over all distinct file bounds.
            A file without known bounds counts for any value.
        sampled: whether it is an estimate from some of the files.
    """

    column: str
    low: str
    high: str
    spans: tuple[tuple[float, float], ...]
    depth: float
    sampled: bool = False

    @property
    def text(self) -> str:
        """The displayed depth."""
        return f"{'≈ ' if self.sampled else ''}{self.depth:.1f}"


def sample(files: Sequence[FileEntry]) -> Sequence[FileEntry]:
    """Returns every nth of many files: enough to show how well a column divides them."""
    return files if len(files) <= _LOOKED_AT else files[:: -(-len(files) // _LOOKED_AT)]


def intervals(files: FileListing) -> list[Intervals]:
    """Returns each column with ranges in at least two files, best divided first."""
    looked_at = sample(files)
    by_name: dict[str, list[ColumnStats]] = {}
    for entry in looked_at:
        for name, stats in entry.stats.items():
            by_name.setdefault(name, []).append(stats)
    columns = [
        item for name, stats in by_name.items() if (item := of_column(stats, name, files.types[name])) is not None
    ]
    if len(looked_at) < len(files):
        columns = [replace(item, depth=item.depth * len(files) / len(looked_at), sampled=True) for item in columns]
    # The sort is stable: columns with equal depth stay in the table's order.
    return sorted(columns, key=lambda item: round(item.depth, 1))


def of_column(known: Iterable[ColumnStats], name: str, kind: DataType) -> Intervals | None:
    """Returns the intervals of one column; None if fewer than two files have bounds, or all values are equal."""
    bounds: list[tuple[Scalar, Scalar]] = []
    texts: dict[Scalar, str] = {}
    unknown = 0
    for stats in known:
        low, high = bound(stats.min_value, kind), bound(stats.max_value, kind)
        if low is not None and high is not None:
            bounds.append((low, high))
            texts |= {low: str(stats.min_value), high: str(stats.max_value)}
        else:
            unknown += stats.value_count != 0
    values = sorted(texts)
    if len(bounds) < 2 or len(values) < 2:
        return None
    lows, highs = sorted(low for low, _ in bounds), sorted(high for _, high in bounds)
    holding = [bisect_right(lows, value) - bisect_left(highs, value) for value in values]
    places = _places(values)
    return Intervals(
        name,
        texts[values[0]],
        texts[values[-1]],
        tuple((places[low], places[high]) for low, high in bounds),
        sum(holding) / len(values) + unknown,
    )


def _places(values: Sequence[Scalar]) -> Mapping[Scalar, float]:
    """Maps sorted values to an axis from 0 to 1: numbers and times by amount, texts and infinite values by rank."""
    amounts = [amount for value in values if (amount := _amount(value)) is not None]
    if len(amounts) < len(values) or amounts[0] == amounts[-1]:
        amounts = [float(rank) for rank in range(len(values))]
    width = amounts[-1] - amounts[0]
    return {value: (amount - amounts[0]) / width for value, amount in zip(values, amounts, strict=True)}


def _amount(value: Scalar) -> float | None:
    if isinstance(value, Moment):
        return float(value.micros) if value.is_finite else None
    if isinstance(value, str | bytes) or (isinstance(value, Decimal) and not value.is_finite()):
        return None
    return float(value)


def section(files: FileListing) -> str:
    """Returns the strips of the best divided columns as HTML; "" if there are no ranges to compare."""
    columns = intervals(files)
    if not columns:
        return ""
    strips = "".join(_strip(item, len(files)) for item in columns[:_COLUMNS])
    note = (
        f"{min(len(columns), _COLUMNS)} of {len(columns)} columns, best divided first"
        if len(columns) > _COLUMNS
        else ""
    )
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
        # A file with one value becomes a dot: a round cap on a line without length.
        lines.append(
            f'<line x1="{1 + 98 * low:.1f}%" x2="{1 + 98 * max(high, low + 0.006):.1f}%" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="#4f7fd6" stroke-width="{max(1.2, step - 1.4):.1f}" stroke-linecap="round"/>'
        )
    label = f"{clip(item.column, 60)}: a filter on one value reads {item.text} of {total} files on average"
    return (
        f'<div class="dlk-range"><div class="dlk-strip"><b>{escape(clip(item.column, 40))}</b>'
        f'<span class="dlk-soft">reads {item.text} of {total} files</span></div>'
        f'<svg role="img" aria-label="{escape(label)}" width="100%" height="{height:.0f}">{"".join(lines)}</svg>'
        f'<div class="dlk-strip dlk-soft"><span>{escape(clip(item.low, 22))}</span>'
        f"<span>{escape(clip(item.high, 22))}</span></div></div>"
    )
