"""DuckDB's list functions in Spark's words. In DuckDB a NULL list mostly counts as an empty one."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import FLOATS, INTEGERS
from ducklake_lab.sql.calls import Build, Call
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, is_null, negate, number, text


def _lambda(body: exp.Expr, *names: str) -> exp.Lambda:
    return exp.Lambda(this=body, expressions=[exp.to_identifier(name) for name in names])


def _name(name: str) -> exp.Expr:
    return exp.to_identifier(name)


def _known(rows: exp.Expr) -> exp.Expr:
    """The elements that are not NULL."""
    return call("array_compact", rows)


def _empty_like(rows: exp.Expr) -> exp.Expr:
    """An empty list of the type of `rows`, which is not NULL."""
    return call("filter", rows, _lambda(exp.false(), "x"))


def concat(c: Call) -> exp.Expr:
    """list_concat: a NULL is an empty list."""
    if len(c.args) != 2:
        raise UnsupportedFeatureError(f"{c.name} of {len(c.args)} lists is not supported on Spark; nest the calls.")
    return call("concat", *(call("coalesce", rows, call("array")) for rows in c.args))


def append(c: Call) -> exp.Expr:
    rows, value = c.args
    one = call("array", value)
    return call("concat", call("coalesce", rows, _empty_like(one.copy())), one)


def prepend(c: Call) -> exp.Expr:
    value, rows = c.args
    one = call("array", value)
    return call("concat", one, call("coalesce", rows, _empty_like(one.copy())))


def position(c: Call) -> exp.Expr:
    if isinstance(c.written[1].unnest(), exp.Null):
        raise UnsupportedFeatureError(f"{c.name} of NULL is not supported on Spark.")
    return cast(call("nullif", call("array_position", *c.args), number(0)), "INT")


def flatten(c: Call) -> exp.Expr:
    return call("flatten", _known(c.args[0]))


def sort(*, descending: bool) -> Build:
    """list_sort and list_reverse_sort: NULLs are last."""

    def build(c: Call) -> exp.Expr:
        down = descending
        if len(c.args) > 1:
            order = c.literal(1, "order").upper()
            if order not in ("ASC", "DESC") or len(c.args) > 2:
                raise UnsupportedFeatureError(f"{c.name} with that order is not supported on Spark.")
            down = (order == "DESC") != descending
        if down:
            return call("sort_array", c.args[0], exp.false())
        return call("array_sort", c.args[0])

    return build


def distinct(c: Call) -> exp.Expr:
    return call("array_distinct", _known(c.args[0]))


def unique(c: Call) -> exp.Expr:
    return cast(call("size", distinct(c)), "DECIMAL(20,0)")


def count(c: Call) -> exp.Expr:
    return cast(call("size", _known(c.args[0])), "BIGINT")


def total(c: Call) -> exp.Expr:
    kind = c.types[0].children[0][1] if c.types[0] is not None and c.types[0].name == "list" else None
    if kind is None or (kind.name not in INTEGERS and kind.name not in FLOATS):
        raise UnsupportedFeatureError(f"{c.name} of that list is not supported on Spark.")
    spark = "DOUBLE" if kind.name in FLOATS else "DECIMAL(38,0)"
    return _folded(c.args[0], spark)


def _folded(rows: exp.Expr, spark: str) -> exp.Expr:
    """The sum of the elements that are not NULL; NULL where there is none."""
    step = cast(exp.Add(this=_name("acc"), expression=cast(_name("x"), spark)), spark)
    added = call("aggregate", _known(rows), cast(number(0), spark), _lambda(step, "acc", "x"))
    some = exp.GT(this=call("size", _known(rows.copy())), expression=number(0))
    return case(some, added)


def average(c: Call) -> exp.Expr:
    rows = c.args[0]
    size = cast(call("size", _known(rows.copy())), "DOUBLE")
    return binary(exp.Div, _folded(rows, "DOUBLE"), size)


def element(place: int) -> Build:
    """list_first and list_last."""
    return lambda c: call("try_element_at", c.args[0], number(place) if place > 0 else exp.Neg(this=number(-place)))


def has_any(c: Call) -> exp.Expr:
    left, right = c.args
    found = call("coalesce", call("arrays_overlap", _known(left), _known(right)), exp.false())
    return case(exp.And(this=negate(is_null(left.copy())), expression=negate(is_null(right.copy()))), found)


def has_all(c: Call) -> exp.Expr:
    left, right = c.args
    missing = call("array_except", _known(right), _known(left))
    return binary(exp.EQ, call("size", missing), number(0))


def joined(c: Call) -> exp.Expr:
    """array_to_string: NULLs are left out."""
    return call("array_join", call("transform", c.args[0], _lambda(cast(_name("x"), "STRING"), "x")), c.args[1])


def sequence(*, inclusive: bool) -> Build:
    """Range and generate_series of whole numbers as a list."""

    def build(c: Call) -> exp.Expr:
        if any(kind is None or kind.name not in INTEGERS for kind in c.types):
            raise UnsupportedFeatureError(f"{c.name} of anything but whole numbers is not supported on Spark.")
        start = cast(c.args[0], "BIGINT") if len(c.args) > 1 else cast(number(0), "BIGINT")
        stop = cast(c.args[-1], "BIGINT")
        last = stop if inclusive else binary(exp.Sub, stop, number(1))
        some = exp.GTE(this=last.copy(), expression=start.copy())
        none = exp.LT(this=last.copy(), expression=start.copy())
        listed = case(some, call("sequence", start, last))
        empty = exp.If(this=none, true=_empty_like(call("array", cast(number(0), "BIGINT"))))
        listed.append("ifs", empty)
        return listed

    return build


def split_by_pattern(c: Call) -> exp.Expr:
    if not c.literal(1, "pattern"):
        raise UnsupportedFeatureError(f"{c.name} at an empty pattern is not supported on Spark.")
    return call("split", c.args[0], c.args[1])


def unicode(c: Call) -> exp.Expr:
    value = c.args[0]
    return case(exp.EQ(this=value.copy(), expression=text("")), exp.Neg(this=number(1)), call("ascii", value))
