"""Errors of rows that count where a value is used.

Spark evaluates what workers compute for all rows, before the conditions beside it; and it moves conditions below joins. A
worker gives a value or an error for each row, and the query raises the error of a row that no other condition drops.
DuckDB evaluates parts of an AND in an order that it changes as it runs: an error counts here where it may count there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import ERROR, VALUE
from ducklake_lab.sql.spark.nodes import call, case, is_null, number

#: node.meta key: the call of a worker whose value a node is.
_CALL = "ducklake_deferred"

#: Errors in the subqueries of a call up to which it is written several times.
_NESTED = 4


def used(made: exp.Expr) -> exp.Expr:
    """The value that a worker gives, or its error."""
    if made.find(exp.Query) is None and (made.find(exp.Window) is not None or _raises(made)):
        # what is costly, or holds others of its kind, is written once; Spark takes no subquery there
        one = exp.column(exp.to_identifier("one", quoted=True))
        checked = case(is_null(_part(one, ERROR)), _part(one, VALUE), call("raise_error", _part(one, ERROR)))
        each = exp.Lambda(this=checked, expressions=[one.this.copy()])
        return call("get", call("transform", call("array", made), each), number(0))
    node = case(is_null(_part(made, ERROR)), _part(made, VALUE), call("raise_error", _part(made, ERROR)))
    node.meta[_CALL] = made
    return node


def is_fit(arguments: Sequence[exp.Expr]) -> bool:
    """Whether a worker's call may be written several times, as `used` writes that of subqueries: no join comes of it."""
    queried = [part for part in arguments if part.find(exp.Query) is not None]
    raising = sum(part.name == "raise_error" for one in queried for part in one.find_all(exp.Anonymous))
    return raising < _NESTED and not any(part.find(exp.Exists, exp.In) for part in queried)


def conjunction(parts: Sequence[exp.Expr]) -> exp.Expr:
    """All of some conditions: a row that one of them drops has no error of the others."""
    deferred = [part.meta[_CALL] for part in parts if _CALL in part.meta]
    others = [part for part in parts if _CALL not in part.meta]
    raising = [part for part in others if _raises(part)]
    first = [part for part in others if not _raises(part)]
    checked = [part for part in parts if _CALL in part.meta]
    if len(checked) + len(raising) > 1:
        # those that hold, or fail; then those that fail
        first += [
            exp.Or(this=exp.Not(this=is_null(_part(made, ERROR))), expression=_part(made, VALUE)) for made in deferred
        ]
    return reduce(lambda left, right: exp.And(this=left, expression=right), map(_grouped, [*first, *raising, *checked]))


def _part(made: exp.Expr, name: str) -> exp.Expr:
    return exp.Dot(this=made.copy(), expression=exp.to_identifier(name, quoted=True))


def _raises(node: exp.Expr) -> bool:
    """Whether the value of a worker is used in a condition."""
    return any(part.name == "raise_error" for part in node.find_all(exp.Anonymous))


def _grouped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node
