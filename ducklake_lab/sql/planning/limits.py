"""Queries in LIMIT and OFFSET. Spark takes constants only: a query's value is found before Spark's query is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.operations import Query
from ducklake_lab.sql.scope import ancestors
from ducklake_lab.sql.types import to_sqlglot

Texts = Callable[[Query], Sequence[str]]


def note_queries(tree: exp.Expr) -> None:
    """Notes the query for each LIMIT and OFFSET with a query in it, before names are bound."""
    for node in tree.find_all(exp.Limit, exp.Offset, exp.Fetch):
        value = _value(node)
        if value is not None and value.find(exp.Query) is not None:
            notes(node).asked = _query(node, value)


def put_values(tree: exp.Expr, texts: Texts) -> None:
    """Replaces such queries by their values; NULL is no limit.

    Args:
        texts: runs a query with one text column.

    Raises:
        UnsupportedFeatureError: a view or macro has the query.
        SqlError: the value does not fit.
    """
    for node in list(tree.find_all(exp.Limit, exp.Offset, exp.Fetch)):
        value = _value(node)
        if value is None or value.find(exp.Query) is None:
            continue
        asked = notes(node).asked
        if asked is None:
            raise UnsupportedFeatureError(
                "LIMIT or OFFSET over a query, in a view or macro, is not supported on Spark."
            )
        (found,) = texts(Query(asked))
        if found:
            value.replace(exp.Literal.number(found))
        else:
            node.pop()


def _value(node: exp.Expr) -> exp.Expr | None:
    value: exp.Expr | None = node.args.get("count" if isinstance(node, exp.Fetch) else "expression")
    return value


def _query(node: exp.Expr, value: exp.Expr) -> exp.Query:
    """Returns the query for the text of a value: "" for NULL. It has the CTEs that the value sees."""
    options = node.args.get("limit_options")
    # DuckDB rounds halves to the even number, as from DOUBLE
    number: exp.Expr = exp.Cast(this=exp.Paren(this=value.copy()), to=to_sqlglot(DataType("float64")))
    if options is None or not options.args.get("percent"):
        number = exp.Cast(this=number, to=to_sqlglot(DataType("uint64")))
    text = exp.Cast(this=number, to=to_sqlglot(DataType("varchar")))
    query = exp.select(exp.Anonymous(this="coalesce", expressions=[text, exp.Literal.string("")]))
    path = [node, *ancestors(node)]
    for above in path:
        clause = above.args.get("with_")
        ctes: list[exp.Expr] = clause.expressions if clause is not None else []
        # a CTE sees those before it
        end = next((place for place, cte in enumerate(ctes) if any(cte is one for one in path)), len(ctes))
        if clause is not None and end:
            query = exp.select(exp.Subquery(this=query))
            seen = [cte.copy() for cte in ctes[:end]]
            query.set("with_", exp.With(expressions=seen, recursive=clause.args.get("recursive")))
    return query
