"""Bins of a histogram: intervals of equal width from the smallest value to the largest."""

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
        return (high - low) / most, most
    unit = _DAY if kind.name == "date" else 1.0
    width = math.ceil((high - low + unit) / unit / most) * unit
    return width, math.floor((high - low) / width) + 1
