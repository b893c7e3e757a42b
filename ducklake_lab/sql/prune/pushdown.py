"""What a condition implies for the rows of one relation, as a model Predicate.

Comparisons with a constant are taken, of a column, of a struct field, or of what keeps their order (sql/prune/monotonic.py);
a conjunct that is anything else is left out, a disjunct that is anything else drops its whole OR. Nothing under NOT is
looked at, except for the forms DuckDB itself writes with it. An equality with another table's column is noted as a key.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from ducklake_lab.model.staged import LOCATION_COLUMNS, VIRTUAL_COLUMNS
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.sql.parse.constants import NotConstant, literal_value
from ducklake_lab.sql.plan import JoinKey
from ducklake_lab.sql.prune.constants import folded_value
from ducklake_lab.sql.prune.monotonic import NotOrdered, comparison, floored, unit_of
from ducklake_lab.sql.scope import RELATION, TYPE, Relation

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
    if relation.source is None or relation.source.kind != "table":
        return
    keys = relation.source.keys
    relation.source.keys = (*keys, *(key for key in _keys(relation, condition) if key not in keys))
    predicate = extract(relation, condition)
    if predicate is None:
        return
    known = relation.source.predicate
    relation.source.predicate = predicate if known is None else conjunction([known, predicate])


def restrict_by(relation: Relation, column: str, holders: list[Relation]) -> None:
    """Notes that of a relation only rows matter whose value of `column` other relations have too."""
    own = relation.find(column)
    for other in holders:
        output = other.find(column)
        if own is not None and output is not None and other is not relation:
            equality = exp.EQ(this=relation.column(own), expression=other.column(output))
            restrict(relation, equality)


def _keys(relation: Relation, condition: exp.Expr) -> Iterator[JoinKey]:
    """The equalities with columns of other tables that a condition implies."""
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
    integers = kind.name in INTEGERS and other_kind.name in INTEGERS
    plain = kind.name in ("varchar", "date", "timestamp") or kind.decimal is not None
    if owner.source.kind == "table" and (integers or (plain and kind == other_kind)):
        yield JoinKey(path, owner.source.view, other_path)


def _owner(node: exp.Expr) -> Relation | None:
    """The relation whose column or struct field a node is."""
    column = _field(node)[0]
    found = column.meta.get(RELATION) if isinstance(column, exp.Column) else None
    return found if isinstance(found, Relation) else None


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
    except (_NotPushable, NotConstant, NotOrdered):
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
        if node.this.find(exp.Column) is None:
            return _compared(relation, node.expression, _MIRRORED[op], node.this)
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
    """`subject op constant`, where the subject is a column, or something of one that keeps its order."""
    value = folded_value(constant)
    bare = subject.unnest()
    unit = unit_of(bare)
    if unit is not None:
        path, kind = _path(relation, unit.subject)
        return floored(path, kind, op, value, unit)
    if isinstance(bare, exp.Cast):
        path, kind = _path(relation, bare.this)
        return comparison(path, kind, op, value, bare.meta.get(TYPE))
    path, kind = _path(relation, bare)
    return comparison(path, kind, op, value)


def _path(relation: Relation, node: exp.Expr) -> tuple[ColumnPath, DataType]:
    """The path of a column of `relation`, or of a struct field in one, and its type."""
    column, fields = _field(node)
    kind = column.meta.get(TYPE)
    if not isinstance(column, exp.Column) or not isinstance(kind, DataType):
        raise _NotPushable
    if column.meta.get(RELATION) is not relation or column.name in (*VIRTUAL_COLUMNS, *LOCATION_COLUMNS):
        raise _NotPushable
    for field in fields:
        named = [child for name, child in kind.children if name.casefold() == field.casefold()]
        if kind.name != "struct" or not named:
            raise _NotPushable
        kind = named[0]
    return (column.name, *fields), kind


def _field(node: exp.Expr) -> tuple[exp.Expr, list[str]]:
    """What a field is taken of, and the names on the way: of `a.b`, `a['b']` and `struct_extract(a, 'b')`."""
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
