"""Bins of a histogram: intervals of equal width from the smallest value to the largest.

Halves are added up: the difference of extremes is infinite. They have the same digits otherwise.
"""

from __future__ import annotations

import math

from ducklake_lab.model.types import INTEGERS, DataType

_DAY = 86400.0


def equal_bins(low: float, high: float, kind: DataType, most: int) -> tuple[float, int]:
    """The width of bins, and how many there are, at most `most`.

    Each bin of whole numbers or dates has room for as many values: others look uneven where the values are not.

    Args:
        low: the smallest value, finite; of times seconds since 1970.
        high: the largest, greater than `low`.
    """
    if kind.name not in INTEGERS and kind.name != "date":
        return (high / 2 - low / 2) / most * 2, most
    unit = _DAY if kind.name == "date" else 1.0
    width = math.ceil((high - low + unit) / unit / most) * unit
    return width, math.floor((high - low) / width) + 1


def edge(low: float, width: float, number: int) -> float:
    """Where a bin begins; the first one has the number 0."""
    return (low / 2 + number * (width / 2)) * 2


def bin_sql(value: str, low: float, width: float) -> str:
    """The number of the bin of a DOUBLE in DuckDB's SQL, before it is held to those there are."""
    return f"floor(({value} / 2 - {low / 2!r}::DOUBLE) / {width / 2!r}::DOUBLE)"
