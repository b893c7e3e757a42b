"""Intervals of charts, and the ticks of time axes; DuckDB computes both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ducklake_lab.errors import UsageError
from ducklake_lab.model.binning import RoundBins, round_bins
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import INTEGERS, TIMESTAMPS, DataType

Role = Literal["number", "time", "category"]

#: Units that a user may choose, with the interval in DuckDB's SQL.
UNITS = {
    "minute": "1 minute",
    "hour": "1 hour",
    "day": "1 day",
    "week": "7 days",
    "month": "1 month",
    "quarter": "3 months",
    "year": "1 year",
}
#: Seconds of each unit; the shortest month, so that there are never too many intervals.
_SECONDS = {
    "microsecond": 1e-6,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "month": 28 * 86400.0,
    "year": 365 * 86400.0,
}
_STEPS = (
    *((digit * 10**power, "microsecond") for power in range(6) for digit in (1, 2, 5)),
    *((number, unit) for unit in ("second", "minute") for number in (1, 2, 5, 10, 15, 30)),
    *((number, "hour") for number in (1, 2, 3, 6, 12)),
    *((number, "day") for number in (1, 7)),
    *((number, "month") for number in (1, 3)),
    *((digit * 10**power, "year") for power in range(4) for digit in (1, 2, 5)),
)
#: Additional steps between ticks.
_BETWEEN = ((2, "day"), (14, "day"), (2, "month"), (6, "month"))
#: Seconds since 1970 of the first and last time with calendar intervals.
_FIRST, _LAST = -62_135_596_800.0, 253_402_300_800.0
#: Most ticks on an axis.
_TICKS = 9

Evaluate = Callable[[str], pa.Table]


def role(kind: DataType | None) -> Role:
    """Returns the role of a type on an axis."""
    if kind is not None and kind.is_numeric:
        return "number"
    return "time" if kind is not None and (kind.name == "date" or kind.name in TIMESTAMPS) else "category"


def number(name: str, kind: DataType | None) -> str:
    """Returns SQL of a value's position as a DOUBLE; seconds since 1970 for times."""
    quoted = quote_identifier(name)
    return f"epoch({quoted})::DOUBLE" if role(kind) == "time" else f"{quoted}::DOUBLE"


@dataclass(frozen=True, slots=True)
class Bins:
    """Intervals of a column's values.

    Attributes:
        value: SQL expression of a row, the input of `key`.
        key: returns SQL that identifies the interval of a value.
        low, high: return SQL of the ends, in the column's type if it is exact there; the upper end is exclusive.
        width: the width of an interval, as readable text.
    """

    value: str
    key: Callable[[str], str]
    low: Callable[[str], str]
    high: Callable[[str], str]
    width: str


def bins_of(name: str, kind: DataType, low: float, high: float, most: int, unit: str | None = None) -> Bins:
    """Returns at most `most` + 1 intervals, with round numbers, or calendar units that suit the span of times.

    Args:
        low, high: the smallest and largest position, both finite.
        unit: the user's choice from UNITS; then there may be more intervals.

    Raises:
        UsageError: a user chose calendar intervals for times outside the years 1 to 9999.
    """
    if role(kind) == "time":
        if low >= _FIRST and high < _LAST:
            return _of_calendar(name, kind, UNITS[unit] if unit is not None else _step(high - low, most, kind))
        if unit is not None:
            raise UsageError(f"Intervals of {unit}s need times in the years 1 to 9999; filter {name} first.")
    return _of_numbers(name, kind, round_bins(low, high, kind, most))


def _step(span: float, most: int, kind: DataType, more: tuple[tuple[int, str], ...] = ()) -> str:
    """Returns the shortest interval that divides a span of seconds into at most `most` steps; whole days for dates."""
    least = _SECONDS["day"] if kind.name == "date" else 0.0
    candidates = ((count * _SECONDS[unit], count, unit) for count, unit in (*_STEPS, *more))
    steps = sorted(step for step in candidates if step[0] >= least)
    _, count, unit = next((step for step in steps if step[0] * most >= span), steps[-1])
    return f"{count} {unit}{'s' * (count != 1)}"


def _of_calendar(name: str, kind: DataType, step: str) -> Bins:
    value = quote_identifier(name)
    interval = f"INTERVAL '{step}'"
    is_zoned = kind.name == "timestamptz"
    # Days and months follow the session's time zone. Hours are elapsed time: one label may occur twice.
    is_local = is_zoned and step.endswith(("day", "days", "month", "months", "year", "years"))
    if is_zoned and not is_local:
        return Bins(value, lambda v: f"time_bucket({interval}, {v})", str, lambda k: f"{k} + {interval}", _width(step))
    back = "::DATE" if kind.name == "date" else "::TIMESTAMPTZ" if is_local else ""
    return Bins(
        f"{value}::TIMESTAMP",
        lambda v: f"time_bucket({interval}, {v})",
        lambda k: f"{k}{back}",
        lambda k: f"({k} + {interval}){back}",
        _width(step),
    )


def _width(step: str) -> str:
    """Returns a step as readable text."""
    count, unit = step.split()
    if unit.startswith("microsecond"):
        return f"{int(count) / 1e6:.6f}".rstrip("0") + " seconds"
    names = {"7 days": "1 week", "3 months": "1 quarter"}
    return names.get(step, f"{int(count):,} {unit}")


def _of_numbers(name: str, kind: DataType, bins: RoundBins) -> Bins:
    return Bins(
        number(name, kind),
        bins.number_sql,
        lambda k: _edge(bins, kind, k),
        lambda k: _edge(bins, kind, f"({k} + 1)"),
        _round_width(bins, kind),
    )


def _edge(bins: RoundBins, kind: DataType, key: str) -> str:
    """Returns SQL of the lower end of an interval, in the column's type if it is exact there."""
    edge = f"({bins.edge_sql(key)})"
    if kind.name in INTEGERS and "128" not in kind.name:
        return f"{edge}::HUGEINT"
    if kind.name == "date":
        return f"DATE '1970-01-01' + ({edge} / 86400)::INTEGER"
    if kind.name == "timestamptz":
        return f"to_timestamp{edge}"
    return f"make_timestamp(({edge} * 1000000)::BIGINT)" if kind.name in TIMESTAMPS else edge


def _round_width(bins: RoundBins, kind: DataType) -> str:
    if role(kind) == "time":
        days = bins.multiple // 86400
        return f"{days:,} {'day' if days == 1 else 'days'}"
    if bins.parts > 1:
        return f"{bins.multiple / bins.parts:g}"
    return f"{bins.multiple:,}" if bins.multiple < 10**15 else f"{bins.multiple:g}"


def ticks(evaluate: Evaluate, points: str, kind: DataType) -> tuple[tuple[float, str], ...]:
    """Returns the ticks of a time axis: round times, with their positions and texts.

    Args:
        points: SQL with the points' x, and `high`, the end of each.
        kind: the type of x.

    Returns:
        () for a single time, and for times outside the calendar's range.
    """
    ends = evaluate(f"SELECT min(epoch(x)), max(epoch(high)) FROM ({points})")
    low, high = (column[0].as_py() for column in ends.columns)
    if low is None or low == high or low < _FIRST or high >= _LAST:
        return ()
    step = _step(high - low, _TICKS, kind, _BETWEEN)
    unit = step.split()[1].rstrip("s")
    clock = {"microsecond": "%H:%M:%S.%f", "second": "%H:%M:%S"}.get(unit, "%H:%M")
    if unit in ("month", "year", "day"):
        label = f"strftime(moment, '{'%Y-%m' if unit == 'month' else '%Y' if unit == 'year' else '%Y-%m-%d'}')"
    else:
        label = (
            "CASE WHEN moment = date_trunc('day', moment) THEN strftime(moment, '%Y-%m-%d') "
            f"WHEN moment = min(moment) OVER () THEN strftime(moment, '%Y-%m-%d {clock}') ELSE strftime(moment, '{clock}') END"
        )
    seconds = "epoch(moment::TIMESTAMPTZ)" if kind.name == "timestamptz" else "epoch(moment)"
    labels = evaluate(
        f"WITH span AS (SELECT min(x)::TIMESTAMP AS low, max(high)::TIMESTAMP AS high FROM ({points})), "
        f"times AS (SELECT unnest(generate_series(time_bucket(INTERVAL '{step}', low), high, INTERVAL '{step}')) AS moment FROM span) "
        f"SELECT {seconds}::DOUBLE, {label} FROM times, span WHERE moment BETWEEN low AND high ORDER BY moment"
    )
    return tuple(zip(*(column.to_pylist() for column in labels.columns), strict=True))
