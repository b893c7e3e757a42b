"""DuckDB's functions of numbers in Spark's words."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.model.types import FLOATS
from ducklake_lab.sql.calls import Build, Call
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, number


def log(c: Call) -> exp.Expr:
    return call("log10", c.args[0]) if len(c.args) == 1 else call("log", c.args[0], c.args[1])


def ceil_floor(name: str) -> Build:
    def build(c: Call) -> exp.Expr:
        kind = c.types[0]
        if kind is None or kind.name not in FLOATS:
            return call(name, c.args[0])
        return whole(c.args[0], call(name, c.args[0].copy()))

    return build


def sign(c: Call) -> exp.Expr:
    kind, value = c.types[0], c.args[0]
    found = cast(call("sign", value), "TINYINT")
    if kind is not None and kind.name not in FLOATS:
        return found
    # of what is no number DuckDB says 0
    return case(call("isnan", cast(value.copy(), "DOUBLE")), cast(number(0), "TINYINT"), found)


def whole(value: exp.Expr, rounded: exp.Expr) -> exp.Expr:
    """A double that Spark rounds by way of BIGINT: those that have no fraction, or are no number, stay as they are."""
    small = exp.LT(this=call("abs", value.copy()), expression=cast(number(2**53), "DOUBLE"))
    return case(small, cast(rounded, "DOUBLE"), value)


def truncate(c: Call) -> exp.Expr:
    value = cast(c.args[0], "DOUBLE")
    cut = case(exp.LT(this=value.copy(), expression=number(0)), call("ceil", value.copy()), call("floor", value.copy()))
    return whole(value, cut)


def bit_count(c: Call) -> exp.Expr:
    """Spark counts the bits of a BIGINT, which has more of them for a negative number."""
    width = {"int8": 8, "int16": 16, "int32": 32}.get(c.types[0].name if c.types[0] else "")
    value = cast(c.args[0], "BIGINT")
    masked = value if width is None else binary(exp.BitwiseAnd, value, number(2**width - 1))
    return cast(call("bit_count", masked), "TINYINT")


def rounded(c: Call) -> exp.Expr:
    return call("round", c.args[0], *[cast(arg, "INT") for arg in c.args[1:]])
