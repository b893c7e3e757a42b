"""Derives from a condition a model Predicate on the rows of one relation.

It uses comparisons with a constant of a column, a struct field, or an order-preserving expression (see monotonic.py).
Other conjuncts are ignored; any other disjunct drops its whole OR. Conditions under NOT are
ignored, except for forms that DuckDB itself writes with NOT. Equalities with columns of other tables become keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from sqlglot import exp

from ducklake_lab.model.predicates import (
    MIRRORED,
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
from ducklake_lab.model.staged import LOCATION_COLUMNS, VIRTUAL_COLUMNS
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.sql.notes import Relation, notes
from ducklake_lab.sql.parse.constants import NotConstant, literal_value
from ducklake_lab.sql.plan import JoinKey
from ducklake_lab.sql.prune.constants import folded_value
from ducklake_lab.sql.prune.monotonic import NotOrdered, comparison, floored, unit_of

#: Operators of comparisons by their nodes.
OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
assert set(MIRRORED) == set(get_args(Operator))


class _NotPushable(Exception):
    pass


def restrict(relation: Relation, condition: exp.Expr) -> None:
    """Adds to the relation's source the restriction that `condition` implies; it holds for all relevant rows."""
    if relation.source is None or relation.source.kind != "table" or relation.source.is_shared:
        return
    keys = relation.source.keys
    relation.source.keys = (*keys, *(key for key in _keys(relation, condition) if key not in keys))
    predicate = extract(relation, condition)
    if predicate is None:
        return
    known = relation.source.predicate
    relation.source.predicate = predicate if known is None else conjunction([known, predicate])


def restrict_by(relation: Relation, column: str, holders: list[Relation]) -> None:
    """Notes that only those rows of a relation matter whose value of `column` occurs in other relations."""
    own = relation.find(column)
    for other in holders:
        output = other.find(column)
        if own is not None and output is not None and other is not relation:
            equality = exp.EQ(this=relation.column(own), expression=other.column(output))
            restrict(relation, equality)


def _keys(relation: Relation, condition: exp.Expr) -> Iterator[JoinKey]:
    """Yields the equalities with columns of other tables that a condition implies."""
    node = condition.unnest()
    if isinstance(node, exp.And):
        yield from _keys(relation, node.this)
        yield from _keys(relation, node.expression)
    elif isinstance(node, exp.EQ):
        sides = [side for side in (node.this, node.expression) if _owner(side) is not None]
        if len(sides) == 2:
            own, other = sides if _owner(sides[0]) is relation else reversed(sides)
            yield from _key(relation, own, other)
    elif isinstance(node, exp.In) and isinstance(query := node.args.get("query"), exp.Expr):
        select = query.unnest()
        if isinstance(select, exp.Select) and len(select.expressions) == 1:
            yield from _key(relation, node.this, select.expressions[0].unalias())


def _key(relation: Relation, own: exp.Expr, other: exp.Expr) -> Iterator[JoinKey]:
    owner = _owner(other)
    if _owner(own) is not relation or owner is None or owner is relation or owner.source is None:
        return
    try:
        (path, kind), (other_path, other_kind) = _path(relation, own), _path(owner, other)
    except _NotPushable:
        return
    if owner.source.kind == "table" and is_key(kind, other_kind):
        yield JoinKey(path, owner.source.view, other_path)


def is_key(kind: DataType, other: DataType) -> bool:
    """Returns whether equality of columns of two types compares their values as they are."""
    integers = kind.name in INTEGERS and other.name in INTEGERS
    plain = kind.name in ("varchar", "date", "timestamp") or kind.decimal is not None
    return integers or (plain and kind == other)


def _owner(node: exp.Expr) -> Relation | None:
    """Returns the relation of a column or struct field."""
    column = _field(node)[0]
    found = notes(column).relation if isinstance(column, exp.Column) else None
    return found if isinstance(found, Relation) else None


def extract(relation: Relation, condition: exp.Expr) -> Predicate | None:
    """Returns the strongest predicate on `relation` that follows from `condition`; None if none follows."""
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
    except (_NotPushable, NotConstant, NotOrdered):
        return None


def conjunction(terms: list[Predicate | None]) -> Predicate | None:
    """Returns the conjunction of terms; None without terms."""
    flat = [part for term in terms if term is not None for part in (term.terms if isinstance(term, And) else (term,))]
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _leaf(relation: Relation, node: exp.Expr) -> Predicate:
    if node.args.get("negate"):
        # The parser marks NOT LIKE in this way.
        raise _NotPushable
    if type(node) in OPERATORS:
        op = OPERATORS[type(node)]
        if node.this.find(exp.Column) is None:
            return _compared(relation, node.expression, MIRRORED[op], node.this)
        return _compared(relation, node.this, op, node.expression)
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        bounds = (
            exp.GTE(this=node.this, expression=node.args["low"]),
            exp.LTE(this=node.this, expression=node.args["high"]),
        )
        found = conjunction([extract(relation, bound) for bound in bounds])
        if found is None:
            raise _NotPushable
        return found
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        # NULL in the list never makes a row match.
        items = [item for item in node.expressions if not isinstance(item.unnest(), exp.Null)]
        if not items:
            raise _NotPushable
        found_items = [_compared(relation, node.this, "=", item) for item in items]
        if all(isinstance(item, Comparison) and item.op == "=" for item in found_items):
            same = [item for item in found_items if isinstance(item, Comparison)]
            return InList(same[0].column, tuple(item.value for item in same))
        return found_items[0] if len(found_items) == 1 else Or(tuple(found_items))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return NullTest(_path(relation, node.this)[0], True)
    if isinstance(node, exp.Not):
        inner = node.this.unnest()
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return NullTest(_path(relation, inner.this)[0], False)
        if isinstance(inner, exp.Column | exp.Dot | exp.Bracket):
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
    if isinstance(node, exp.Column | exp.Dot | exp.Bracket):
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


def _compared(relation: Relation, subject: exp.Expr, op: Operator, constant: exp.Expr) -> Predicate:
    """Returns a predicate for `subject op constant`; the subject is a column or an order-preserving expression."""
    value = folded_value(constant)
    bare = subject.unnest()
    unit = unit_of(bare)
    if unit is not None:
        path, kind = _path(relation, unit.subject)
        return floored(path, kind, op, value, unit)
    if isinstance(bare, exp.Cast):
        path, kind = _path(relation, bare.this)
        return comparison(path, kind, op, value, notes(bare).type)
    path, kind = _path(relation, bare)
    return comparison(path, kind, op, value)


def _path(relation: Relation, node: exp.Expr) -> tuple[ColumnPath, DataType]:
    """Returns the path and type of a column of `relation`, or of a struct field in one."""
    column, fields = _field(node)
    kind = notes(column).type
    if not isinstance(column, exp.Column) or not isinstance(kind, DataType):
        raise _NotPushable
    if notes(column).relation is not relation or column.name in (*VIRTUAL_COLUMNS, *LOCATION_COLUMNS):
        raise _NotPushable
    for field in fields:
        named = [child for name, child in kind.children if name.casefold() == field.casefold()]
        if kind.name != "struct" or not named:
            raise _NotPushable
        kind = named[0]
    return (column.name, *fields), kind


def _field(node: exp.Expr) -> tuple[exp.Expr, list[str]]:
    """Returns the root of a struct field and its path: for `a.b`, `a['b']` and `struct_extract(a, 'b')`."""
    fields: list[str] = []
    bare = node.unnest()
    while True:
        name: exp.Expr
        if isinstance(bare, exp.Dot):
            bare, name = bare.this, bare.expression
        elif isinstance(bare, exp.Bracket) and len(bare.expressions) == 1:
            bare, name = bare.this, bare.expressions[0]
        elif (
            isinstance(bare, exp.Anonymous) and bare.name.casefold() == "struct_extract" and len(bare.expressions) == 2
        ):
            bare, name = bare.expressions
        else:
            return bare, fields
        if not isinstance(name, exp.Identifier) and not (isinstance(name, exp.Literal) and name.is_string):
            return node, []
        fields.insert(0, name.name)
        bare = bare.unnest()
