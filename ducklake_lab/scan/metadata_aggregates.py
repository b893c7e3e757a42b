"""A digest of a table: rows with its extremes, and how many rows each stands for, from the catalog alone.

A file is there twice: with the smallest value of each column, and with the largest. All of it is exact, or there is no
digest: extremes of a file with deleted rows, of floats (NaN, and two zeros), of long texts (writers may cut them), bounds that the catalog says are not exact, and of
columns whose statistics are missing are not known without reading rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.statistics import kept, null_count
from ducklake_lab.model.values import decode
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.visible_counts import count_rows

#: Most rows of a file, and for each of its bytes, that an answer takes from the catalog. Row groups of DuckDB need a byte
#: for less than a thousand rows.
_MOST_ROWS, _MOST_ROWS_PER_BYTE = 1 << 40, 10_000
#: By file id and column id.
Stats = Mapping[int, Mapping[int, ColumnStats]]


def digest(
    plan: ScanPlan, stats: Stats, columns: Sequence[Column], counted: Sequence[Column], rows: str
) -> pa.Table | None:
    """Return the digest of a plan's rows; None where it is not known.

    Args:
        columns: those whose extremes are wanted.
        counted: those whose values are counted.
        rows: the name of the column that counts rows; its prefix makes the names of columns that count values.
    """
    if any(file.is_bounded or _is_implausible(file) for file in plan.files):
        return None
    live = [file.live for file in count_rows(plan.files)]
    data: dict[str, list[int]] = {rows: [n for count in live for n in (count, 0)]}
    for column in counted:
        counts = [_values(file, stats, column) for file in plan.files]
        if any(count is None for count in counts):
            return None
        data[rows + column.name] = [n for count in counts for n in (count or 0, 0)]
    texts: dict[str, list[str | None]] = {}
    for column in columns:
        bounds = [_bounds(file, stats, column) for file in plan.files]
        if any(pair is None for pair in bounds):
            return None
        texts[column.name] = [text for pair in bounds for text in pair or ()]
    types = {column.name: column.data_type for column in columns}
    counters = pa.table({name: pa.array(counts, pa.int64()) for name, counts in data.items()})
    if types:
        values = cast_columns(pa.table({name: pa.array(list_, pa.string()) for name, list_ in texts.items()}), types)
        for name in types:
            counters = counters.append_column(values.schema.field(name), values.column(name))
    return pa.concat_tables([counters, _inlined(plan, counters, counted, rows)])


def _inlined(plan: ScanPlan, like: pa.Table, counted: Sequence[Column], rows: str) -> pa.Table:
    """Yield the inlined rows, which stand for themselves."""
    if plan.inlined is None:
        return like.slice(0, 0)
    table = plan.inlined.rows
    ones = pa.array([1] * table.num_rows, pa.int64())
    counts = {rows: ones, **{rows + c.name: pc.cast(pc.is_valid(table.column(c.name)), pa.int64()) for c in counted}}
    arrays = [counts[name] if name in counts else table.column(name) for name in like.column_names]
    return pa.table(arrays, names=like.column_names).cast(like.schema)


def _is_implausible(file: ScanFile) -> bool:
    """Return whether a file is too small for the rows that the catalog gives it; its footer then has their number."""
    return file.data_file.record_count > min(_MOST_ROWS, file.data_file.file_size_bytes * _MOST_ROWS_PER_BYTE)


def _known(file: ScanFile, stats: Stats, column: Column) -> ColumnStats | None:
    if file.has_deletes or file.is_bounded:
        return None
    return stats.get(file.data_file.data_file_id, {}).get(column.column_id)


def _values(file: ScanFile, stats: Stats, column: Column) -> int | None:
    column_stats = _known(file, stats, column)
    nulls = null_count(column_stats, column.data_type) if column_stats is not None else None
    if nulls is None:
        return None
    count = file.data_file.record_count - nulls
    return count if count >= 0 else None


def _bounds(file: ScanFile, stats: Stats, column: Column) -> tuple[str | None, str | None] | None:
    """The smallest and the largest value of a file as texts, NULL where there is none; None where not known."""
    kind = column.data_type
    column_stats = _known(file, stats, column)
    if column_stats is None or not kept(kind).extremes:
        return None
    if null_count(column_stats, kind) == file.data_file.record_count:
        return None, None
    low, high = column_stats.min_value, column_stats.max_value
    if not (column_stats.has_least_value(kind) and column_stats.has_largest_value(kind)):
        return None
    if low is None or high is None or decode(low, kind) is None or decode(high, kind) is None:
        return None
    if kind.name == "varchar" and file.data_file.mapping is not None:
        return None
    return low, high
