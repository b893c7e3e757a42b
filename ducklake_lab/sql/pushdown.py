"""What a condition implies for the rows of one relation, as a model Predicate.

Only comparisons of a bare column (or struct field) with a constant are taken; a conjunct that is anything
else is left out, a disjunct that is anything else drops its whole OR. Nothing under NOT is looked at, but
for the forms DuckDB itself writes with it.
"""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import get_args

from sqlglot import exp

from ducklake_lab.model.predicates import (
    And,
    ColumnPath,
    Comparison,
    InList,
    NullTest,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.sql.constants import NotConstant, literal_value
from ducklake_lab.sql.scope import RELATION, TYPE, VIRTUAL_COLUMNS, Relation

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
assert set(_MIRRORED) == set(get_args(Operator))


class _NotPushable(Exception):
    pass


def restrict(relation: Relation, condition: exp.Expr) -> None:
    """Adds to the relation's source what `condition`, true for every row that matters, implies for it."""
    if relation.draft is None or relation.draft.kind != "table":
        return
    predicate = extract(relation, condition)
    if predicate is None:
        return
    known = relation.draft.predicate
    relation.draft.predicate = predicate if known is None else conjunction([known, predicate])


def extract(relation: Relation, condition: exp.Expr) -> Predicate | None:
    """The strongest predicate on `relation` found that `condition` implies; None if there is none."""
    node = condition.unnest()
    if isinstance(node, exp.And):
        return conjunction([extract(relation, node.this), extract(relation, node.expression)])
    if isinstance(node, exp.Or):
        sides = [extract(relation, node.this), extract(relation, node.expression)]
        terms = [side for side in sides if side is not None]
        if len(terms) < 2:
            return None
        flat = [term for side in terms for term in (side.terms if isinstance(side, Or) else (side,))]
        return Or(tuple(flat))
    try:
        return _leaf(relation, node)
    except (_NotPushable, NotConstant):
        return None


def conjunction(terms: list[Predicate | None]) -> Predicate | None:
    """All of the terms; None where there are none."""
    flat = [part for term in terms if term is not None for part in (term.terms if isinstance(term, And) else (term,))]
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _leaf(relation: Relation, node: exp.Expr) -> Predicate:
    if node.args.get("negate"):
        # The parser marks NOT LIKE so.
        raise _NotPushable
    if type(node) in _OPERATORS:
        op = _OPERATORS[type(node)]
        left, right = node.this, node.expression
        if not _is_path(left):
            left, right, op = right, left, _MIRRORED[op]
        path, kind = _path(relation, left)
        return Comparison(path, op, _value(right, kind))
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        path, kind = _path(relation, node.this)
        low, high = _value(node.args["low"], kind), _value(node.args["high"], kind)
        return And((Comparison(path, ">=", low), Comparison(path, "<=", high)))
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        path, kind = _path(relation, node.this)
        # NULL in the list never makes a row match.
        values = [_value(item, kind) for item in node.expressions if not isinstance(item.unnest(), exp.Null)]
        if not values:
            raise _NotPushable
        return InList(path, tuple(values))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return NullTest(_path(relation, node.this)[0], True)
    if isinstance(node, exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return NullTest(_path(relation, inner.this)[0], False)
        if isinstance(inner, exp.Column | exp.Dot):
            return _boolean(relation, inner, False)
    if isinstance(node, exp.Like):
        path, kind = _path(relation, node.this)
        pattern = literal_value(node.expression)
        if kind.name == "varchar" and isinstance(pattern, str):
            return _like(path, pattern)
    if (
        isinstance(node, exp.Anonymous)
        and node.name.lower() in ("starts_with", "prefix")
        and len(node.expressions) == 2
    ):
        path, kind = _path(relation, node.expressions[0])
        prefix = literal_value(node.expressions[1])
        if kind.name == "varchar" and isinstance(prefix, str) and prefix:
            return StartsWith(path, prefix)
    if isinstance(node, exp.Column | exp.Dot):
        return _boolean(relation, node, True)
    raise _NotPushable


def _boolean(relation: Relation, node: exp.Expr, value: bool) -> Predicate:
    path, kind = _path(relation, node)
    if kind.name != "boolean":
        raise _NotPushable
    return Comparison(path, "=", value)


def _like(path: ColumnPath, pattern: str) -> Predicate:
    stops = [index for index, letter in enumerate(pattern) if letter in "%_"]
    if not stops:
        return Comparison(path, "=", pattern)
    prefix = pattern[: stops[0]]
    if not prefix or "\\" in prefix:
        raise _NotPushable
    return StartsWith(path, prefix)


def _is_path(node: exp.Expr) -> bool:
    bare = node.unnest()
    while isinstance(bare, exp.Dot):
        bare = bare.this.unnest()
    return isinstance(bare, exp.Column)


def _path(relation: Relation, node: exp.Expr) -> tuple[ColumnPath, DataType]:
    """The path of a column of `relation` and its type."""
    bare = node.unnest()
    kind = bare.meta.get(TYPE)
    fields: list[str] = []
    while isinstance(bare, exp.Dot):
        fields.insert(0, bare.expression.name)
        bare = bare.this.unnest()
    if not isinstance(bare, exp.Column) or not isinstance(kind, DataType):
        raise _NotPushable
    if bare.meta.get(RELATION) is not relation or bare.name in VIRTUAL_COLUMNS:
        raise _NotPushable
    return (bare.name, *fields), kind


def _value(node: exp.Expr, kind: DataType) -> object:
    """A constant in the Python type that values of the column have; refuses where comparing would convert."""
    value = literal_value(node)
    try:
        return _fitting(value, kind)
    except (ValueError, ArithmeticError):
        raise _NotPushable from None


def _fitting(value: object, kind: DataType) -> object:
    name = kind.name
    if value is None or (isinstance(value, bool) and name != "boolean"):
        raise _NotPushable
    if name == "boolean" and isinstance(value, bool):
        return value
    if name in INTEGERS and isinstance(value, int | Decimal):
        return value
    if kind.decimal is not None and isinstance(value, int | Decimal):
        return value
    if name == "float64" and isinstance(value, int | float | Decimal):
        return float(value)
    if name == "varchar" and isinstance(value, str):
        return value
    if name == "blob" and isinstance(value, bytes):
        return value
    if name == "time" and isinstance(value, time | str):
        return value if isinstance(value, time) else time.fromisoformat(value)
    if name == "date":
        if isinstance(value, str):
            return date.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
    if name in ("timestamp", "timestamp_s", "timestamp_ms"):
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and moment.tzinfo is None:
            return moment
        if isinstance(moment, date) and not isinstance(moment, datetime):
            return datetime(moment.year, moment.month, moment.day)
    if name == "timestamptz" and isinstance(value, datetime) and value.tzinfo is not None:
        return value
    raise _NotPushable
