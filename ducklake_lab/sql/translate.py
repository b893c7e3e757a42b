"""A bound DuckDB tree as Spark SQL of the same meaning (Spark 4, ANSI mode).

Every kind of node is either translated here, or listed as one that both write and mean alike, or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import FLOATS, INTEGERS
from ducklake_lab.sql import spark_query
from ducklake_lab.sql.calls import Call
from ducklake_lab.sql.carried import refuse_computing
from ducklake_lab.sql.casts import convert
from ducklake_lab.sql.dialect import SparkSql
from ducklake_lab.sql.functions import WINDOW_ONLY, is_aggregate, translate_call
from ducklake_lab.sql.inference import Type, type_of
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, number, paren, text
from ducklake_lab.sql.texts import full_match
from ducklake_lab.sql.types import from_sqlglot
from ducklake_lab.sql.zones import added, write_casts

#: Nodes whose children are translated and that mean the same in both, as the generator writes them.
_ALIKE: tuple[type[exp.Expr], ...] = (
    exp.Column, exp.Identifier, exp.Var, exp.Null, exp.Boolean, exp.Paren, exp.Alias, exp.TableAlias, exp.Star,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Neg, exp.Mul, exp.DPipe, exp.Case, exp.If, exp.Exists, exp.Tuple,
    exp.Distinct, exp.Order, exp.Lambda, exp.Dot, exp.Kwarg, exp.PropertyEQ, exp.BitwiseAnd, exp.BitwiseOr,
    exp.BitwiseNot, exp.CurrentDate, exp.CurrentTimestamp, exp.WindowSpec, exp.Escape, exp.IgnoreNulls,
    exp.RespectNulls, exp.DataType,
    # Clauses
    exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Limit, exp.Offset, exp.Values,
    exp.Rollup, exp.Cube, exp.GroupingSets,
)  # fmt: skip

Wrap = Callable[[exp.Expr], exp.Expr]


def spark_sql(tree: exp.Expr) -> str:
    """The Spark SQL of a bound query; `tree` is used up.

    Raises:
        UnsupportedFeatureError: it uses something that Spark has no equal for here.
    """
    refuse_computing(tree)
    write_casts(tree)
    translated = translate(tree)
    try:
        statement = translated.sql(
            dialect=SparkSql,
            identify=True,
            normalize_functions=False,
            unsupported_level=ErrorLevel.RAISE,
            comments=False,
        )
    except UnsupportedError as error:
        raise UnsupportedFeatureError(f"This query cannot run on Spark: {' '.join(str(error).split())}") from error
    if "${" in statement:
        raise UnsupportedFeatureError('A name with "${" in it cannot be used on Spark, which would replace it.')
    return statement


def translate(node: exp.Expr) -> exp.Expr:
    """The Spark tree for a node; made from the node's own parts."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(node)
    if isinstance(node, _ALIKE):
        return children(node)
    raise UnsupportedFeatureError(f"{_name(node)} is not supported on Spark yet.")


def children(node: exp.Expr) -> exp.Expr:
    """Translates the children of a node in place."""
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(key, translate(value))
        elif isinstance(value, list):
            node.set(key, [translate(item) if isinstance(item, exp.Expr) else item for item in value])
    return node


def _name(node: exp.Expr) -> str:
    words: dict[Any, str] = {
        exp.Glob: "GLOB",
        exp.JSONExtract: "JSON extraction (->)",
        exp.JSONExtractScalar: "JSON extraction (->>)",
    }
    return words.get(type(node), type(node).__name__)


def _literal(node: exp.Literal) -> exp.Expr:
    if not node.is_string:
        digits = node.name.replace("_", "")
        if digits.isdigit() and int(digits) >= 2**63:
            raise UnsupportedFeatureError(f"The number {digits} is too large for Spark's BIGINT.")
        return exp.Literal.number(digits)
    return node


def _operands(node: exp.Binary) -> tuple[exp.Expr, exp.Expr, Type, Type]:
    left, right = type_of(node.this), type_of(node.expression)
    return translate(node.this), translate(node.expression), left, right


def _constant_not_zero(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.Literal) and not bare.is_string and float(bare.name) != 0


def _divide(node: exp.Div) -> exp.Expr:
    """DuckDB divides in floating point, and by zero gives infinity or NaN."""
    left, right, _, _ = _operands(node)
    dividend = cast(left, "DOUBLE")
    if _constant_not_zero(right):
        return binary(exp.Div, dividend, right)
    divisor = cast(right, "DOUBLE")
    infinite = binary(exp.Mul, dividend.copy(), cast(text("Infinity"), "DOUBLE"))
    return case(binary(exp.EQ, divisor.copy(), number(0)), infinite, binary(exp.Div, dividend, divisor))


def _integer_divide(node: exp.IntDiv) -> exp.Expr:
    left, right, a, b = _operands(node)
    if a is None or b is None:
        raise UnsupportedFeatureError("// of operands whose types are not known is not supported on Spark yet.")
    if a.name not in INTEGERS or b.name not in INTEGERS:
        return _divide(exp.Div(this=left, expression=right))
    divisor = right if _constant_not_zero(right) else call("nullif", right, number(0))
    result = exp.Paren(this=exp.IntDiv(this=paren(left), expression=paren(divisor)))
    return cast(result, "BIGINT" if "int64" in (a.name, b.name) else "INT")


def _modulo(node: exp.Mod) -> exp.Expr:
    left, right, a, b = _operands(node)
    if _constant_not_zero(right):
        return binary(exp.Mod, left, right)
    if {a.name if a else "", b.name if b else ""} & set(FLOATS):
        nan = binary(exp.Mul, left.copy(), cast(text("NaN"), "DOUBLE"))
        return case(binary(exp.EQ, right, number(0)), nan, binary(exp.Mod, left, right.copy()))
    return binary(exp.Mod, left, call("nullif", right, number(0)))


def _power(node: exp.Pow) -> exp.Expr:
    left, right, _, _ = _operands(node)
    return call("power", cast(left, "DOUBLE"), cast(right, "DOUBLE"))


def _add_subtract(node: exp.Add | exp.Sub) -> exp.Expr:
    kind = type(node)
    written = (node.this.copy(), node.expression.copy())
    left, right, a, b = _operands(node)
    names = (a.name if a else "", b.name if b else "")
    if names[0] == "timestamptz" and names[1] == "interval":
        return added(kind, left, written[1], right)
    if names[0] == "interval" and names[1] == "timestamptz":
        return added(kind, right, written[0], left)
    if "timestamptz" in names:
        raise UnsupportedFeatureError("Subtracting times of which one has a time zone is not supported on Spark.")
    if "interval" in names:
        # A date plus an interval is a timestamp in DuckDB; in Spark it may stay a date.
        if names[0] == "date":
            left = cast(left, "TIMESTAMP_NTZ")
        if names[1] == "date":
            right = cast(right, "TIMESTAMP_NTZ")
    elif names == ("date", "date"):
        return cast(call("datediff", left, right), "BIGINT")
    elif names[0] == "date" and names[1] in INTEGERS:
        return call("date_add" if kind is exp.Add else "date_sub", left, cast(right, "INT"))
    elif names[1] == "date" and names[0] in INTEGERS and kind is exp.Add:
        return call("date_add", right, cast(left, "INT"))
    return binary(kind, left, right)


def _cast(node: exp.Cast) -> exp.Expr:
    return convert(translate(node.this), type_of(node.this), from_sqlglot(node.to), safe=isinstance(node, exp.TryCast))


def _like(node: exp.Expr) -> exp.Expr:
    children(node)
    pattern = node.expression
    # Spark reads a backslash as an escape unless told otherwise; DuckDB has no escape unless told so.
    if isinstance(pattern, exp.Literal) and "\\" in pattern.name and not isinstance(node.parent, exp.Escape):
        node.set("expression", text(pattern.name.replace("\\", "\\\\")))
    return node


def _escaped(node: exp.Escape) -> exp.Expr:
    inner = node.this
    node.set("this", children(inner))
    node.set("expression", translate(node.expression))
    return node


def _bracket(node: exp.Bracket) -> exp.Expr:
    kind = type_of(node.this)
    subject = translate(node.this)
    if len(node.expressions) != 1:
        raise UnsupportedFeatureError("An index of several values is not supported on Spark.")
    index = node.expressions[0]
    if kind is None:
        raise UnsupportedFeatureError(
            "An index into an expression whose type is not known is not supported on Spark yet."
        )
    if isinstance(index, exp.Slice):
        return _slice(subject, index, kind.name)
    if kind.name == "struct":
        if not isinstance(index, exp.Literal):
            raise UnsupportedFeatureError("A struct's field must be named by a constant to run on Spark.")
        return exp.Dot(this=paren(subject), expression=exp.to_identifier(index.name, quoted=True))
    position = translate(index)
    if kind.name == "map":
        return call("try_element_at", subject, position)
    if kind.name == "varchar":
        return call("substring", subject, position, number(1))
    if kind.name != "list":
        raise UnsupportedFeatureError(f"An index into {kind.sql()} is not supported on Spark.")
    if not _constant_not_zero(position) and not isinstance(position, exp.Neg):
        position = call("nullif", position, number(0))
    return call("try_element_at", subject, cast(position, "INT"))


def _slice(subject: exp.Expr, bounds: exp.Slice, kind: str) -> exp.Expr:
    start, end = bounds.this, bounds.expression
    for bound in (start, end):
        if bound is not None and not (isinstance(bound.unnest(), exp.Literal) and bound.unnest().name.isdigit()):
            raise UnsupportedFeatureError("A slice whose bounds are not constants is not supported on Spark yet.")
    first = max(int(start.unnest().name), 1) if start is not None else 1
    function = {"list": "slice", "varchar": "substring"}.get(kind)
    if function is None:
        raise UnsupportedFeatureError(f"A slice of {kind} is not supported on Spark.")
    length = max(int(end.unnest().name) - first + 1, 0) if end is not None else 2**31 - 1
    return call(function, subject, number(first), number(length))


def _struct(node: exp.Struct) -> exp.Expr:
    parts: list[exp.Expr] = []
    for item in node.expressions:
        if not isinstance(item, exp.PropertyEQ):
            raise UnsupportedFeatureError("A struct without field names is not supported on Spark.")
        parts += [text(item.this.name), translate(item.expression)]
    return call("named_struct", *parts)


def _map(node: exp.ToMap) -> exp.Expr:
    parts: list[exp.Expr] = []
    for item in node.this.expressions:
        parts += [translate(item.this), translate(item.expression)]
    return call("map", *parts)


def _interval(node: exp.Interval) -> exp.Expr:
    unit = node.text("unit").upper().rstrip("S")
    value = node.this
    if isinstance(value, exp.Literal) and value.name.lstrip("-").isdigit() and unit in _INTERVAL_UNITS:
        return exp.Interval(this=text(value.name), unit=exp.var(unit))
    if unit not in _INTERVAL_UNITS or value is None or (isinstance(value, exp.Literal) and value.is_string):
        raise UnsupportedFeatureError(f"{node.sql(dialect='duckdb')} is not supported on Spark; write INTERVAL 1 DAY.")
    count = cast(translate(value), "INT")
    function, place, size = _INTERVAL_UNITS[unit]
    arguments: list[exp.Expr] = [number(0)] * place
    return call(function, *[a.copy() for a in arguments], binary(exp.Mul, count, number(size)) if size > 1 else count)


#: unit -> Spark function, how many arguments come before it, multiple of that argument.
_INTERVAL_UNITS = {
    "YEAR": ("make_ym_interval", 0, 1),
    "QUARTER": ("make_ym_interval", 1, 3),
    "MONTH": ("make_ym_interval", 1, 1),
    "WEEK": ("make_dt_interval", 0, 7),
    "DAY": ("make_dt_interval", 0, 1),
    "HOUR": ("make_dt_interval", 1, 1),
    "MINUTE": ("make_dt_interval", 2, 1),
    "SECOND": ("make_dt_interval", 3, 1),
}


def _call(node: exp.Anonymous, wrap: Wrap = lambda core: core) -> exp.Expr:
    written = [argument.copy() for argument in node.expressions]
    types = [type_of(argument) for argument in node.expressions]
    arguments = [translate(argument) for argument in node.expressions]
    return translate_call(Call(node.name, arguments, written, types, wrap))


def _filter(node: exp.Filter, wrap: Wrap = lambda core: core) -> exp.Expr:
    condition = translate(node.expression)

    def around(core: exp.Expr) -> exp.Expr:
        return wrap(exp.Filter(this=core, expression=condition.copy()))

    return _core(node.this, around)


def _core(node: exp.Expr, wrap: Wrap) -> exp.Expr:
    """Translates an aggregate or window function whose Spark core `wrap` surrounds."""
    if isinstance(node, exp.Filter):
        return _filter(node, wrap)
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        kind = type(node)
        return _core(node.this, lambda core: wrap(kind(this=core)))
    if isinstance(node, exp.Anonymous):
        arguments = node.expressions
        if arguments and isinstance(arguments[-1], exp.IgnoreNulls | exp.RespectNulls):
            kind = type(arguments[-1])
            arguments[-1].replace(arguments[-1].this)
            return _core(node, lambda core: wrap(kind(this=core)))
        return _call(node, wrap)
    raise UnsupportedFeatureError(f"{_name(node)} with OVER or FILTER is not supported on Spark.")


def _window(node: exp.Window) -> exp.Expr:
    if node.args.get("exclude") or (node.args.get("spec") and node.args["spec"].args.get("exclude")):
        raise UnsupportedFeatureError("EXCLUDE in a window is not supported on Spark.")
    spec = node.args.get("spec")
    if spec is not None and spec.text("kind").upper() == "GROUPS":
        raise UnsupportedFeatureError("GROUPS in a window is not supported on Spark.")
    function = node.this
    shell = node.copy()
    shell.set("this", None)
    children(shell)
    if isinstance(function, exp.Identifier):
        shell.set("this", function)
        return shell
    name = next((part.name.lower() for part in function.walk() if isinstance(part, exp.Anonymous)), "")
    if not is_aggregate(name) and name not in WINDOW_ONLY | {"first_value", "last_value", "nth_value"}:
        raise UnsupportedFeatureError(f"Function {name} with OVER is not supported on Spark yet.")
    if name in WINDOW_ONLY and not shell.args.get("order") and not shell.args.get("alias"):
        # Spark wants an order where DuckDB takes any.
        shell.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Null(), nulls_first=True)]))

    def over(core: exp.Expr) -> exp.Expr:
        result = shell.copy()
        result.set("this", core)
        return result

    return _core(function, over)


def _regexp(node: exp.Binary) -> exp.Expr:
    return full_match(translate(node.this), translate(node.expression))


def _ordered(node: exp.Ordered) -> exp.Expr:
    if node.args.get("with_fill"):
        raise UnsupportedFeatureError("WITH FILL is not supported.")
    return children(node)


def _limit(node: exp.Limit) -> exp.Expr:
    options = node.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        raise UnsupportedFeatureError("LIMIT in percent is not supported on Spark.")
    node.set("limit_options", None)
    return children(node)


_HANDLERS: dict[Any, Callable[[Any], exp.Expr]] = {
    exp.Literal: _literal,
    exp.Div: _divide,
    exp.IntDiv: _integer_divide,
    exp.Mod: _modulo,
    exp.Pow: _power,
    exp.Add: _add_subtract,
    exp.Sub: _add_subtract,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escaped,
    exp.Bracket: _bracket,
    exp.Struct: _struct,
    exp.ToMap: _map,
    exp.StartsWith: lambda node: call("startswith", translate(node.this), translate(node.expression)),
    exp.Map: lambda node: call("map_from_arrays", translate(node.args["keys"]), translate(node.args["values"])),
    exp.Array: lambda node: call("array", *[translate(item) for item in node.expressions]),
    exp.Interval: _interval,
    exp.Anonymous: _call,
    exp.Filter: _filter,
    exp.Window: _window,
    exp.RegexpFullMatch: _regexp,
    exp.SimilarTo: _regexp,
    exp.Ordered: _ordered,
    exp.Limit: _limit,
    exp.Select: lambda node: spark_query.select(node, translate, children),
    exp.Union: lambda node: spark_query.set_operation(node, translate, children),
    exp.Except: lambda node: spark_query.set_operation(node, translate, children),
    exp.Intersect: lambda node: spark_query.set_operation(node, translate, children),
    exp.Subquery: lambda node: spark_query.subquery(node, translate, children),
    exp.Table: lambda node: spark_query.table(node, translate, children),
    exp.Unnest: lambda node: spark_query.unnest(node, translate, children),
}
