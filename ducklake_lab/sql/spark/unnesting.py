"""Rewrites `unnest` in a SELECT list as rows of lists in FROM; Spark takes any number there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.spark.grouping_sets import keys_by_expression
from ducklake_lab.sql.spark.nodes import as_column, number, typed_column
from ducklake_lab.sql.spark.typing import is_computed_before
from ducklake_lab.sql.types import to_sqlglot

_CELL = "_ducklake_cell"


def calls_in(node: exp.Select) -> list[exp.Anonymous]:
    """Returns the calls of `unnest` in the SELECT list."""
    found = (call for item in node.expressions for call in item.find_all(exp.Anonymous, bfs=False))
    return [call for call in found if call.name.lower() == "unnest"]


def check_clauses(node: exp.Select) -> None:
    """Checks that `unnest` stands in the SELECT list alone, or in FROM.

    Raises:
        UnsupportedFeatureError: another clause calls it, which DuckDB does not support either, besides ORDER BY.
    """
    for part in ("where", "group", "having", "qualify"):
        clause = node.args.get(part)
        for call in clause.find_all(exp.Anonymous) if clause is not None else ():
            if call.name.lower() == "unnest" and call.find_ancestor(exp.Select) is node:
                raise UnsupportedFeatureError(f"unnest in {part.upper()} is not supported; use it in SELECT or FROM.")


def is_apart(node: exp.Select, calls: Sequence[exp.Anonymous]) -> bool:
    """Returns whether unnest needs a query of its own: Spark takes one, outside of expressions, before no other clause."""
    clauses = any(node.args.get(part) for part in ("group", "having", "qualify", "distinct"))
    return len(calls) > 1 or clauses or not isinstance(calls[0].parent, exp.Alias) or len(calls[0].expressions) != 1


def unnested(
    node: exp.Select, calls: Sequence[exp.Anonymous], type_of: Callable[[exp.Expr], DataType | None]
) -> exp.Select:
    """Returns a query that unnests lists of the query in its FROM; shorter lists end in NULLs.

    Raises:
        UnsupportedFeatureError: a call has further arguments, unnests no list, or is in an aggregate or a window.
    """
    kinds = [type_of(call.expressions[0]) for call in calls if len(call.expressions) == 1]
    lists = [kind for kind in kinds if kind is not None and kind.name == "list"]
    distinct = node.args.get("distinct")
    if len(lists) < len(calls) or any(call.find_ancestor(exp.Select) is not node for call in calls):
        raise UnsupportedFeatureError("unnest of other things than lists is not supported on Spark; use it in FROM.")
    fields = tuple((f"v{place}", kind.children[0][1]) for place, kind in enumerate(lists))
    row = DataType("struct", fields) if len(fields) > 1 else fields[0][1]
    keys = keys_by_expression(node, type_of)
    inner: list[exp.Expr] = []
    parts: list[exp.Expr] = []

    def passed(value: exp.Expr) -> exp.Column:
        inner.append(as_column(value.copy(), f"_ducklake_p{len(inner)}"))
        return typed_column(inner[-1].alias, type_of(value))

    def of_row(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Anonymous) and part.name.lower() == "unnest":
            cell = typed_column(_CELL, row)
            name = exp.to_identifier(fields[len(parts)][0], quoted=True)
            parts.append(passed(part.expressions[0]))
            return exp.Dot(this=cell, expression=name) if len(fields) > 1 else cell
        return passed(part) if is_computed_before(part) or part in keys else part

    outer = exp.Select(expressions=[as_column(i.unalias().copy().transform(of_row), i.alias) for i in node.expressions])
    if len(parts) < len(calls):
        raise UnsupportedFeatureError("unnest in an aggregate or a window is not supported on Spark; use it in FROM.")
    notes(outer).outputs = notes(node).outputs
    order = node.args.get("order")
    order = order.copy() if order is not None else None
    for item in order.expressions if order is not None else ():
        key = item.this
        places = [place for place, shown in enumerate(node.expressions, 1) if shown.unalias() == key]
        if places:
            item.set("this", number(places[0]))
        elif not isinstance(key, exp.Literal):
            if distinct is not None or any(part.name.lower() == "unnest" for part in key.find_all(exp.Anonymous)):
                raise UnsupportedFeatureError("ORDER BY of an expression over unnest(…) is not supported on Spark.")
            item.set("this", passed(key))
    core = node.copy()
    for part in ("order", "limit", "offset", "distinct", "with_"):
        core.set(part, None)
        outer.set(part, node.args[part].copy() if node.args.get(part) else None)
    core.set("expressions", inner)
    notes(core).outputs = tuple(Output(item.alias, type_of(item)) for item in inner)
    rows = parts[0]
    if len(parts) > 1:
        kind = DataType("list", (("element", row),))
        rows = exp.Cast(this=exp.Anonymous(this="list_zip", expressions=parts), to=to_sqlglot(kind))
    cells = exp.TableAlias(
        this=exp.to_identifier("_ducklake_cells", quoted=True), columns=[exp.to_identifier(_CELL, quoted=True)]
    )
    alias = exp.TableAlias(this=exp.to_identifier("_ducklake_q", quoted=True))
    outer = outer.from_(exp.Subquery(this=core, alias=alias), copy=False)
    outer.append("joins", exp.Join(this=exp.Unnest(expressions=[rows], alias=cells)))
    outer.set("order", order)
    return outer
