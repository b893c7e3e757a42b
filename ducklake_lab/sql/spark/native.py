"""Scalar forms that Spark computes with DuckDB's results, for listed types. DuckDB computes all others.

`tests/spark/test_expressions.py` compares every form with DuckDB, for all types and extreme values; a form without
such a test must not be here. Spark runs in ANSI mode, so that an overflow is an error, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark.nodes import binary, call, case, cast, number, text
from ducklake_lab.sql.spark.operands import (
    DIGITS,
    FLOATS,
    SIGNED,
    UNSIGNED,
    Context,
    carried,
    constant,
    digits_of,
    is_constant,
    is_exact_double,
    operands,
    value_of,
)
from ducklake_lab.version import SINCE_DUCKDB_2

#: Settings -> nodes that are not native under them.
CHANGED_BY: Mapping[str, tuple[type[exp.Expr], ...]] = {
    "integer_division": (exp.Div,),
    "ieee_floating_point_ops": (exp.Div, exp.Mod),
}


Form = Callable[[Context, Any], exp.Expr | None]


def _comparison(c: Context, node: exp.Binary) -> exp.Expr | None:
    found = operands(c, node.this, node.expression)
    return type(node)(this=_inside(found[0]), expression=_inside(found[1])) if found is not None else None


def _between(c: Context, node: exp.Between) -> exp.Expr | None:
    if node.args.get("symmetric"):
        return None
    found = operands(c, node.this, node.args["low"], node.args["high"])
    if found is None:
        return None
    value, low, high = (_inside(part) for part in found)
    return exp.Between(this=value, low=low, high=high)


def _in(c: Context, node: exp.In) -> exp.Expr | None:
    if node.args.get("unnest") or node.args.get("field") or not node.expressions:
        return None
    found = operands(c, node.this, *node.expressions)
    return exp.In(this=_inside(found[0]), expressions=found[1:]) if found is not None else None


def _inside(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Not | exp.Case | exp.Between | exp.In) else node


# Arithmetic


def _arithmetic(c: Context, node: exp.Binary) -> exp.Expr | None:
    kind = c.type_of(node)
    kinds = [c.type_of(node.this), c.type_of(node.expression)]
    if kind is None or any(part is None for part in kinds):
        return None
    known = [part for part in kinds if part is not None]
    if kind.name in SIGNED and all(part.name in SIGNED for part in known):
        return _at(c, node, kind)
    if kind.name == "float64" and all(is_exact_double(part) or part.name == "float32" for part in known):
        return _at(c, node, kind)
    if kind.name == "float32" and all(part.name == "float32" for part in known):
        return _at(c, node, kind)
    if kind.decimal is not None and all(digits_of(part) is not None for part in known):
        return _decimals(c, node, kind, known)
    return None


def _at(c: Context, node: exp.Binary, kind: DataType) -> exp.Expr | None:
    """Returns an operation with both operands in the result's type."""
    if kind.name in FLOATS and any(_is_zero(c, part) for part in (node.this, node.expression)):
        return None
    sides = [_brought(c, part, kind) for part in (node.this, node.expression)]
    return binary(type(node), sides[0], sides[1]) if sides[0] is not None and sides[1] is not None else None


def _is_zero(c: Context, node: exp.Expr) -> bool:
    """Returns whether a node is the constant 0: DuckDB simplifies with it, and so changes the sign of zeros."""
    try:
        return is_constant(node) and value_of(c, node, DataType("float64")) == 0
    except DuckLakeError:
        return True


def _brought(c: Context, node: exp.Expr, kind: DataType) -> exp.Expr | None:
    own = c.type_of(node)
    if is_constant(node):
        return constant(c, node, kind)
    value = c.native(node)
    return value if value is None or own == kind else cast(value, carried(kind))


def _decimals(c: Context, node: exp.Binary, kind: DataType, kinds: Sequence[DataType]) -> exp.Expr | None:
    """Returns an exact decimal operation; both engines raise an error if DuckDB's type is too small."""
    (a, s), (b, t) = (digits_of(part) or (0, 0) for part in kinds)
    digits = a + b + s + t + 1 if isinstance(node, exp.Mul) else max(a, b) + max(s, t) + 1
    left, right = c.native(node.this), c.native(node.expression)
    if left is None or right is None or digits > 38 or kind.decimal is None:
        return None
    value = binary(type(node), left, right)
    exact = (digits, s + t if isinstance(node, exp.Mul) else max(s, t))
    whole = all(part.decimal is not None for part in kinds)
    return value if whole and exact == kind.decimal else cast(value, carried(kind))


def _divide(c: Context, node: exp.Div) -> exp.Expr | None:
    """Returns a floating-point division; a division by zero gives an infinity or NaN."""
    kinds = [c.type_of(node.this), c.type_of(node.expression)]
    double = DataType("float64")
    if c.type_of(node) != double or any(kind is None or not is_exact_double(kind) for kind in kinds):
        return None
    left, right = _brought(c, node.this, double), _brought(c, node.expression, double)
    if left is None or right is None:
        return None
    value = binary(exp.Div, left, right)
    if is_constant(node.expression):
        try:
            return value if value_of(c, node.expression, double) else None
        except DuckLakeError:
            return None
    infinity = cast(text("Infinity"), "DOUBLE")
    by_zero: exp.Expr = binary(exp.Mul, left.copy(), infinity)
    if kinds[1] == double:
        negative = binary(exp.EQ, cast(right.copy(), "STRING"), text("-0.0"))
        by_zero = case(negative, binary(exp.Mul, left.copy(), cast(text("-Infinity"), "DOUBLE")), by_zero)
    return case(binary(exp.EQ, right.copy(), cast(text("0"), "DOUBLE")), by_zero, value)


def _modulo(c: Context, node: exp.Mod) -> exp.Expr | None:
    kind = c.type_of(node)
    kinds = [c.type_of(node.this), c.type_of(node.expression)]
    if kind is None or kind.name not in SIGNED or any(part is None or part.name not in SIGNED for part in kinds):
        return None
    left, right = _brought(c, node.this, kind), _brought(c, node.expression, kind)
    if left is None or right is None:
        return None
    divisor = node.expression.unnest()
    if SINCE_DUCKDB_2 and not (isinstance(divisor, exp.Literal) and divisor.is_int and int(divisor.this)):
        return None  # zero may be an error there, by a setting
    return binary(exp.Mod, left, call("nullif", right, cast(number(0), carried(kind))))


def _negative(c: Context, node: exp.Neg) -> exp.Expr | None:
    kind = c.type_of(node)
    if kind is None or kind != c.type_of(node.this):
        return None
    value = c.native(node.this) if _has_sign(kind) else None
    return exp.Neg(this=exp.Paren(this=value)) if value is not None else None


# Conditions


def _connector(c: Context, node: exp.Connector) -> exp.Expr | None:
    sides = [_truth(c, part) for part in (node.this, node.expression)]
    if sides[0] is None or sides[1] is None:
        return None
    return type(node)(this=_grouped(sides[0], node), expression=_grouped(sides[1], node))


def _grouped(side: exp.Expr, around: exp.Expr) -> exp.Expr:
    return exp.Paren(this=side) if isinstance(side, exp.Connector) and type(side) is not type(around) else side


def _truth(c: Context, node: exp.Expr) -> exp.Expr | None:
    kind = c.type_of(node)
    return c.native(node) if kind is not None and kind.name == "boolean" else None


def _not(c: Context, node: exp.Not) -> exp.Expr | None:
    value = _truth(c, node.this)
    return exp.Not(this=value if isinstance(value, exp.Paren) else exp.Paren(this=value)) if value is not None else None


def _is(c: Context, node: exp.Is) -> exp.Expr | None:
    if not isinstance(node.expression, exp.Null):
        return None
    value = c.native(node.this)
    return exp.Is(this=exp.Paren(this=value), expression=exp.Null()) if value is not None else None


def _like(c: Context, node: exp.Like) -> exp.Expr | None:
    pattern = node.expression.unnest()
    kind = c.type_of(node.this)
    if kind is None or kind.name != "varchar" or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return None
    value = c.native(node.this)
    # Spark's pattern has an escape character, DuckDB's has none
    if (
        value is None
        or not pattern.name
        or "\\" in pattern.name
        or not (pattern.name.isascii() and pattern.name.isprintable())
    ):
        return None
    found = exp.Like(this=_inside(value), expression=text(pattern.name))
    return exp.Not(this=exp.Paren(this=found)) if node.args.get("negate") else found


def _case(c: Context, node: exp.Case) -> exp.Expr | None:
    kind = c.type_of(node)
    if kind is None or node.this is not None:
        return None
    branches: list[exp.Expr] = []
    for branch in node.args["ifs"]:
        condition, value = _truth(c, branch.this), _branch(c, branch.args["true"], kind)
        if condition is None or value is None:
            return None
        branches.append(exp.If(this=condition, true=value))
    default = node.args.get("default")
    otherwise = _branch(c, default, kind) if default is not None else None
    if default is not None and otherwise is None:
        return None
    return exp.Case(ifs=branches, default=otherwise)


def _branch(c: Context, node: exp.Expr, kind: DataType) -> exp.Expr | None:
    """Returns a value in the result's type, to which DuckDB casts it."""
    if is_constant(node):
        return constant(c, node, kind)
    return converted(c, node, kind)


def converted(c: Context, node: exp.Expr, kind: DataType) -> exp.Expr | None:
    """Returns a value cast to a type; None if DuckDB and Spark cast it differently."""
    own = c.type_of(node)
    if own is None or not (own == kind or _widens(own, kind)):
        return None
    value = c.native(node)
    return value if value is None or own == kind else cast(value, carried(kind))


def _widens(own: DataType, kind: DataType) -> bool:
    """Returns whether each value of a numeric type is a value of another, or becomes the nearest DOUBLE."""
    source, target = digits_of(own), digits_of(kind)
    if own.name in SIGNED and kind.name in SIGNED:
        return SIGNED[own.name] <= SIGNED[kind.name]
    if own.name in UNSIGNED and kind.name in DIGITS:
        return UNSIGNED[own.name] < DIGITS[kind.name] or (own.name, kind.name) == ("uint64", "int128")
    if source is not None and kind.decimal is not None and target is not None and own.name not in ("int128", "uint128"):
        return source[0] <= target[0] and source[1] <= target[1]
    return kind.name == "float64" and (own.name == "float32" or is_exact_double(own))


# Casts and calls


def _cast(c: Context, node: exp.Cast) -> exp.Expr | None:
    kind = c.type_of(node)
    own = c.type_of(node.this)
    if kind is None or own is None:
        return None
    if kind.name == "varchar" and own.name in (*SIGNED, "uint8", "uint16", "uint32"):
        value = c.native(node.this)
        return cast(value, "STRING") if value is not None else None
    return converted(c, node.this, kind)


def _field(c: Context, node: exp.Dot) -> exp.Expr | None:
    kind = c.type_of(node.this)
    if kind is None or kind.name != "struct" or not isinstance(node.expression, exp.Identifier):
        return None
    name = next((name for name, _ in kind.children if name.casefold() == node.expression.name.casefold()), None)
    value = c.native(node.this)
    if value is None or name is None:
        return None
    return exp.Dot(this=_subject(value), expression=exp.to_identifier(name, quoted=True))


def _subject(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Column | exp.Dot) else exp.Paren(this=node)


def _coalesce(c: Context, node: exp.Anonymous) -> exp.Expr | None:
    kind = c.type_of(node)
    values = [_branch(c, part, kind) if kind is not None else None for part in node.expressions]
    known = [value for value in values if value is not None]
    return call("coalesce", *known) if len(known) == len(values) else None


def _nullif(c: Context, node: exp.Anonymous) -> exp.Expr | None:
    if len(node.expressions) != 2 or c.type_of(node) != c.type_of(node.expressions[0]):
        return None
    equal = _comparison(c, exp.EQ(this=node.expressions[0].copy(), expression=node.expressions[1].copy()))
    value = c.native(node.expressions[0])
    if equal is None or value is None:
        return None
    return case(exp.Not(this=exp.Paren(this=call("coalesce", equal, exp.Boolean(this=False)))), value)


def _part(name: str) -> Form:
    """Returns the form of a date part; it is NULL for an infinite date."""

    def form(c: Context, node: exp.Anonymous) -> exp.Expr | None:
        kind = c.type_of(node.expressions[-1])
        value = c.native(node.expressions[-1])
        if kind is None or kind.name != "date" or value is None:
            return None
        finite = exp.LT(this=call("abs", call("unix_date", value)), expression=number(2**31 - 1))
        return case(finite, cast(call(name, value.copy()), "BIGINT"))

    return form


def _date_part(c: Context, node: exp.Anonymous) -> exp.Expr | None:
    unit = node.expressions[0].unnest()
    if len(node.expressions) != 2 or not isinstance(unit, exp.Literal) or unit.name.lower() not in _PARTS:
        return None
    return _part(unit.name.lower())(c, node)


_PARTS = ("year", "month", "day")


def _texts(name: str) -> Form:
    """Returns the form of a function with only text arguments."""

    def form(c: Context, node: exp.Anonymous) -> exp.Expr | None:
        kinds = [c.type_of(part) for part in node.expressions]
        values = [c.native(part) for part in node.expressions]
        known = [value for value in values if value is not None]
        texts = all(kind is not None and kind.name == "varchar" for kind in kinds)
        return call(name, *known) if texts and len(known) == len(values) else None

    return form


def _length(c: Context, node: exp.Anonymous) -> exp.Expr | None:
    found = _texts("char_length")(c, node)
    return cast(found, "BIGINT") if found is not None else None


def _substring(c: Context, node: exp.Anonymous) -> exp.Expr | None:
    """Returns a substring with constant start and length."""
    subject, *bounds = node.expressions
    kind, value = c.type_of(subject), c.native(subject)
    known = all(isinstance(bound.unnest(), exp.Literal) and bound.unnest().name.isdigit() for bound in bounds)
    if kind is None or kind.name != "varchar" or value is None or not known or len(bounds) != 2:
        return None
    start, length = (int(bound.unnest().name) for bound in bounds)
    return call("substring", value, number(start), number(length)) if 0 < start < 2**31 and length < 2**31 else None


def _absolute(c: Context, node: exp.Anonymous) -> exp.Expr | None:
    kind = c.type_of(node)
    value = c.native(node.expressions[0])
    if kind is None or value is None or kind != c.type_of(node.expressions[0]):
        return None
    return call("abs", value) if _has_sign(kind) else None


def _has_sign(kind: DataType) -> bool:
    """Returns whether Spark negates all values of a type exactly; it keeps only 34 digits of decimals."""
    return kind.name in (*SIGNED, *FLOATS) or (kind.decimal is not None and kind.decimal[0] <= 34)


#: Spark's forms by node type; a form returns None for types that it does not support.
FORMS: Mapping[type[exp.Expr], Form] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ), _comparison),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    exp.Between: _between,
    exp.In: _in,
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Neg: _negative,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.Is: _is,
    exp.Like: _like,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Dot: _field,
}
#: Spark's forms by function name and number of arguments.
CALLS: Mapping[tuple[str, int], Form] = {
    **{("coalesce", count): _coalesce for count in range(1, 20)},
    ("ifnull", 2): _coalesce,
    ("nullif", 2): _nullif,
    **{(name, 1): _part(name) for name in _PARTS},
    ("date_part", 2): _date_part,
    ("length", 1): _length,
    ("len", 1): _length,
    ("char_length", 1): _length,
    ("substring", 3): _substring,
    ("substr", 3): _substring,
    ("contains", 2): _texts("contains"),
    ("starts_with", 2): _texts("startswith"),
    ("prefix", 2): _texts("startswith"),
    ("ends_with", 2): _texts("endswith"),
    ("suffix", 2): _texts("endswith"),
    ("abs", 1): _absolute,
}


#: Parts of a node that forms support; a node with other parts is not native.
_PARTS_OF_FORMS = frozenset("this expression expressions low high ifs default to negate".split())


def form_of(node: exp.Expr, settings: Settings) -> Form | None:
    """Returns the form of a node, unless a setting excludes it."""
    for name, _ in settings:
        if isinstance(node, CHANGED_BY.get(name, ())):
            return None
    if isinstance(node, exp.TryCast) or any(node.args.get(part) for part in node.args.keys() - _PARTS_OF_FORMS):
        return None
    if isinstance(node, exp.Anonymous):
        return CALLS.get((node.name.lower(), len(node.expressions)))
    return FORMS.get(type(node))
