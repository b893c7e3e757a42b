"""Plans of queries: names bound, then written as Spark SQL and as DuckDB SQL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.binder import Outputs, QueryBinder
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.operations import Query
from ducklake_lab.sql.plan import QueryPlan, Resolver
from ducklake_lab.sql.translate import spark_sql


def plan_query(query: Query, resolver: Resolver) -> QueryPlan:
    """The plan of a query.

    Raises:
        BindError: it names what does not exist, or what is ambiguous.
        UnsupportedFeatureError: it reads a lake table and cannot be computed on Spark.
    """
    tree = normalised(query.tree)
    binder = QueryBinder(resolver)
    outputs = binder.query(tree, None, {})
    if query.distinct_names and outputs is not None:
        outputs = _rename(tree, outputs)
    return finish(tree, outputs, binder)


def normalised(tree: exp.Expr) -> exp.Expr:
    """A copy of a parsed query in which every VALUES that is a query of its own is a SELECT from it."""
    copy = tree.copy()
    for values in list(copy.find_all(exp.Values)):
        if not isinstance(values.parent, exp.From | exp.Join):
            select = exp.select(exp.Star()).from_(values.copy())
            alias = values.args.get("alias")
            if isinstance(values.parent, exp.Subquery) or alias is None:
                values.replace(select)
    return copy


def finish(tree: exp.Expr, outputs: Outputs, binder: QueryBinder) -> QueryPlan:
    """The plan of a bound query."""
    sources = tuple(draft.finish() for draft in binder.drafts)
    duckdb_sql = tree.sql(dialect=DuckLakeSql, identify=True, normalize_functions=False, comments=False)
    try:
        spark = spark_sql(tree.copy())
    except UnsupportedFeatureError:
        # Without a lake table DuckDB computes it, whatever Spark has no words for.
        if any(source.kind == "table" for source in sources):
            raise
        spark = ""
    columns = tuple(output.name for output in outputs) if outputs is not None else None
    return QueryPlan(sources, spark, duckdb_sql, columns)


def _rename(tree: exp.Expr, outputs: Outputs) -> Outputs:
    """Gives repeated output names the endings `_1`, `_2`, … that a table made from the query has."""
    assert outputs is not None
    taken: set[str] = set()
    result = []
    for output in outputs:
        name, number = output.name, 0
        while name.casefold() in taken:
            number += 1
            name = f"{output.name}_{number}"
        taken.add(name.casefold())
        result.append(replace(output, name=name))
    select: exp.Expr = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if isinstance(select, exp.Select) and len(select.expressions) == len(result):
        for item, output in zip(select.expressions, result, strict=True):
            if isinstance(item, exp.Alias):
                item.set("alias", exp.to_identifier(output.name, quoted=True))
    return tuple(result)
