"""Lambdas and their other forms: list comprehensions, and calls of methods."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError

#: Nodes whose parts are values, so that a name in them is a column.
_VALUES = (
    *(exp.Anonymous, exp.Paren, exp.Unary, exp.Binary, exp.Cast, exp.Case, exp.If, exp.Array, exp.Tuple),
    *(
        exp.Bracket,
        exp.Between,
        exp.In,
        exp.Order,
        exp.Ordered,
        exp.Filter,
        exp.Where,
        exp.Select,
        exp.Group,
        exp.Having,
    ),
)
#: The parts of other nodes that are values.
_PARTS = ((exp.Dot, "this"), (exp.PropertyEQ, "expression"), (exp.Kwarg, "expression"), (exp.Lambda, "this"))


def bare(body: exp.Expr, *names: str) -> exp.Expr:
    """Returns a lambda's body with bare identifiers as parameters."""
    folded = {name.casefold() for name in names}

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.parts[0].name.casefold() in folded:
            return node.to_dot() if node.table else exp.to_identifier(node.name)
        return node

    return body.transform(replace)


def without_comprehension(array: exp.Array) -> exp.Expr:
    """Rewrites `[f(x) FOR x IN l IF c(x)]` as list_transform(list_filter(l, x -> c(x)), x -> f(x)).

    With a position, `[f(x, i) FOR x, i IN l IF c(x, i)]`, each value is computed before the filter, as in DuckDB.
    """
    part = array.expressions[0]
    if not isinstance(part, exp.Comprehension):
        return array
    name, position = part.expression, part.args.get("position")
    if not isinstance(name, exp.Identifier) or not isinstance(position, exp.Identifier | None):
        raise UnsupportedFeatureError("A list comprehension over several names is not supported yet.")
    names = [name] if position is None else [name, position]

    def over(body: exp.Expr) -> exp.Lambda:
        return exp.Lambda(
            this=bare(body.copy(), *(one.name for one in names)), expressions=[one.copy() for one in names]
        )

    rows, value, condition = part.args["iterator"].copy(), part.this, part.args.get("condition")
    if condition is not None and position is not None:
        call = _field_of_all(_where(_transformed(rows, over(_pair(condition, value)))), "v")
    elif condition is not None:
        filtered = exp.Anonymous(this="list_filter", expressions=[rows, over(condition)])
        call = _transformed(filtered, over(value))
    else:
        call = _transformed(rows, over(value))
    if array.parent is not None:
        array.replace(call)
    return call


def _transformed(rows: exp.Expr, each: exp.Lambda) -> exp.Anonymous:
    return exp.Anonymous(this="list_transform", expressions=[rows, each])


def _pair(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(key, quoted=True), expression=part.copy())
        for key, part in (("c", condition), ("v", value))
    ]
    return exp.Anonymous(this="struct_pack", expressions=parts)


def _where(pairs: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this="list_filter", expressions=[pairs, _field("c")])


def _field_of_all(pairs: exp.Expr, key: str) -> exp.Anonymous:
    return _transformed(pairs, _field(key))


def _field(key: str) -> exp.Lambda:
    one = exp.to_identifier("_ducklake_one", quoted=True)
    return exp.Lambda(this=exp.Dot(this=one, expression=exp.to_identifier(key, quoted=True)), expressions=[one.copy()])


def with_columns(subject: exp.Expr) -> exp.Expr:
    """A copy of the value before `.function(…)`, with columns where the parser leaves bare names."""

    def replaced(node: exp.Expr) -> exp.Expr:
        return exp.column(node.copy()) if isinstance(node, exp.Identifier) and _is_value(node) else node

    return subject.copy().transform(replaced)


def _is_value(name: exp.Identifier) -> bool:
    """Returns whether a name stands for a value, and for no parameter of a lambda around it."""
    parent = name.parent
    if parent is None:
        return True
    by_part = next((name.arg_key == part for kind, part in _PARTS if isinstance(parent, kind)), None)
    if not (isinstance(parent, _VALUES) if by_part is None else by_part):
        return False
    around = name.find_ancestor(exp.Lambda)
    while around is not None:
        if any(name.name.casefold() == parameter.name.casefold() for parameter in around.expressions):
            return False
        around = around.find_ancestor(exp.Lambda)
    return True
