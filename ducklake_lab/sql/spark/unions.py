"""Set operations in Spark SQL: columns by name, and of one type on both sides."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.spark.nodes import typed_column
from ducklake_lab.sql.types import to_sqlglot


def bring_together(node: exp.SetOperation) -> None:
    """Gives both sides of a set operation its columns, in their order and of their types."""
    outputs = notes(node).outputs
    for side in ("this", "expression"):
        has = notes(node.args[side]).outputs
        if outputs is None or has is None:
            raise UnsupportedFeatureError("A union of columns that are not known is not supported on Spark.")
        by_name = bool(node.args.get("by_name"))
        if by_name or any(one.type != other.type for one, other in zip(has, outputs, strict=True)):
            node.set(side, _as(node.args[side], has, outputs, by_name))
    node.set("by_name", False)


def _as(side: exp.Expr, has: tuple[Output, ...], wanted: tuple[Output, ...], by_name: bool) -> exp.Select:
    """A query with other columns, cast to their types."""
    known = {output.name.casefold(): output for output in has}
    names = [f"_ducklake_c{i}" for i in range(len(has))]
    items: list[exp.Expr] = []
    for place, output in enumerate(wanted):
        own = known.get(output.name.casefold()) if by_name else has[place]
        value: exp.Expr = exp.Null()
        if own is not None:
            value = typed_column(names[has.index(own)], own.type)
        if (own is None or own.type != output.type) and output.type not in (None, NULL):
            value = exp.Cast(this=value, to=to_sqlglot(output.type))
        items.append(exp.alias_(value, output.name, quoted=True))
    query = side.this if isinstance(side, exp.Subquery) and not side.args.get("order") else side
    alias = exp.TableAlias(
        this=exp.to_identifier("_ducklake_side", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    return exp.select(*items).from_(exp.Subquery(this=query.copy(), alias=alias))
