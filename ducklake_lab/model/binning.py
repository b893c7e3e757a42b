"""Bins of a histogram: intervals of equal width from the smallest value to the largest.

Halves are added up: the difference of extremes is infinite. They have the same digits otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ducklake_lab.model.types import INTEGERS, DataType

_DAY = 86400.0
#: Widths of bins of times in seconds, up to half a day.
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


def equal_bins(low: float, high: float, kind: DataType, most: int) -> tuple[float, int]:
    """Return the width and the number of bins, at most `most`.

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
    """Return the number at which a bin begins; the first bin has the number 0."""
    return (low / 2 + number * (width / 2)) * 2


def bin_sql(value: str, low: float, width: float) -> str:
    """The number of the bin of a DOUBLE in DuckDB's SQL, before it is held to those there are."""
    return f"floor(({value} / 2 - {low / 2!r}::DOUBLE) / {width / 2!r}::DOUBLE)"


@dataclass(frozen=True, slots=True)
class RoundBins:
    """Intervals with round ends: interval k begins at `multiple * k / parts`, and ends before the next begins.

    Attributes:
        parts: a power of ten; 1 where `multiple` is whole.
    """

    multiple: int
    parts: int

    def number_sql(self, value: str) -> str:
        """The number of the bin of a DOUBLE in DuckDB's SQL: its ends are compared, as dividing alone is off by a digit."""
        near = f"floor({value}{_times(self.parts)} / {_literal(self.multiple)})"
        return (
            f"CASE WHEN {value} >= {self.edge_sql(f'({near} + 1)')} THEN {near} + 1 "
            f"WHEN {value} < {self.edge_sql(near)} THEN {near} - 1 ELSE {near} END"
        )

    def edge_sql(self, number: str) -> str:
        """The lower end of a bin; a DOUBLE, as its number is."""
        return f"{number}{_times(self.multiple)}" + (f" / {_literal(self.parts)}" if self.parts > 1 else "")


def _times(factor: int) -> str:
    return f" * {_literal(factor)}" if factor > 1 else ""


def _literal(number: int) -> str:
    return str(number) if number < 10**15 else repr(float(number))


def round_bins(low: float, high: float, kind: DataType, most: int) -> RoundBins:
    """Bins over finite values, at most `most` and one more; of times in seconds since 1970.

    Bins of whole numbers and dates have room for as many values each.
    """
    if kind.name in INTEGERS:
        return _round(low, high, most, at_least=0)
    if kind.name == "date":
        days = _round(low / _DAY, high / _DAY, most, at_least=0)
        return RoundBins(days.multiple * int(_DAY), 1)
    if kind.is_numeric or high / most - low / most < 1:
        return _round(low, high, most, at_least=-300)
    for seconds in _CLOCK:
        if seconds >= high / most - low / most:
            return RoundBins(seconds, 1)
    days = _round(low / _DAY, high / _DAY, most, at_least=0)
    return RoundBins(days.multiple * int(_DAY), 1)


def _round(low: float, high: float, most: int, *, at_least: int) -> RoundBins:
    """Bins that are 1, 2 or 5 times a power of ten wide, and not so narrow that their ends are one DOUBLE.

    Args:
        at_least: the least power.
    """
    width = max(high / most - low / most, max(abs(low), abs(high)) * 2.0**-44)
    power = max(at_least, math.floor(math.log10(width))) if width > 0 else 0
    while True:
        for digit in (1, 2, 5):
            multiple, parts = digit * 10 ** max(power, 0), 10 ** max(-power, 0)
            if multiple / parts >= width:
                return RoundBins(multiple, parts)
        power += 1
