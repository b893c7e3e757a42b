"""Days, times of day and points in time as DuckDB counts them, in years that Python lacks too.

DuckDB's calendar is the proleptic Gregorian one; the year before 1 is `0001 (BC)`. Its infinities lie beyond all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Literal

MomentKind = Literal["date", "time", "timestamp", "timestamptz"]

#: Microseconds of the units of moments.
SECOND = 1_000_000
DAY = 86_400 * SECOND
#: More than DuckDB counts.
_INFINITE = 2**80
#: DuckDB's numbers of the days and of the microseconds that stand for its infinities; the lesser are their negatives.
_ENDS = {"date": 2**31 - 1, "timestamp": 2**63 - 1, "timestamptz": 2**63 - 1}
#: The least and the greatest finite DATE and TIMESTAMP of DuckDB, in microseconds.
DATES = -2_147_483_646 * DAY, 2_147_483_646 * DAY
TIMESTAMPS = -9_223_372_022_400_000_000, 2**63 - 2
_DATE = re.compile(r"([0-9]{4,7})-([0-9]{2})-([0-9]{2})( \(BC\))?", re.ASCII)
_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
_TIME = re.compile(_CLOCK, re.ASCII)
_POINT = re.compile(rf"{_DATE.pattern}(?:[ T]{_CLOCK}(Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?)?", re.ASCII)
#: Years from which DuckDB's text of a time with a zone may be another one, a millisecond late.
_LATE_YEAR = 287_000


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A day, a time of day or a point in time. Those of one kind are in DuckDB's order.

    Attributes:
        micros: microseconds since midnight, or since 1970, in UTC where the kind has a zone; of a day, to its midnight.
    """

    micros: int
    kind: MomentKind

    @classmethod
    def counted(cls, number: int, kind: MomentKind) -> Moment:
        """The moment that DuckDB keeps as a number: of days, or of microseconds."""
        end = _ENDS.get(kind)
        if end is not None and abs(number) == end:
            return cls(_INFINITE if number > 0 else -_INFINITE, kind)
        return cls(number * DAY if kind == "date" else number, kind)

    @classmethod
    def of(cls, value: date | datetime | time) -> Moment:
        """Return the moment of a Python value; one with a zone has an offset from UTC.

        Raises:
            ValueError: it is a time of day with a zone.
        """
        if isinstance(value, time):
            if value.tzinfo is not None:
                raise ValueError(f"{value} has a zone.")
            return cls(_clock(value), "time")
        days = (value.toordinal() - _EPOCH) * DAY
        if not isinstance(value, datetime):
            return cls(days, "date")
        offset = value.utcoffset()
        micros = days + _clock(value.time())
        if offset is None:
            return cls(micros, "timestamp")
        return cls(micros - (offset.days * 86_400 + offset.seconds) * SECOND - offset.microseconds, "timestamptz")

    @property
    def is_finite(self) -> bool:
        return abs(self.micros) != _INFINITE

    @property
    def is_known(self) -> bool:
        """Return whether DuckDB has such a value."""
        if not self.is_finite:
            return self.kind != "time"
        if self.kind == "time":
            return 0 <= self.micros <= DAY
        low, high = DATES if self.kind == "date" else TIMESTAMPS
        return low <= self.micros <= high

    def at(self, kind: MomentKind) -> Moment:
        """Return the count as another kind."""
        return Moment(self.micros, kind)

    def text(self) -> str:
        """The text that DuckDB casts to this value."""
        if not self.is_finite:
            return "infinity" if self.micros > 0 else "-infinity"
        days, micros = divmod(self.micros, DAY)
        seconds, fraction = divmod(micros, SECOND)
        if self.kind == "time":
            seconds += days * 86_400  # 24:00:00
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        clock += f".{fraction:06d}".rstrip("0") if fraction else ""
        if self.kind == "time":
            return clock
        year, month, day = civil(days)
        shown = f"{year:04d}-{month:02d}-{day:02d}" if year > 0 else f"{1 - year:04d}-{month:02d}-{day:02d} (BC)"
        if self.kind == "date":
            return shown
        return f"{shown} {clock}{'+00' if self.kind == 'timestamptz' else ''}"


_EPOCH = date(1970, 1, 1).toordinal()


def _clock(value: time) -> int:
    return (value.hour * 3600 + value.minute * 60 + value.second) * SECOND + value.microsecond


def parsed(text: str, kind: MomentKind) -> Moment | None:
    """The moment of a text in DuckDB's own form; None for others, which it may read as well.

    A point in time may be a day, whose midnight it is. One with a zone has its offset; one so late that DuckDB's text
    of it is not exact is None.
    """
    if kind == "time":
        match = _TIME.fullmatch(text)
        micros = _micros(*match.groups()) if match is not None else None
        return None if micros is None else Moment(micros, kind)
    if text in ("infinity", "-infinity"):
        return Moment(-_INFINITE if text.startswith("-") else _INFINITE, kind)
    match = (_DATE if kind == "date" else _POINT).fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups()[:3])
    before = match[4] is not None
    if not (1 <= month <= 12 and day >= 1 and (year >= 1 or not before)):
        return None
    year = 1 - year if before else year
    days = days_since_1970(year, month, day)
    if days >= days_since_1970(year + month // 12, month % 12 + 1, 1):
        return None
    if kind == "date":
        moment = Moment(days * DAY, kind)
    else:
        clock, zone = _micros(*match.groups()[4:8]) if match[5] is not None else 0, match[9]
        if clock is None or (zone is None) != (kind == "timestamp") or (zone is not None and year > _LATE_YEAR):
            return None
        moment = Moment(days * DAY + clock - (_offset(zone) if zone is not None else 0), kind)
    return moment if moment.is_known else None


def _micros(hours: str, minutes: str, seconds: str, fraction: str | None) -> int | None:
    clock = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    micros = clock * SECOND + int((fraction or "").ljust(6, "0"))
    return micros if int(minutes) < 60 and int(seconds) < 60 and micros <= DAY else None


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return (-minutes if zone[0] == "-" else minutes) * 60 * SECOND


def days_since_1970(year: int, month: int, day: int) -> int:
    """The number of a day; the year 0 is the one before 1."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """The (year, month, day) of a day since 1970; the year 0 is the one before 1."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1
