"""Statistics of a table: those of new data merged into the earlier ones (spec: ducklake_table_column_stats)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog.table_facts import TableColumnStats
from ducklake_lab.duckdb.bounds import extremes, smallest_and_largest
from ducklake_lab.model.entries import Column
from ducklake_lab.model.extra_stats import merge_geometries, merge_variants
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.types import DataType


def leaves(columns: Sequence[Column]) -> Iterator[Column]:
    """The columns that hold values: those without children, at any depth."""
    for column in columns:
        for part in column.walk():
            if not part.children:
                yield part


def inlined_stats(columns: Sequence[Column], rows: pa.Table) -> dict[int, ColumnStats]:
    """Statistics of rows about to be inlined, by leaf column id."""
    parts = [part for column in columns for part in leaf_values(column, rows.column(column.name))]
    ends = extremes([(values, leaf.data_type) for leaf, values in parts])
    return {
        leaf.column_id: ColumnStats(
            leaf.column_id,
            None,
            len(values) - of.nulls,
            of.nulls,
            of.low,
            of.high,
            min_is_exact=True,
            max_is_exact=True,
        )
        for (leaf, values), of in zip(parts, ends, strict=True)
    }


def leaf_values(column: Column, values: pa.ChunkedArray) -> Iterator[tuple[Column, pa.ChunkedArray]]:
    """The columns below a column that hold values, each with its values."""
    if column.type == "struct":
        for index, child in enumerate(column.children):
            yield from leaf_values(child, pc.struct_field(values, [index]))
    elif column.type == "list":
        yield from leaf_values(column.children[0], pc.list_flatten(values))
    elif column.type == "map":
        for child, part in zip(column.children, ("keys", "items"), strict=True):
            arrays = [getattr(chunk, part) for chunk in values.chunks]
            yield from leaf_values(child, pa.chunked_array(arrays, child.data_type.arrow()))
    else:
        yield column, values


def merge(
    existing: TableColumnStats | None, new: Iterable[ColumnStats], data_type: DataType, *, unbounded: bool
) -> TableColumnStats:
    """The statistics of a column after new data.

    A bound stays unknown once it is: too narrow a bound would make readers skip rows. Where one bound is known, there are
    values, so that the other is unknown.

    Args:
        unbounded: `existing` has no bounds because they are unknown, not because all values were NULL.
    """
    new = list(new)
    null_flags = [None if stats.null_count is None else stats.null_count > 0 for stats in new]
    nan_flags = [stats.contains_nan for stats in new]
    lows = [stats.min_value for stats in new if stats.value_count != 0 or stats.min_value is not None]
    highs = [stats.max_value for stats in new if stats.value_count != 0 or stats.max_value is not None]
    if existing is not None:
        null_flags.append(existing.contains_null)
        nan_flags.append(existing.contains_nan)
        if unbounded or existing.min_value is not None or existing.max_value is not None:
            lows.append(existing.min_value)
            highs.append(existing.max_value)
    # readers take False for a promise
    contains_null = True if True in null_flags else None if None in null_flags else False
    contains_nan = None if any(flag is None for flag in nan_flags) else any(nan_flags)
    bounds = [text for text in (*lows, *highs) if text is not None]
    low = high = None
    if bounds:
        low, high = smallest_and_largest(bounds, data_type)
    low, high = None if None in lows else low, None if None in highs else high
    # of equal bounds the table's keeps its flag of exactness
    sources = [*([existing] if existing is not None else ()), *new]
    return TableColumnStats(
        contains_null,
        contains_nan,
        low,
        high,
        _merge_extra(existing, new, data_type),
        None if low is None else next((of.min_is_exact for of in sources if of.min_value == low), None),
        None if high is None else next((of.max_is_exact for of in sources if of.max_value == high), None),
    )


def _merge_extra(existing: TableColumnStats | None, new: Iterable[ColumnStats], data_type: DataType) -> str | None:
    if data_type.name not in ("geometry", "variant"):
        return None
    extras = [stats.extra_stats for stats in new if stats.value_count != 0 or data_type.name == "geometry"]
    if existing is not None:
        extras.insert(0, existing.extra_stats)
    texts = [text for text in extras if text is not None]
    if not texts or len(texts) < len(extras):
        return None
    if data_type.name == "geometry":
        return merge_geometries(texts)
    return merge_variants(texts, lambda texts, name: smallest_and_largest(texts, DataType(name)))
