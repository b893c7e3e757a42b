"""Statistics of columns of files that others wrote, from what footers say of their chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ducklake_lab.duckdb.bounds import smallest_and_largest
from ducklake_lab.model.entries import Column
from ducklake_lab.model.extra_stats import geometry_text, merge_geometries
from ducklake_lab.model.files import ColumnStats, counts
from ducklake_lab.model.types import DataType

#: Fields that describe a column chunk, in the order of `Chunk`.
FIELDS = (
    *("column_id", "num_values", "stats_null_count", "stats_min", "stats_min_value", "stats_max", "stats_max_value"),
    *("total_compressed_size", "geo_bbox", "geo_types"),
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column's values in a row group, as the footer describes them.

    Attributes:
        leaf: the column's number among those that hold values.
        old_low: the text of the least value, where old writers put it; new_low, where new ones do.
    """

    leaf: int
    value_count: int | None
    null_count: int | None
    old_low: str | None
    new_low: str | None
    old_high: str | None
    new_high: str | None
    size: int | None
    box: Mapping[str, float] | None
    geometries: Sequence[str] | None

    @property
    def low(self) -> str | None:
        return self.new_low if self.old_low is None else self.old_low

    @property
    def high(self) -> str | None:
        return self.new_high if self.old_high is None else self.old_high


def constant(column_id: int, value: str | None, rows: int) -> ColumnStats:
    """Statistics of a column that has one value in a file."""
    return ColumnStats(
        column_id=column_id,
        column_size_bytes=0,
        value_count=rows if value is not None else 0,
        null_count=0 if value is not None else rows,
        min_value=value,
        max_value=value,
        min_is_exact=value is not None or None,
        max_is_exact=value is not None or None,
    )


def merged(column: Column, kind: DataType | None, chunks: Sequence[Chunk]) -> ColumnStats:
    value_count, null_count = counts(_total(c.value_count for c in chunks), _total(c.null_count for c in chunks))
    # in a nested column a chunk may have as many NULLs as values, and values none the less
    lows = [c.low for c in chunks if c.low is not None or c.null_count != c.value_count]
    highs = [c.high for c in chunks if c.high is not None or c.null_count != c.value_count]
    return ColumnStats(
        column_id=column.column_id,
        column_size_bytes=sum(c.size or 0 for c in chunks),
        value_count=value_count,
        null_count=null_count,
        min_value=_bound(0, lows, column.data_type),
        max_value=_bound(1, highs, column.data_type),
        extra_stats=_geometry(chunks) if column.type == "geometry" else None,
        # other writers may have cut them
        min_is_exact=False,
        max_is_exact=False,
        written_type=kind,
    )


def _bound(end: int, texts: Sequence[str | None], data_type: DataType) -> str | None:
    """The least (0) or the greatest (1) of the bounds of chunks; None where one has none."""
    bounds = [text for text in texts if text is not None]
    if not bounds or len(bounds) < len(texts):
        return None
    return bounds[0] if len(bounds) == 1 else smallest_and_largest(bounds, data_type)[end]


def _total(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None or count < 0:
            return None
        total += count
    return total


def _geometry(chunks: Sequence[Chunk]) -> str | None:
    boxes = []
    for chunk in chunks:
        if chunk.box is None:
            return None
        names = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
        boxes.append(geometry_text({name: chunk.box[name] for name in names}, list(chunk.geometries or [])))
    return merge_geometries(boxes) if boxes else None
