"""Statistics of a file that are true, by type: the one table that pruning and answers from metadata go by.

DuckDB's Parquet writer keeps no statistics of intervals, times with a zone and parts of variants; it reports that none of
their values is NULL, and so does the catalog of every lake, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.types import INTEGERS, DataType


class Kept(NamedTuple):
    """Statistics of a column that may be relied on.

    Attributes:
        nulls: `null_count` counts the rows whose value is NULL.
        bounds: every value that is not NULL, nor NaN, lies between `min_value` and `max_value`.
        extremes: those two are values of the column, as far as `ColumnStats` says so.
    """

    nulls: bool = False
    bounds: bool = False
    extremes: bool = False


_NOTHING = Kept()
_ALL = Kept(nulls=True, bounds=True, extremes=True)
#: A type that is not named has no statistics to rely on.
_KEPT = {
    **dict.fromkeys(INTEGERS, _ALL),
    # files hold them as DOUBLE, which rounds
    **dict.fromkeys(("int128", "uint128"), Kept(nulls=True, bounds=True)),
    # NaN is beyond the bounds, and either zero may be one
    **dict.fromkeys(("float32", "float64"), Kept(nulls=True, bounds=True)),
    **dict.fromkeys(("boolean", "date", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz", "varchar"), _ALL),
    **dict.fromkeys(("time", "uuid"), Kept(nulls=True, bounds=True)),
    # texts of bounds that are not in the order of the values, or that nothing here reads
    **dict.fromkeys(("timestamp_ns", "json", "blob", "geometry"), Kept(nulls=True)),
}

#: Types whose NULLs are counted; decimals are, too.
COUNTED = tuple(name for name, facts in _KEPT.items() if facts.nulls)


def kept(kind: DataType) -> Kept:
    """Return the statistics that may be relied on for columns of a type."""
    return _ALL if kind.decimal is not None else _KEPT.get(kind.name, _NOTHING)


def null_count(stats: ColumnStats, kind: DataType) -> int | None:
    """Return the number of NULLs of a column in a file; None where it is not known."""
    return stats.null_count if kept(kind).nulls else None


def counted(files: Iterable[ColumnStats], kind: DataType) -> tuple[int, int]:
    """Count the NULLs and all values of a column in some files; (0, 0) where they are not known."""
    if not kept(kind).nulls:
        return 0, 0
    nulls, values = 0, 0
    for stats in files:
        nulls += stats.null_count or 0
        values += stats.value_count or 0
    return nulls, nulls + values
