"""Groups of a query: keys by position, and grouping sets that Spark takes otherwise than DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark.nodes import number
from ducklake_lab.sql.spark.typing import aggregate
from ducklake_lab.sql.types import to_sqlglot


def one_group(node: exp.Select) -> None:
    """Leaves a single empty grouping set to the aggregates, which make a row of no rows too.

    Raises:
        UnsupportedFeatureError: a query has several empty sets; each has a row even without input rows.
    """
    found = grouped(node.args.get("group") or exp.Group())
    if len(found) != 1 or not isinstance(found[0], exp.GroupingSets):
        return
    sets = found[0].expressions
    if sets.count(exp.Tuple()) > 1:
        raise UnsupportedFeatureError("Several empty sets in GROUPING SETS are not supported on Spark.")
    parts = [part for part in (*node.expressions, node.args.get("having")) if part is not None]
    calls = (call for part in parts for call in part.find_all(exp.Anonymous))
    if sets == [exp.Tuple()] and any(aggregate(one) and one.find_ancestor(exp.Select) is node for one in calls):
        node.set("group", None)


def group_alone(node: exp.Select) -> None:
    """Replaces GROUPING of keys without grouping sets by 0; Spark takes it with sets only."""
    group = node.args.get("group")
    if group is None or any(isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets) for one in grouped(group)):
        return
    keys = [at_position(node, key).unnest() for key in group.expressions]
    for part in (*node.expressions, node.args.get("having"), node.args.get("order")):
        for one in list(part.find_all(exp.Anonymous)) if part is not None else ():
            if (
                one.name.lower() in ("grouping", "grouping_id")
                and one.find_ancestor(exp.Select) is node
                and all(argument.unnest() in keys for argument in one.expressions)
            ):
                one.replace(exp.Cast(this=number(0), to=to_sqlglot(DataType("int64"))))


def has_total(node: exp.Select) -> bool:
    """Returns whether one of its grouping sets is empty: that set has a row even without input rows."""
    found = grouped(node.args.get("group") or exp.Group())
    return bool(found) and all(
        isinstance(one, exp.Rollup | exp.Cube) or (isinstance(one, exp.GroupingSets) and exp.Tuple() in one.expressions)
        for one in found
    )


def grouped(group: exp.Expr) -> list[exp.Expr]:
    """Returns the items of GROUP BY."""
    return [one for part in ("expressions", "rollup", "cube", "grouping_sets") for one in group.args.get(part) or ()]


def keys_of(group: exp.Expr) -> list[exp.Expr]:
    """Returns the expressions in all grouping sets."""
    sets, found = grouped(group), list[exp.Expr]()
    while sets:
        one = sets.pop()
        if isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            sets += one.expressions
        else:
            found.append(one.unnest())
    return found


def keys_by_expression(node: exp.Select, type_of: Callable[[exp.Expr], DataType | None]) -> list[exp.Expr]:
    """Replaces positions in GROUP BY by their columns, and returns the keys: the SELECT list may change then."""
    group = node.args.get("group")
    for key in keys_of(group) if group is not None else ():
        if isinstance(key, exp.Literal) and not key.is_string:
            column = at_position(node, key).unnest()
            if isinstance(column, exp.Literal):  # a number of its own, which would be a position
                column = exp.Cast(this=column, to=to_sqlglot(type_of(column) or DataType("int32")))
            key.replace(column)
    return keys_of(group) if group is not None else []


def at_position(node: exp.Select, key: exp.Expr) -> exp.Expr:
    """Returns a key; a position becomes its column."""
    if isinstance(key, exp.Literal) and not key.is_string:
        shown: exp.Expr = node.expressions[int(key.name) - 1].unalias().copy()
        if isinstance(shown, exp.Subquery):
            shown.set("alias", None)
        return shown
    return key.copy()
