"""Aggregates and window functions in Spark SQL; FILTER and OVER go around their core."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import FLOATS, INTEGERS
from ducklake_lab.sql.calls import Build, Call
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, is_null, negate, number, text


def average(c: Call) -> exp.Expr:
    kind = c.types[0]
    # Spark averages decimals as decimals, DuckDB as doubles.
    plain = kind is not None and (kind.name in INTEGERS or kind.name in FLOATS)
    return c.wrap(call("avg", c.args[0] if plain else cast_inside(c.args[0], "DOUBLE")))


def cast_inside(node: exp.Expr, kind: str) -> exp.Expr:
    if isinstance(node, exp.Distinct):
        return exp.Distinct(expressions=[cast(item, kind) for item in node.expressions])
    return cast(node, kind)


def quantile(c: Call) -> exp.Expr:
    place = float(c.literal(1, "quantile"))
    value = cast(c.args[0], "DOUBLE")
    return c.wrap(call("percentile", value, exp.Literal.number(repr(place) + "D")))


def quantile_disc(c: Call) -> exp.Expr:
    raise UnsupportedFeatureError("quantile_disc is not supported on Spark yet; use quantile_cont.")


def arg_extreme(name: str) -> Build:
    def build(c: Call) -> exp.Expr:
        value, key = c.args
        # DuckDB passes over rows whose value is NULL.
        return c.wrap(call(name, value, case(negate(is_null(value.copy())), key)))

    return build


def any_value(c: Call) -> exp.Expr:
    return c.wrap(call("any_value", c.args[0], exp.Boolean(this=True)))


def first_last(name: str) -> Build:
    return lambda c: c.wrap(call(name, c.args[0]))


def string_agg(c: Call) -> exp.Expr:
    args = [*c.args]
    order: exp.Order | None = None
    if isinstance(args[-1], exp.Order):
        order = args[-1]
        args[-1] = order.this
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        values = list(args[0].expressions)
        if order is not None:
            raise UnsupportedFeatureError(f"{c.name}(DISTINCT … ORDER BY …) is not supported on Spark yet.")
        return c.wrap(
            call("listagg", exp.Distinct(expressions=[cast(values[0], "STRING")]), *(values[1:] or [text(",")]))
        )
    value, separator = cast(args[0], "STRING"), args[1] if len(args) > 1 else text(",")
    if order is None:
        return c.wrap(call("listagg", value, separator))
    # Spark's listagg … WITHIN GROUP fails next to other DISTINCT aggregates, a sorted list does not.
    rows = _collected(c, value, order)
    shown = call("filter", rows, _lambda(negate(is_null(exp.to_identifier("e")))))
    return case(binary(exp.GT, call("size", shown), number(0)), call("array_join", shown.copy(), separator))


def _lambda(body: exp.Expr) -> exp.Lambda:
    """`e -> body`."""
    return exp.Lambda(this=body, expressions=[exp.to_identifier("e")])


def array_agg(c: Call) -> exp.Expr:
    value = c.args[0]
    order: exp.Order | None = None
    if isinstance(value, exp.Order):
        order, value = value, value.this
    if isinstance(value, exp.Distinct):
        raise UnsupportedFeatureError(f"{c.name}(DISTINCT …) is not supported on Spark yet.")
    rows = _collected(c, value, order)
    # No rows give NULL, not an empty list.
    return case(binary(exp.GT, call("size", rows), number(0)), rows.copy())


def _collected(c: Call, value: exp.Expr, order: exp.Order | None) -> exp.Expr:
    """The values of all rows as a list, NULLs included, sorted by `order`."""
    # Spark's collect_list leaves NULLs out, DuckDB keeps them: so the values travel inside structs.
    packed: list[exp.Expr] = []
    descending = False
    if order is not None:
        directions = {bool(key.args.get("desc")) for key in order.expressions}
        if len(directions) != 1:
            raise UnsupportedFeatureError(f"{c.name} ordered both ASC and DESC is not supported on Spark yet.")
        descending = directions.pop()
        for index, key in enumerate(order.expressions):
            flag: exp.Expr = is_null(key.this.copy())
            if bool(key.args.get("nulls_first")) != descending:
                flag = negate(flag)
            packed += [text(f"n{index}"), flag, text(f"k{index}"), key.this.copy()]
    packed += [text("v"), value]
    collected = c.wrap(call("collect_list", call("named_struct", *packed)))
    if order is not None:
        collected = call("sort_array", collected, exp.Boolean(this=not descending))
    member = exp.Dot(this=exp.to_identifier("e"), expression=exp.to_identifier("v", quoted=True))
    return call("transform", collected, _lambda(member))


def count(c: Call) -> exp.Expr:
    return c.wrap(call("count", *(c.args or [exp.Star()])))


def plain(name: str) -> Build:
    return lambda c: c.wrap(call(name, *c.args))


def window_function(name: str, kind: str | None = None) -> Build:
    def build(c: Call) -> exp.Expr:
        node = c.wrap(call(name, *c.args))
        return cast(node, kind) if kind else node

    return build


def total(c: Call) -> exp.Expr:
    kind = c.types[0]
    value = c.args[0]
    if kind is not None and kind.name == "boolean":
        value = cast_inside(value, "INT")
    return c.wrap(call("sum", value))
