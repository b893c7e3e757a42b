"""Aliases of the SELECT list in other expressions: each use is replaced by a copy of its expression."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import is_aggregate, stabilities
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.scope import bind_error


def alias_value(column: exp.Column, value: exp.Expr) -> exp.Expr:
    """Returns the expression of an alias, to replace the alias.

    Raises:
        BindError: a second evaluation could give another value than the output column.
    """
    if _differs_by_evaluation(value):
        raise bind_error(
            f'"{column.name}" is the name of an expression that gives another value each time',
            column.this,
            " Compute it in a subquery, and use it around that.",
        )
    copied = value.copy()
    replacement: exp.Expr = copied if isinstance(copied, exp.Column | exp.Literal) else exp.Paren(this=copied)
    notes(replacement).set_type(notes(value).type)
    return replacement


def _differs_by_evaluation(node: exp.Expr) -> bool:
    """Returns whether an expression calls a volatile function outside of aggregates, which are computed once."""
    if isinstance(node, exp.Anonymous):
        if is_aggregate(node.name):
            return False
        if stabilities().get(node.name.lower()) == "VOLATILE":
            return True
    return any(_differs_by_evaluation(child) for child in node.iter_expressions())
