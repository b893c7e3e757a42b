"""Plans queries: binds names, and writes the query as Spark SQL and DuckDB SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.bind.expansion import normalised
from ducklake_lab.sql.bind.pivots import PIVOT_LIMIT, stored, written_out
from ducklake_lab.sql.bind.printing import duckdb_sql
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Output, Outputs, notes
from ducklake_lab.sql.operations import Query, Written
from ducklake_lab.sql.parse.tokens import split
from ducklake_lab.sql.plan import QueryPlan, Resolver, Source, SparkQuery
from ducklake_lab.sql.planning.limits import note_queries, put_values
from ducklake_lab.sql.planning.metadata_aggregates import digest_of
from ducklake_lab.sql.planning.name_rewriting import with_views


def plan_query(query: Query, resolver: Resolver, lake_schema: tuple[str, str] | None = None) -> QueryPlan:
    """Plans a query.

    Args:
        lake_schema: a lake and schema in which names are looked up first, as in a view.

    Raises:
        BindError: a name does not exist or is ambiguous.
        UnsupportedFeatureError: a name cannot be resolved here; `plan_in_process` leaves the query to DuckDB.
    """
    tree = normalised(query.tree)
    note_queries(tree)
    binder = QueryBinder(resolver, lake_schema, query.written)
    outputs = binder.query(tree, None, {})
    text = binder.frame.text()
    if query.distinct_names and outputs is not None:
        renamed = _rename(tree, outputs)
        if text is not None and renamed != outputs:
            names = ", ".join(quote_identifier(output.name) for output in renamed)
            text = f"SELECT * FROM ({text}) AS created({names})"
        outputs = renamed
    return finish(tree, outputs, binder, text=text)


def as_text(query: Query) -> str:
    """Returns the DuckDB SQL of a query with names as written."""
    if query.written is not None:
        return query.written.whole()
    return query.tree.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)


def without_pivots(query: Query) -> Query:
    """A query that a view is to hold, as it is read from the view.

    Raises:
        UnsupportedFeatureError: it holds a PIVOT that is not written out.
    """
    tree = stored(query.tree)
    assert isinstance(tree, exp.Query)
    return replace(query, tree=tree)


def plan_in_process(
    text: str,
    resolver: Resolver,
    refusal: DuckLakeError,
    query: Query | None = None,
    lake_schema: tuple[str, str] | None = None,
) -> QueryPlan:
    """Plans a statement for DuckDB in process: replaces names of lakes by views, keeps the rest as written.

    Args:
        refusal: the reason why it is not bound here; raised if it must run on Spark.
        query: the statement, if Spark may run a rewritten form.
        lake_schema: a lake and schema in which names are looked up first, as in a view.
    """
    tokens = split(text)[0]
    binder = QueryBinder(resolver, lake_schema, Written(text, tokens))
    names: dict[str, tuple[str, bool]] = {}
    written = with_views(text, tokens, binder, quote='"', written=names)
    sources = tuple(binder.sources)

    def on_spark() -> SparkQuery:
        tree = _without_pivots(query, resolver) if query is not None else None
        if tree is None:
            raise refusal
        return _in_other_words(tree, resolver, sources)

    return QueryPlan(
        sources, written, on_spark, bound=False, written=names, macros=binder.macros, definitions=binder.definitions
    )


def _without_pivots(query: Query, resolver: Resolver) -> exp.Query | None:
    limit = dict(resolver.settings()).get("pivot_limit")
    return written_out(
        query.tree, lambda asked: resolver.texts(Query(asked)), int(limit) if limit is not None else PIVOT_LIMIT
    )


def _in_other_words(tree: exp.Query, resolver: Resolver, sources: Sequence[Source]) -> SparkQuery:
    """Plans a rewritten query for Spark over the sources of the original one."""
    plan = plan_query(Query(tree), resolver)
    translated = plan.for_spark()
    sql, duckdb_sql = translated.sql, plan.duckdb_sql
    for source in plan.sources:
        same = next((one for one in sources if _is_alike(one, source)), None)
        if same is None:
            raise UnsupportedFeatureError(f"{source.name} in such a query is not supported on Spark.")
        sql = sql.replace(f"`{source.view}`", f"`{same.view}`")
        duckdb_sql = duckdb_sql.replace(f'"{source.view}"', f'"{same.view}"')
    return replace(translated, sql=sql, duckdb_sql=duckdb_sql)


def _is_alike(one: Source, other: Source) -> bool:
    """Returns whether two sources have equal rows, and the first has all columns of the other."""
    same = (one.kind, one.name, one.at, one.args, one.kwargs, one.query) == (
        other.kind,
        other.name,
        other.at,
        other.args,
        other.kwargs,
        other.query,
    )
    return same and one.virtual >= other.virtual and one.located >= other.located


def finish(
    tree: exp.Expr,
    outputs: Outputs,
    binder: QueryBinder,
    types: Sequence[DataType] | None = None,
    text: str | None = None,
) -> QueryPlan:
    """Returns the plan of a bound query.

    Args:
        types: its column types, if each column is exactly of its type.
        text: the query for DuckDB; None if the tree is printed.
    """
    sources = tuple(binder.sources)
    columns = tuple(output.name for output in outputs) if outputs is not None else None

    def on_spark() -> SparkQuery:
        from ducklake_lab.sql.spark.translate import spark_sql  # large, and not needed in process

        put_values(tree, binder.resolver.texts)
        return spark_sql(_with_local_views(tree), binder.resolver.settings())

    return QueryPlan(
        sources,
        duckdb_sql(tree) if text is None else text,
        on_spark,
        columns,
        macros=binder.macros if text is not None else {},
        digest=digest_of(tree, binder.sources),
        types=tuple(kind.sql() for kind in types) if types is not None else None,
        definitions=binder.definitions,
        is_as_written=text is not None,
    )


def _with_local_views(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with views for tables that DuckDB resolves itself."""
    for node in list(tree.find_all(exp.Table)):
        view = notes(node).local_view
        if view is not None:
            table = exp.Table(this=exp.to_identifier(view, quoted=True), alias=node.args.get("alias"))
            table.set("joins", node.args.get("joins"))
            node.replace(table)
    return tree


def _rename(tree: exp.Expr, outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Adds `_1`, `_2`, … to repeated output names, as in a table created from the query."""
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
