"""Intervals that a chart counts rows in, and the ticks of its axis of times, all computed by DuckDB."""

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

#: What a user may ask for, with the interval in DuckDB's SQL.
UNITS = {
    "minute": "1 minute",
    "hour": "1 hour",
    "day": "1 day",
    "week": "7 days",
    "month": "1 month",
    "quarter": "3 months",
    "year": "1 year",
}
#: Seconds of the units that steps are made of; the shortest month, so that there are never more intervals than meant.
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
#: Ticks may stand at these, too.
_BETWEEN = ((2, "day"), (14, "day"), (2, "month"), (6, "month"))
#: Times in these years, in seconds since 1970, fall into intervals of the calendar.
_FIRST, _LAST = -62_135_596_800.0, 253_402_300_800.0
#: Ticks of an axis.
_TICKS = 9

Evaluate = Callable[[str], pa.Table]


def role(kind: DataType | None) -> Role:
    """What a column may be on an axis."""
    if kind is not None and kind.is_numeric:
        return "number"
    return "time" if kind is not None and (kind.name == "date" or kind.name in TIMESTAMPS) else "category"


def number(name: str, kind: DataType | None) -> str:
    """SQL of the position of a column's value: a DOUBLE, of times the seconds since 1970."""
    quoted = quote_identifier(name)
    return f"epoch({quoted})::DOUBLE" if role(kind) == "time" else f"{quoted}::DOUBLE"


@dataclass(frozen=True, slots=True)
class Bins:
    """Intervals of a column's values.

    Attributes:
        value: SQL of what `key` takes, of a row.
        key: gives SQL of what names the interval that holds a value.
        low, high: give SQL of its ends, in the column's type where that is whole; the upper one does not belong to it.
        width: how wide intervals are, for people.
    """

    value: str
    key: Callable[[str], str]
    low: Callable[[str], str]
    high: Callable[[str], str]
    width: str


def bins_of(name: str, kind: DataType, low: float, high: float, most: int, unit: str | None = None) -> Bins:
    """At most `most` intervals and one more: round numbers, or those of the calendar that suit the span of the times.

    Args:
        low, high: the least and the greatest position, finite.
        unit: of UNITS, where a user has chosen; there may be more intervals then.

    Raises:
        UsageError: times are too far away for intervals of the calendar, which a user has chosen.
    """
    if role(kind) == "time":
        if low >= _FIRST and high < _LAST:
            return _of_calendar(name, kind, UNITS[unit] if unit is not None else _step(high - low, most, kind))
        if unit is not None:
            raise UsageError(f"Intervals of {unit}s need times in the years 1 to 9999; filter {name} first.")
    return _of_numbers(name, kind, round_bins(low, high, kind, most))


def _step(span: float, most: int, kind: DataType, more: tuple[tuple[int, str], ...] = ()) -> str:
    """The least step of which there are at most `most` in a span of seconds, as DuckDB's interval; dates have whole days."""
    least = _SECONDS["day"] if kind.name == "date" else 0.0
    known = ((count * _SECONDS[unit], count, unit) for count, unit in (*_STEPS, *more))
    steps = sorted(step for step in known if step[0] >= least)
    _, count, unit = next((step for step in steps if step[0] * most >= span), steps[-1])
    return f"{count} {unit}{'s' * (count != 1)}"


def _of_calendar(name: str, kind: DataType, step: str) -> Bins:
    value = quote_identifier(name)
    interval = f"INTERVAL '{step}'"
    is_zoned = kind.name == "timestamptz"
    # Days and months are those of the session's time zone. Hours are counted through: one may come twice.
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
    """A step for people."""
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
    """SQL of the lower end of a bin, in the type of the column where that is whole."""
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
    """Round times along an axis, as far apart as the span asks for: positions, and what stands there.

    Args:
        points: SQL of the points' x, and of `high`, where each ends.
        kind: the type of x.

    Returns:
        () of a single time, and of times too far away for the calendar.
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
    place = "epoch(moment::TIMESTAMPTZ)" if kind.name == "timestamptz" else "epoch(moment)"
    found = evaluate(
        f"WITH span AS (SELECT min(x)::TIMESTAMP AS low, max(high)::TIMESTAMP AS high FROM ({points})), "
        f"times AS (SELECT unnest(generate_series(time_bucket(INTERVAL '{step}', low), high, INTERVAL '{step}')) AS moment FROM span) "
        f"SELECT {place}::DOUBLE, {label} FROM times, span WHERE moment BETWEEN low AND high ORDER BY moment"
    )
    return tuple(zip(*(column.to_pylist() for column in found.columns), strict=True))
