"""What Spark cannot compute with: INTERVAL and TIME WITH TIME ZONE, of which it carries the text, and the order of nested values."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.inference import Type, type_of
from ducklake_lab.sql.scope import COMPUTED, JOINED_BY, OUTPUTS, TYPE, Output
from ducklake_lab.sql.types import from_sqlglot

_CARRIED = ("interval", "timetz")
_EXTREMES = frozenset(("min", "max", "greatest", "least"))


def carries(kind: Type) -> bool:
    """Whether values of a type are, or hold, text on Spark that stands for something else."""
    return kind is not None and (kind.name in _CARRIED or any(carries(child) for _, child in kind.children))


def is_computed(node: exp.Expr) -> bool:
    """Whether Spark computes a bound value itself, rather than hands on text that was read."""
    bare = _unwrapped(node)
    if isinstance(bare, exp.Dot | exp.Bracket | exp.Cast):
        return is_computed(bare.this)
    if isinstance(bare, exp.Column):
        return bool(bare.meta.get(COMPUTED))
    if isinstance(bare, exp.Case):
        return all(is_computed(branch) for branch in _branches(bare))
    outputs = bare.meta.get(OUTPUTS)
    return outputs[0].computed if outputs and len(outputs) == 1 else True


def refuse_computing(tree: exp.Expr) -> None:
    """Checks a bound query: such values may be put out, counted and compared with NULL, on Spark nothing else.

    Raises:
        UnsupportedFeatureError: it computes with one, compares, sorts or groups by it.
    """
    for node in tree.walk():
        if isinstance(node, exp.Column):
            _check_value(node)
        elif isinstance(node, exp.Ordered):
            _check_order(node)
        elif isinstance(node, exp.LT | exp.GT | exp.LTE | exp.GTE | exp.Between):
            _check_has_order(type_of(_unwrapped(node.this)))
        elif isinstance(node, exp.Anonymous) and node.name.lower() in _EXTREMES:
            for argument in node.expressions:
                _check_has_order(type_of(_unwrapped(argument)))
        elif isinstance(node, exp.Subquery | exp.Query):
            if TYPE in node.meta and not isinstance(node.parent, exp.From | exp.Join | exp.Exists):
                _check_value(node)
            if isinstance(node, exp.SetOperation):
                _check_set(node)
            elif isinstance(node, exp.Select):
                _check_select(node)
        elif isinstance(node, exp.Join):
            for output in node.meta.get(JOINED_BY, ()):
                if carries(output.type) and not output.computed:
                    raise _refusal(output.type, output.name)


def _check_value(node: exp.Expr) -> None:
    """Raises where something read is used otherwise than plainly."""
    reached = node
    while reached.parent is not None and (
        isinstance(reached.parent, exp.Paren)
        or (isinstance(reached.parent, exp.Dot | exp.Bracket) and reached.arg_key == "this")
    ):
        reached = reached.parent
    kind = type_of(_unwrapped(reached))
    if carries(kind) and not is_computed(node) and not _is_plain(reached, kind):
        raise _refusal(kind, node.name)


def _is_plain(node: exp.Expr, kind: Type) -> bool:
    """Whether a value is only put out, counted, or asked whether it is NULL."""
    parent = node.parent
    if isinstance(parent, exp.Select):
        return node.arg_key == "expressions"
    if isinstance(parent, exp.Alias | exp.Paren):
        return _is_plain(parent, kind)
    if isinstance(parent, exp.Is):
        return isinstance(parent.expression, exp.Null)
    if isinstance(parent, exp.Anonymous):
        return parent.name.lower() == "count"
    if isinstance(parent, exp.Cast):
        return from_sqlglot(parent.to) == kind and _is_plain(parent, kind)
    case = parent.parent if isinstance(parent, exp.If) and node.arg_key == "true" else parent
    if isinstance(case, exp.Case) and node.arg_key in ("true", "default"):
        others = [_unwrapped(branch) for branch in _branches(case)]
        same = all(isinstance(other, exp.Null) or not is_computed(other) for other in others)
        return same and _is_plain(case, kind)
    return parent is None or isinstance(parent, exp.Subquery | exp.Exists)


def _check_select(node: exp.Select) -> None:
    """DISTINCT, and GROUP BY and ORDER BY of positions, compare what is put out."""
    distinct = node.args.get("distinct")
    items = list(node.expressions) if distinct is not None and not distinct.args.get("on") else []
    for place in (*_positions(node, "group"), *_positions(node, "order")):
        items += node.expressions[place - 1 : place]
    if isinstance(node.parent, exp.In):
        items += node.expressions
    for item in items:
        _check_output(Output(item.alias_or_name, type_of(_unwrapped(item)), is_computed(item)))


def _check_order(node: exp.Ordered) -> None:
    """Raises where rows are sorted by values that Spark has no order of."""
    key, query = node.this, node.parent.parent if node.parent is not None else None
    kind = type_of(_unwrapped(key))
    if isinstance(key, exp.Literal) and isinstance(query, exp.Query):
        outputs = query.meta.get(OUTPUTS) or ()
        place = int(key.name) if key.name.isdigit() else 0
        kind = outputs[place - 1].type if 0 < place <= len(outputs) else None
    _check_has_order(kind)


def _check_has_order(kind: Type) -> None:
    """Raises for types whose values Spark does not order, or orders otherwise: NULL in them is the smallest there."""
    if kind is not None and (kind.is_nested or kind.name == "variant"):
        raise UnsupportedFeatureError(
            f"Sorting or comparing by a {kind.sql()} is not supported on Spark; use parts of it."
        )


def _positions(node: exp.Expr, part: str) -> list[int]:
    """The 1-based places of output columns that GROUP BY or ORDER BY names."""
    clause = node.args.get(part)
    keys = [key.this if isinstance(key, exp.Ordered) else key for key in clause.expressions] if clause else []
    return [int(key.name) for key in keys if isinstance(key, exp.Literal) and key.name.isdigit() and not key.is_string]


def _check_set(node: exp.SetOperation) -> None:
    """All but UNION ALL compare rows; and text does not go under one name with what is computed."""
    sides = [side.meta.get(OUTPUTS) or () for side in (node.this, node.expression)]
    compared = [output for side in sides for output in side]
    if not node.args.get("distinct") and not isinstance(node, exp.Except | exp.Intersect):
        outputs = node.meta.get(OUTPUTS) or ()
        compared = [outputs[place - 1] for place in _positions(node, "order") if place <= len(outputs)]
    for output in compared:
        _check_output(output)
    if not node.args.get("by_name"):
        for left, right in zip(*sides, strict=False):
            if carries(left.type) and left.type == right.type and left.computed != right.computed:
                raise _refusal(left.type, left.name)


def _check_output(output: Output) -> None:
    if carries(output.type) and not output.computed:
        raise _refusal(output.type, output.name)


def _refusal(kind: DataType | None, name: str) -> UnsupportedFeatureError:
    assert kind is not None  # carries() was asked first
    return UnsupportedFeatureError(
        f'Computing with or comparing "{name}" is not supported on Spark, which has no {kind.sql()}; put it out as it is.'
    )


def _branches(case: exp.Case) -> list[exp.Expr]:
    default = case.args.get("default")
    return [*(branch.args["true"] for branch in case.args["ifs"]), *([default] if default is not None else [])]


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Alias):
        node = node.this
    return node
