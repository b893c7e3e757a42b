"""Values of the changed rows per column, before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from ducklake_lab.diff.model import ColumnDiff, Histogram
from ducklake_lab.diff.pairs import RowCounts
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.model.binning import bin_sql, edge, equal_bins
from ducklake_lab.model.entries import Column
from ducklake_lab.model.labels import label
from ducklake_lab.model.types import TIMESTAMPS, DataType

_BINS = 12
_CATEGORIES = 8
#: Columns with a distribution, those that most updates touched first.
_COLUMNS = 40
#: Of a text with more values than this, the most frequent must make up a share of the rows to be worth showing.
_MANY = 200
_SHARE = 0.1


def columns(changed: ChangedRows, counts: RowCounts, renamed: Mapping[str, str]) -> list[ColumnDiff]:
    """Per column of the later schema: updated cells, and values before and after.

    Where rows were only updated, the values of a column that no update touched are left out.
    """
    whole_rows = bool(counts.inserted or counts.deleted)
    order = sorted(range(len(changed.columns)), key=lambda index: -counts.cells[index])
    drawn = {index for index in order if counts.cells[index] or whole_rows}
    drawn = set([index for index in order if index in drawn][:_COLUMNS])
    return [
        ColumnDiff(
            name=column.name,
            type=column.data_type.sql(),
            updated=counts.cells[index],
            share=counts.cells[index] / counts.updated if counts.updated else 0.0,
            histogram=histogram(changed, index, column) if index in drawn else None,
            renamed_from=renamed.get(column.name),
        )
        for index, column in enumerate(changed.columns)
    ]


def histogram(changed: ChangedRows, index: int, column: Column) -> Histogram | None:
    """Values of the column in the changed rows; None where there is nothing to see."""
    kind = column.data_type
    if kind.is_nested or kind.name in ("blob", "json", "uuid", "variant", "geometry"):
        return None
    if not (kind.is_numeric or _is_time(kind)):
        return _categories(changed, index)
    value = _number(index, kind)
    low, high, distinct, *ends = changed.row(
        "SELECT min(v), max(v), approx_count_distinct(v), min(c)::VARCHAR, max(c)::VARCHAR "
        f"FROM (SELECT {value} AS v, c{index} AS c FROM removed UNION ALL SELECT {value}, c{index} FROM added) "
        "WHERE v IS NOT NULL AND isfinite(v)"
    )
    if not isinstance(low, float) or not isinstance(high, float) or not isinstance(distinct, int):
        return None
    if distinct <= _CATEGORIES or low == high:
        return _categories(changed, index)
    bins = _bins(changed, value, kind, low, *equal_bins(low, high, kind, _BINS))
    return replace(bins, smallest=str(ends[0]), largest=str(ends[1]))


def _is_time(kind: DataType) -> bool:
    return kind.name == "date" or kind.name in TIMESTAMPS


def _number(index: int, kind: DataType) -> str:
    return f"epoch(c{index})::DOUBLE" if _is_time(kind) else f"c{index}::DOUBLE"


def _bins(changed: ChangedRows, value: str, kind: DataType, low: float, width: float, bins: int) -> Histogram:
    counted = changed.run(
        f"SELECT side, least({bin_sql('v', low, width)}, {bins - 1})::INTEGER AS b, count(*) FROM "
        f"(SELECT 0 AS side, {value} AS v FROM removed UNION ALL SELECT 1, {value} FROM added) "
        "WHERE v IS NOT NULL AND isfinite(v) GROUP BY ALL"
    )
    counts: tuple[list[int], list[int]] = ([0] * bins, [0] * bins)
    for side, b, count in zip(*(column.to_pylist() for column in counted.columns), strict=True):
        counts[side][b] = count
    zone = ZoneInfo(changed.time_zone) if kind.name == "timestamptz" else UTC
    # digits enough to tell the edges apart
    digits = 6 + max(0, math.ceil(math.log10(max(abs(low), abs(edge(low, width, bins - 1))) / width)))
    labels = tuple(_text(edge(low, width, b), kind, zone, digits) for b in range(bins))
    return Histogram(labels, tuple(counts[0]), tuple(counts[1]), numeric=True)


def _text(value: float, kind: DataType, zone: tzinfo, digits: int) -> str:
    if not _is_time(kind):
        return f"{value:.{digits}g}"
    try:
        moment = datetime.fromtimestamp(value, zone)
    except (OverflowError, ValueError, OSError):
        return f"{value:.6g} s"  # a time Python does not reach
    return moment.date().isoformat() if kind.name == "date" else moment.replace(tzinfo=None).isoformat(" ", "seconds")


def _categories(changed: ChangedRows, index: int) -> Histogram | None:
    groups = changed.run(
        f"""
        WITH v AS (SELECT c{index}::VARCHAR AS label, 1 AS b, 0 AS a FROM removed
                   UNION ALL SELECT c{index}::VARCHAR, 0, 1 FROM added),
             groups AS (SELECT left(label, 200) AS label, sum(b)::BIGINT AS b, sum(a)::BIGINT AS a FROM v GROUP BY 1)
        SELECT label, b, a, count(*) OVER () AS distinct_values, sum(a + b) OVER () AS total
        FROM groups ORDER BY a + b DESC, label LIMIT {_CATEGORIES}
        """
    )
    if groups.num_rows < 2:
        return None
    labels, before, after, distinct, total = (column.to_pylist() for column in groups.columns)
    if distinct[0] > _MANY and sum(before) + sum(after) < _SHARE * int(total[0]):
        return None
    named = tuple(label(text) for text in labels)
    return Histogram(named, tuple(before), tuple(after), numeric=False, more=distinct[0] - len(named))
