"""Aggregates and window functions on Spark. Spark computes those with equal results; DuckDB computes the others.

For the others, Spark collects the values of a group, and a worker passes them to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError, marker
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark.nodes import binary, call, case, cast, is_null, number, text
from ducklake_lab.sql.spark.operands import DIGITS, FLOATS, SIGNED, is_ordered
from ducklake_lab.sql.spark.typing import Type

#: Adds FILTER and OVER to an aggregate.
Wrap = Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate call that Spark may compute.

    Attributes:
        args: the arguments in Spark's form; those of DISTINCT are one node.
        types: types of the arguments, and of the result.
        wrap: adds FILTER and OVER.
        over: whether it is a window function.
        digits: digits of the decimals that the first argument sums.
    """

    name: str
    args: Sequence[exp.Expr]
    types: Sequence[Type]
    result: Type
    wrap: Wrap
    over: bool
    digits: int = 0

    @property
    def kind(self) -> DataType:
        """The type of the first argument."""
        kind = self.types[0] if self.types else None
        return kind if kind is not None else DataType("unknown")


Form = Callable[[Aggregate], exp.Expr | None]

_LONG = ("int128", "uint128")
#: Most digits of decimals whose sum has at most 38.
_SUMMED = 28
_LONG_SUM = (
    "A sum of more than 38 digits, the most of a number in Spark, is not supported on Spark; use engine='duckdb'."
)
_SMALL = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "boolean")
_WORD = 2**32
#: Integers below it are exact in DOUBLE.
_EXACT = 2**53


def _each(node: exp.Expr, make: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Applies a function to an argument, inside its DISTINCT."""
    if isinstance(node, exp.Distinct):
        return exp.Distinct(expressions=[make(item) for item in node.expressions])
    return make(node)


def _count(a: Aggregate) -> exp.Expr | None:
    if not a.args or isinstance(a.args[0], exp.Star):
        return a.wrap(call("count", exp.Star()))
    if isinstance(a.args[0], exp.Distinct) and not is_ordered(a.kind):
        return None
    return a.wrap(call("count", a.args[0]))


def _sum(a: Aggregate) -> exp.Expr | None:
    total = _total(a)
    if total is None or a.result is None:
        return None
    if a.kind.name in FLOATS:
        return total
    return cast(total, "DECIMAL({},{})".format(*(a.result.decimal or (38, 0))))


def _total(a: Aggregate) -> exp.Expr | None:
    """Returns an exact sum of exact numbers; a DOUBLE sum of others."""
    (value,) = a.args
    if a.kind.name in _SMALL:
        return a.wrap(call("sum", _each(value, lambda v: cast(v, "INT" if a.kind.name == "boolean" else "BIGINT"))))
    if a.kind.name == "int64" and not isinstance(value, exp.Distinct):
        # in two halves, neither of whose sums overflows
        high = a.wrap(call("sum", call("shiftright", value, number(32))))
        low = a.wrap(call("sum", exp.Paren(this=exp.BitwiseAnd(this=value.copy(), expression=number(_WORD - 1)))))
        scaled = binary(exp.Mul, cast(high, "DECIMAL(19,0)"), cast(number(_WORD), "DECIMAL(10,0)"))
        return binary(exp.Add, scaled, cast(low, "DECIMAL(19,0)"))
    if a.kind.name in DIGITS:
        exact = _each(value, lambda v: cast(v, "DECIMAL(38,0)"))
        return _refused_beyond(a, exact) if a.kind.name in _LONG else a.wrap(call("sum", exact))
    if a.kind.decimal is not None:
        is_long = (a.digits or a.kind.decimal[0]) > _SUMMED
        return _refused_beyond(a, value) if is_long else a.wrap(call("sum", value))
    return a.wrap(call("sum", value)) if a.kind.name in FLOATS else None


def _refused_beyond(a: Aggregate, value: exp.Expr) -> exp.Expr:
    """Returns a sum that is refused by name if it has more digits than Spark's numbers; DuckDB's have one more."""
    total, count = a.wrap(call("try_sum", value)), a.wrap(call("count", value.copy()))
    beyond = exp.And(this=is_null(total.copy()), expression=exp.GT(this=count, expression=number(0)))
    refused = call("raise_error", text(marker(UnsupportedFeatureError(_LONG_SUM))))
    return exp.Paren(this=case(beyond, refused, total))


def _average(a: Aggregate) -> exp.Expr | None:
    if a.kind.name in FLOATS:
        return a.wrap(call("avg", a.args[0]))
    total = _total(a)
    if total is None or a.result != DataType("float64") or a.kind.name in ("int128", "uint128"):
        return None  # a quotient of 128 bits has more digits than Spark's
    _, scale = a.kind.decimal or (0, 0)
    if a.digits > _SUMMED:
        return None
    if scale:
        # the sum of the unscaled integers
        total = binary(exp.Mul, cast(total, f"DECIMAL(38,{scale})"), cast(number(10**scale), f"DECIMAL({scale + 1},0)"))
        total = cast(total, "DECIMAL(38,0)")
    count = a.wrap(call("count", a.args[0].copy()))
    rows = cast(count, "DOUBLE")
    rows = binary(exp.Mul, rows, cast(text(f"1e{scale}"), "DOUBLE")) if scale else rows
    average = binary(exp.Div, cast(total, "DOUBLE"), call("nullif", rows, cast(number(0), "DOUBLE")))
    if scale or a.kind.name not in (*_SMALL, "int64", "uint64"):
        return average
    return case(exp.LT(this=call("abs", total.copy()), expression=number(_EXACT)), average, _quotient(total, count))


def _quotient(total: exp.Expr, count: exp.Expr) -> exp.Expr:
    """Returns the quotient of a sum that DOUBLE does not hold; DuckDB divides with more digits."""
    whole = cast(total.copy(), "DECIMAL(38,0)")
    rows = cast(call("nullif", count.copy(), number(0)), "DECIMAL(19,0)")
    near = cast(binary(exp.Div, whole, rows), "DECIMAL(20,0)")
    rest = cast(binary(exp.Sub, whole.copy(), binary(exp.Mul, near, rows.copy())), "DECIMAL(19,0)")
    # at most a half; with more digits the sum would have no place for the twenty of a UBIGINT
    fraction = cast(binary(exp.Div, rest, rows.copy()), "DECIMAL(18,17)")
    return cast(binary(exp.Add, near.copy(), fraction), "DOUBLE")


def _ordered(name: str) -> Form:
    def form(a: Aggregate) -> exp.Expr | None:
        return a.wrap(call(name, a.args[0])) if is_ordered(a.kind) and len(a.args) == 1 else None

    return form


def _boolean(name: str) -> Form:
    return lambda a: a.wrap(call(name, a.args[0])) if a.kind.name == "boolean" else None


def _bits(name: str) -> Form:
    return lambda a: a.wrap(call(name, a.args[0])) if a.kind.name in SIGNED else None


def _count_if(a: Aggregate) -> exp.Expr | None:
    if a.kind.name != "boolean" or isinstance(a.args[0], exp.Distinct):
        return None
    # NULL if all are NULL; Spark's count_if returns 0
    return cast(a.wrap(call("sum", cast(a.args[0], "BIGINT"))), "DECIMAL(38,0)")


def _any_value(a: Aggregate) -> exp.Expr | None:
    return a.wrap(call("any_value", a.args[0], exp.Boolean(this=True)))


def _grouping(a: Aggregate) -> exp.Expr | None:
    bits = (
        binary(exp.Mul, cast(a.wrap(call("grouping", key)), "BIGINT"), number(2**place))
        for place, key in enumerate(reversed(a.args))
    )
    return reduce(lambda left, right: binary(exp.Add, left, right), bits)


def _numbered(name: str, kind: str | None = None) -> Form:
    def form(a: Aggregate) -> exp.Expr | None:
        if not a.over:
            return None
        node = a.wrap(call(name, *a.args))
        return cast(node, kind) if kind else node

    return form


def _beside(name: str) -> Form:
    """Returns the form of lag or lead with a constant distance; the default has the value's type."""

    def form(a: Aggregate) -> exp.Expr | None:
        distance = a.args[1] if len(a.args) > 1 else number(1)
        if not a.over or not (isinstance(distance, exp.Literal) and distance.name.isdigit()):
            return None
        if len(a.args) > 2 and a.types[2] != a.kind:
            return None
        return a.wrap(call(name, *a.args))

    return form


#: Spark's forms by function name; a form returns None for types that it does not support.
FORMS: Mapping[str, Form] = {
    "count": _count,
    "count_star": _count,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _ordered("min"),
    "max": _ordered("max"),
    "bool_and": _boolean("bool_and"),
    "bool_or": _boolean("bool_or"),
    "bit_and": _bits("bit_and"),
    "bit_or": _bits("bit_or"),
    "bit_xor": _bits("bit_xor"),
    "count_if": _count_if,
    "countif": _count_if,
    "any_value": _any_value,
    "grouping": _grouping,
    "grouping_id": _grouping,
    "row_number": _numbered("row_number", "BIGINT"),
    "rank": _numbered("rank", "BIGINT"),
    "dense_rank": _numbered("dense_rank", "BIGINT"),
    "rank_dense": _numbered("dense_rank", "BIGINT"),
    "percent_rank": _numbered("percent_rank"),
    "cume_dist": _numbered("cume_dist"),
    "ntile": _numbered("ntile", "BIGINT"),
    "lag": _beside("lag"),
    "lead": _beside("lead"),
    "first_value": _numbered("first_value"),
    "last_value": _numbered("last_value"),
    "nth_value": _numbered("nth_value"),
    "first": _numbered("first_value"),
    "last": _numbered("last_value"),
}
#: Functions that exist only as window functions.
WINDOW_ONLY = frozenset("row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead fill".split())
#: Aggregates of DuckDB that return 0 without rows.
NEVER_NULL = frozenset(("approx_count_distinct", "entropy", "regr_count"))
#: Aggregates whose result does not depend on row order.
_ORDERLESS = frozenset(
    "count count_star sum avg mean min max bool_and bool_or bit_and bit_or bit_xor count_if countif".split()
)


def native(a: Aggregate, order: exp.Order | None, *, by_nulls: bool) -> exp.Expr | None:
    """Returns the call in Spark's form; None if DuckDB must compute it.

    Args:
        order: the ORDER BY inside the call.
        by_nulls: the call has IGNORE NULLS or RESPECT NULLS.
    """
    form = FORMS.get(a.name)
    if form is None or (order is not None and a.name not in _ORDERLESS):
        return None
    if order is not None and a.name in ("sum", "avg", "mean") and a.kind.name in FLOATS:
        return None  # the last digits depend on the order
    if by_nulls and not (
        a.over and a.name in ("first_value", "last_value", "nth_value", "first", "last", "lag", "lead")
    ):
        return None
    distinct = [arg for arg in a.args if isinstance(arg, exp.Distinct)]
    if distinct and (a.over or any(len(arg.expressions) != 1 for arg in distinct)):
        return None
    if distinct and not is_ordered(a.kind):
        return None
    return form(a)


def refuse_over(name: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Function {name} with OVER is not supported on Spark yet.")
