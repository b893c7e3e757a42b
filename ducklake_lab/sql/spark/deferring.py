"""Defers errors of rows until their value is used.

Spark evaluates workers' functions for all rows, before neighbouring conditions; and it moves conditions below joins. A
worker returns a value or an error for each row. The query raises an error only for rows that pass all other conditions.
DuckDB reorders the parts of an AND at run time: an error counts here if it may count there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import ERROR, VALUE
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.spark.nodes import call, case, is_null, number

_BOOLEAN = exp.DataType.build("BOOLEAN")

#: Most deferred errors in a call's subqueries for which the call is repeated.
_NESTED = 4


def used(made: exp.Expr) -> exp.Expr:
    """Returns the value of a worker's call, or raises its error."""
    if made.find(exp.Query) is None and (made.find(exp.Window) is not None or _raises(made)):
        # expensive or nested calls are written once; Spark allows no subquery there
        one = exp.column(exp.to_identifier("one", quoted=True))
        checked = case(is_null(_part(one, ERROR)), _part(one, VALUE), call("raise_error", _part(one, ERROR)))
        each = exp.Lambda(this=checked, expressions=[one.this.copy()])
        return call("get", call("transform", call("array", made), each), number(0))
    node = case(is_null(_part(made, ERROR)), _part(made, VALUE), call("raise_error", _part(made, ERROR)))
    notes(node).worker_call = made
    return node


def raised(value: exp.Expr) -> exp.Expr | None:
    """Returns a condition that raises the error of a value that `used` made, and is true else; None for others."""
    made = notes(value).worker_call
    if made is None:
        return None
    error = call("raise_error", _part(made, ERROR))
    return case(exp.Not(this=is_null(_part(made, ERROR))), exp.Cast(this=error, to=_BOOLEAN.copy()), exp.true())


def is_fit(arguments: Sequence[exp.Expr]) -> bool:
    """Returns whether a worker's call may be repeated as `used` does for subqueries, without an additional join."""
    queried = [part for part in arguments if part.find(exp.Query) is not None]
    raising = sum(part.name == "raise_error" for one in queried for part in one.find_all(exp.Anonymous))
    return raising < _NESTED and not any(part.find(exp.Exists, exp.In) for part in queried)


def conjunction(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Returns the conjunction of conditions; a row dropped by one condition raises no error of the others."""
    deferred = [call for part in parts if (call := notes(part).worker_call) is not None]
    others = [part for part in parts if notes(part).worker_call is None]
    raising = [part for part in others if _raises(part)]
    first = [part for part in others if not _raises(part)]
    checked = [part for part in parts if notes(part).worker_call is not None]
    if len(checked) + len(raising) > 1:
        # conditions that are false or have an error, then conditions that raise it
        first += [
            exp.Or(this=exp.Not(this=is_null(_part(made, ERROR))), expression=_part(made, VALUE)) for made in deferred
        ]
    return reduce(lambda left, right: exp.And(this=left, expression=right), map(_grouped, [*first, *raising, *checked]))


def _part(made: exp.Expr, name: str) -> exp.Expr:
    return exp.Dot(this=made.copy(), expression=exp.to_identifier(name, quoted=True))


def _raises(node: exp.Expr) -> bool:
    """Returns whether a condition uses the value of a worker."""
    return any(part.name == "raise_error" for part in node.find_all(exp.Anonymous))


def _grouped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node
