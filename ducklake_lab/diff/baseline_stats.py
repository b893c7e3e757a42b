"""Statistics of a whole table, by its files' statistics or its rows: a diff compares its changed rows with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext

import pyarrow as pa

from ducklake_lab.catalog.files import read_column_stats
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.engine.in_process import reader
from ducklake_lab.model.entries import LOCAL_ID_START
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.statistics import counted
from ducklake_lab.scan.plan import ScanPlan

#: Rows of the earlier state up to which changed rows are compared with unchanged ones.
MAX_COMPARED_ROWS = 2_000_000
#: Digits of the difference of the largest DOUBLE and the smallest.
_DIGITS = 640


@dataclass(frozen=True, slots=True)
class Known:
    """Statistics by column name.

    Attributes:
        constant: columns of one value.
        null_shares: share of NULL.
        ranges: (smallest, largest) of numbers, as texts.
    """

    constant: frozenset[str] = frozenset()
    null_shares: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def exact_width(low: str, high: str) -> Decimal:
    """Return the exact difference of two numbers; not finite where one of them is not."""
    with localcontext(Context(prec=_DIGITS, traps=[])):
        return Decimal(high) - Decimal(low)


def known(side: Side) -> Known:
    """Return statistics of the table's data files at the side's snapshot; none for an uncommitted table."""
    table = side.table
    if table is None or table.table_id >= LOCAL_ID_START or not side.committed:
        return Known()
    with side.lake.connect() as connection:
        files = read_column_stats(connection, table.table_id, None, side.snapshot_id)
    by_column: dict[int, list[ColumnStats]] = {}
    for stats_of_file in files.values():
        for column_id, stats in stats_of_file.items():
            by_column.setdefault(column_id, []).append(stats)
    constant, shares, ranges = set(), {}, {}
    for column in table.columns:
        stats_of_column = by_column.get(column.column_id, [])
        texts = {text for stats in stats_of_column for text in (stats.min_value, stats.max_value)}
        nulls, total = counted(stats_of_column, column.data_type)
        if total:
            shares[column.name] = nulls / total
        if len(texts) == 1 and None not in texts:
            constant.add(column.name)
        elif column.data_type.is_numeric and None not in texts:
            numbers = [text for text in texts if text is not None and exact_width("0", text).is_finite()]
            if len(numbers) == len(texts) and numbers:
                ranges[column.name] = (min(numbers, key=Decimal), max(numbers, key=Decimal))
    return Known(frozenset(constant), shares, ranges)


def reading(plan: ScanPlan) -> Callable[[Sequence[int]], pa.Table] | None:
    """Reads some columns of all rows of a plan, named by their places; None where there are too many rows."""
    if sum(file.data_file.record_count for file in plan.files) > MAX_COMPARED_ROWS:
        return None

    def read(places: Sequence[int]) -> pa.Table:
        narrow = replace(plan.table, columns=tuple(plan.columns[at] for at in places))
        return reader.read(replace(plan, table=narrow)).rename_columns([f"c{at}" for at in places])

    return read
