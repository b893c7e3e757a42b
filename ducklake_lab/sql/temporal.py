"""Date and time functions in Spark SQL, free of the session's time zone for types that have none."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark_nodes import binary, call, cast, number, text
from ducklake_lab.sql.zones import NTZ, from_local

_PARTS = {
    "year": "year", "years": "year", "yr": "year", "y": "year",
    "month": "month", "months": "month", "mon": "month",
    "day": "day", "days": "day", "dayofmonth": "day", "d": "day",
    "quarter": "quarter", "quarters": "quarter",
    "hour": "hour", "hours": "hour", "hr": "hour", "h": "hour",
    "minute": "minute", "minutes": "minute", "min": "minute", "m": "minute",
    "second": "second", "seconds": "second", "sec": "second", "s": "second",
    "week": "weekofyear", "weeks": "weekofyear", "weekofyear": "weekofyear", "w": "weekofyear",
    "doy": "dayofyear", "dayofyear": "dayofyear",
}  # fmt: skip

_UNITS = {
    "year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK",
    "day": "DAY", "hour": "HOUR", "minute": "MINUTE", "second": "SECOND",
}  # fmt: skip

#: strftime directive -> pattern of Spark's date_format.
_PATTERNS = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%d": "dd", "%H": "HH", "%M": "mm", "%S": "ss", "%f": "SSSSSS",
    "%g": "SSS", "%b": "MMM", "%B": "MMMM", "%a": "EEE", "%A": "EEEE", "%j": "DDD", "%p": "a", "%I": "hh",
    "%-d": "d", "%-m": "M", "%-H": "H", "%-M": "m", "%-S": "s", "%-I": "h", "%-y": "y",
}  # fmt: skip


def part(name: str, value: exp.Expr, kind: DataType | None) -> exp.Expr:
    """date_part: BIGINT, DOUBLE for the epoch."""
    folded = name.lower()
    if folded == "epoch":
        return epoch(value, kind, 0)
    if folded in ("dow", "dayofweek", "weekday"):
        # DuckDB counts Sunday as 0, Spark as 1.
        return cast(binary(exp.Sub, call("dayofweek", value), number(1)), "BIGINT")
    if folded == "isodow":
        return cast(binary(exp.Add, call("weekday", value), number(1)), "BIGINT")
    if folded not in _PARTS:
        raise UnsupportedFeatureError(f'Date part "{name}" is not supported on Spark yet.')
    return cast(call(_PARTS[folded], value), "BIGINT")


def _unit(name: str) -> str:
    folded = name.lower().rstrip("s")
    if folded not in _UNITS:
        raise UnsupportedFeatureError(f'Date part "{name}" is not supported on Spark yet.')
    return _UNITS[folded]


def truncate(name: str, value: exp.Expr, kind: DataType | None) -> exp.Expr:
    """date_trunc: a timestamp, also for a date."""
    unit = _unit(name)
    if kind is not None and kind.name == "timestamptz":
        if unit in ("MINUTE", "SECOND"):
            return call("date_trunc", text(unit), value)
        return from_local(truncate(name, cast(value, NTZ), None))
    if unit == "DAY":
        return cast(cast(value, "DATE"), NTZ)
    if unit in ("HOUR", "MINUTE", "SECOND"):
        precision = ("HOUR", "MINUTE", "SECOND").index(unit)
        clock: list[exp.Expr] = []
        for index, function in enumerate(("hour", "minute", "second")):
            clock.append(call(function, value.copy()) if index <= precision else number(0))
        days = [call(function, value.copy()) for function in ("year", "month", "day")]
        return call("make_timestamp_ntz", *days, *clock)
    return cast(call("trunc", cast(value, "DATE"), text(unit)), NTZ)


def epoch(value: exp.Expr, kind: DataType | None, digits: int) -> exp.Expr:
    """Time since 1970 as DOUBLE seconds (digits 0), BIGINT milliseconds (3) or microseconds (6)."""
    if kind is not None and kind.name == "interval":
        raise UnsupportedFeatureError("epoch of an interval is not supported on Spark yet; use date_diff.")
    micros = (
        call("unix_micros", value) if kind is not None and kind.name == "timestamptz" else _micros(cast(value, NTZ))
    )
    if digits == 6:
        return micros
    if digits == 3:
        return cast(call("floor", exp.Paren(this=exp.Div(this=micros, expression=number(1000)))), "BIGINT")
    return cast(exp.Paren(this=exp.Div(this=micros, expression=number(1000000))), "DOUBLE")


def _micros(moment: exp.Expr) -> exp.Expr:
    days = cast(call("datediff", cast(moment.copy(), "DATE"), cast(text("1970-01-01"), "DATE")), "BIGINT")
    fraction = cast(
        binary(exp.Mul, call("date_part", text("SECOND"), moment.copy()), number(1000000)),
        "BIGINT",
    )
    total = binary(exp.Mul, days, exp.Literal.number("86400000000"))
    hours = binary(exp.Mul, cast(call("hour", moment.copy()), "BIGINT"), exp.Literal.number("3600000000"))
    minutes = binary(exp.Mul, cast(call("minute", moment.copy()), "BIGINT"), exp.Literal.number("60000000"))
    return binary(exp.Add, binary(exp.Add, total, hours), binary(exp.Add, minutes, fraction))


def difference(name: str, start: exp.Expr, end: exp.Expr, kinds: Sequence[DataType | None]) -> exp.Expr:
    """date_diff: how many boundaries of a part lie between two dates or timestamps; BIGINT.

    Args:
        kinds: their types.
    """
    unit = _unit(name)
    zoned = any(kind is not None and kind.name == "timestamptz" for kind in kinds)
    if zoned and unit in ("WEEK", "DAY", "HOUR"):
        # DuckDB counts whole ones where clocks change, rather than boundaries
        raise UnsupportedFeatureError(
            f"date_diff of TIMESTAMPTZ in {unit.lower()}s is not supported on Spark; cast both to TIMESTAMP."
        )

    def minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return cast(binary(exp.Sub, left, right), "BIGINT")

    if unit == "DAY":
        return cast(call("datediff", cast(end, "DATE"), cast(start, "DATE")), "BIGINT")
    if unit == "YEAR":
        return minus(call("year", end), call("year", start))
    if unit in ("MONTH", "QUARTER"):
        size, function = (12, "month") if unit == "MONTH" else (4, "quarter")

        def count(value: exp.Expr) -> exp.Expr:
            return binary(
                exp.Add, binary(exp.Mul, call("year", value.copy()), number(size)), call(function, value.copy())
            )

        return minus(count(end), count(start))
    if unit == "WEEK":
        monday = [call("trunc", cast(value, "DATE"), text("WEEK")) for value in (end, start)]
        return cast(binary(exp.Div, call("datediff", *monday), number(7)), "BIGINT")
    size_us = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}[unit]

    def boundaries(value: exp.Expr) -> exp.Expr:
        micros = _micros(cast(value, NTZ))
        if zoned:
            micros = call("unix_micros", truncate(name, value, DataType("timestamptz")))
        return call("floor", binary(exp.Div, micros, exp.Literal.number(str(size_us))))

    return minus(boundaries(end), boundaries(start))


def _pattern(directives: str) -> str:
    result, index, plain = "", 0, ""
    while index < len(directives):
        if directives[index] != "%":
            plain += directives[index]
            index += 1
            continue
        size = 3 if directives[index + 1 : index + 2] == "-" else 2
        directive = directives[index : index + size]
        index += size
        if directive == "%%":
            plain += "%"
            continue
        if directive not in _PATTERNS:
            raise UnsupportedFeatureError(f'Date format "{directive}" is not supported on Spark yet.')
        result += _quoted(plain) + _PATTERNS[directive]
        plain = ""
    return result + _quoted(plain)


def _quoted(plain: str) -> str:
    if not any(letter.isalpha() or letter in "'[]{}#" for letter in plain):
        return plain
    return "'" + plain.replace("'", "''") + "'"


def formatted(value: exp.Expr, directives: str) -> exp.Expr:
    """The text that strftime gives."""
    return call("date_format", value, text(_pattern(directives)))


def parsed(value: exp.Expr, directives: str) -> exp.Expr:
    """The timestamp that strptime reads."""
    return call("to_timestamp_ntz", value, text(_pattern(directives)))
