"""Handles subqueries that Spark and DuckDB would answer differently.

Spark turns `x IN (SELECT …)` into a join, which returns false where DuckDB returns NULL. In a WHERE, for
example, both drop the row. Elsewhere the query tests for NULL explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.spark.comparing import check_alike
from ducklake_lab.sql.spark.nodes import call, is_null, number, text
from ducklake_lab.sql.spark.stability import is_volatile
from ducklake_lab.sql.spark.translating import Translating
from ducklake_lab.sql.spark.typing import from_items, quantified


def check_subqueries(tree: exp.Expr) -> None:
    """Checks the subqueries of a query, and marks each IN that must return NULL.

    Raises:
        UnsupportedFeatureError: Spark would answer one differently from DuckDB.
    """
    for compared in list(tree.find_all(exp.EQ, exp.NEQ)):
        if (queried := quantified(compared)) is not None:
            _as_in(compared, queried)
    for node in tree.find_all(exp.In, exp.Any, exp.All):
        if isinstance(node, exp.In):
            if node.args.get("query") is not None:
                notes(node).asks_for_null = _asks_for_null(node)
        elif isinstance(node.this.unnest(), exp.Query) and quantified(node.parent) is not node:
            raise UnsupportedFeatureError(f"{type(node).__name__.upper()} over a query is not supported on Spark here.")
    for array in tree.find_all(exp.Anonymous):
        if array.name.lower() == "array" and any(isinstance(part, exp.Query) for part in array.expressions):
            raise UnsupportedFeatureError("ARRAY over a query is not supported on Spark; use list() in the query.")
    for select in tree.find_all(exp.Select):
        _check_correlation(select)


def _as_in(node: exp.Binary, queried: exp.Expr) -> None:
    """Rewrites `= ANY` as IN, and `<> ALL` as NOT IN."""
    if isinstance(node, exp.EQ) != isinstance(queried, exp.Any):
        return
    found: exp.Expr = exp.In(this=node.this.copy(), query=_subquery(queried))
    node.replace(found if isinstance(node, exp.EQ) else exp.Paren(this=exp.Not(this=found)))


def _subquery(queried: exp.Expr) -> exp.Expr:
    query = queried.this.unnest()
    return query.copy() if isinstance(query, exp.Subquery) else exp.Subquery(this=query.copy())


def among_all(translation: Translating, node: exp.Binary) -> exp.Expr:
    """Translates `x > ANY (SELECT …)` and `x > ALL (SELECT …)` with the smallest or largest value."""
    queried = node.expression
    query = _subquery(queried)
    outputs: Sequence[Output] = notes(queried.this.unnest()).outputs or ()
    if len(outputs) != 1 or is_volatile(node):
        raise UnsupportedFeatureError(f"{type(queried).__name__.upper()} over this query is not supported on Spark.")
    check_alike(translation, [translation.type_of(node.this), outputs[0].type])
    member = exp.column(exp.to_identifier("member", quoted=True))
    rows = translation.translate(query)
    alias = exp.TableAlias(this=exp.to_identifier("members", quoted=True), columns=[member.this.copy()])
    counted = (
        *(text("n"), call("count", exp.Star()), text("known"), call("count", member.copy())),
        *(text("least"), call("min", member.copy()), text("most"), call("max", member.copy())),
    )
    digest = exp.Subquery(
        this=exp.select(call("named_struct", *counted)).from_(exp.Subquery(this=rows.this, alias=alias))
    )

    def of(name: str) -> exp.Expr:
        return exp.Dot(this=digest.copy(), expression=exp.to_identifier(name))

    def value() -> exp.Expr:
        return exp.Paren(this=translation.scalar(node.this.copy()))

    every = isinstance(queried, exp.All)
    ends = (
        ("least", "most")
        if isinstance(node, exp.EQ | exp.NEQ)
        else ("least",)
        if _finds_least(node) != every
        else ("most",)
    )
    parts = [type(node)(this=value(), expression=of(end)) for end in ends]
    holds: exp.Expr = exp.Paren(this=exp.and_(*parts) if every else exp.or_(*parts))
    decided = exp.Not(this=holds) if every else holds
    unknown = exp.Or(this=is_null(value()), expression=exp.LT(this=of("known"), expression=of("n")))
    otherwise, found = exp.Boolean(this=every), exp.Boolean(this=not every)
    cases = ((exp.EQ(this=of("n"), expression=number(0)), otherwise), (decided, found), (unknown, exp.Null()))
    ifs = [exp.If(this=condition, true=result) for condition, result in cases]
    return exp.Paren(this=exp.Case(ifs=ifs, default=otherwise.copy()))


def _finds_least(node: exp.Binary) -> bool:
    """Returns whether a comparison with ANY value holds exactly if it holds with the smallest."""
    return isinstance(node, exp.GT | exp.GTE)


def _asks_for_null(node: exp.In) -> bool:
    place: exp.Expr = node
    denied, is_whole = False, True
    while isinstance(place.parent, exp.Paren | exp.Not | exp.And | exp.Or):
        above = place.parent
        if isinstance(above, exp.Not):
            if denied or not isinstance(place.unnest(), exp.In):
                return True  # under NOT, NULL is not false for a combination of conditions
            denied = True
        is_whole = is_whole and not isinstance(above, exp.Or)
        place = above
    parent = place.parent
    if denied and isinstance(node.this.unnest(), exp.Tuple):
        raise UnsupportedFeatureError("NOT IN over a query of several columns is not supported on Spark.")
    if denied:
        # Spark's join for NOT IN handles NULL; a worker that evaluates the outer expression has no join
        return not (is_whole and isinstance(parent, exp.Where | exp.Having))
    if isinstance(parent, exp.If) and place.arg_key == "this":
        return isinstance(parent.parent, exp.Case) and parent.parent.this is not None
    return not (isinstance(parent, exp.Where | exp.Having | exp.Qualify) or place.arg_key == "on")


def _check_correlation(select: exp.Select) -> None:
    """Refuses outer columns at places where Spark cannot resolve them."""
    is_cut = any(select.args.get(part) is not None for part in ("limit", "offset"))
    options = select.args["limit"].args.get("limit_options") if select.args.get("limit") is not None else None
    for column, place in _outer_columns(select, frozenset(), ""):
        if options is not None and options.args.get("percent"):
            raise UnsupportedFeatureError("LIMIT in percent of a query that uses the one around it is not supported.")
        if place == "join":
            raise UnsupportedFeatureError(
                f"{column.table}.{column.name} of the query around, in the condition of a join, is not supported on "
                "Spark; use it in WHERE."
            )
        if is_cut and place != "where":
            # the order is lost if nothing else correlates the rows
            raise UnsupportedFeatureError(
                f"{column.table}.{column.name} of the query around, beside LIMIT, is not supported on Spark outside of "
                "WHERE."
            )


def _outer_columns(node: exp.Expr, known: frozenset[str], place: str) -> Iterator[tuple[exp.Column, str]]:
    """Yields (column, "where", "join" or "") for each column of an enclosing query."""
    if isinstance(node, exp.Column):
        if notes(node).relation is not None and node.table.casefold() not in known:
            yield node, place
        return
    if isinstance(node, exp.Select):
        known = known | {item.alias_or_name.casefold() for item in from_items(node)}
    for child in node.iter_expressions():
        inner = place
        if isinstance(child, exp.Where):
            inner = "where"
        elif isinstance(node, exp.Join) and child.arg_key == "on":
            inner = place or "join"
        yield from _outer_columns(child, known, inner)


def among(translation: Translating, node: exp.In) -> exp.Expr:
    """Translates `x IN (SELECT …)`."""
    query = node.args["query"]
    outputs = notes(query).outputs or ()
    subject = node.this.unnest()
    left = subject.expressions if isinstance(subject, exp.Tuple) else [subject]
    for part, output in zip(left, outputs, strict=True):
        check_alike(translation, [translation.type_of(part), output.type])

    def value() -> exp.Expr:
        parts = [translation.scalar(part.copy()) for part in left]
        return exp.Tuple(expressions=parts) if len(parts) > 1 else exp.Paren(this=parts[0])

    def rows() -> exp.Expr:
        return translation.translate(query.copy())

    found: exp.Expr = exp.In(this=value(), query=rows())
    if not notes(node).asks_for_null:
        return found
    if len(left) > 1:
        raise UnsupportedFeatureError(
            "IN over a query of several columns is not supported on Spark outside of conditions."
        )
    if is_volatile(node):
        raise UnsupportedFeatureError("IN over values that differ by evaluation is not supported on Spark.")
    if node.this.find(exp.Column, exp.Query) is None:
        # Spark fails to send its tasks the plan of a UNION in an IN of constants
        found = _has_row(rows(), lambda member: exp.EQ(this=member, expression=value()))
    return exp.Paren(
        this=exp.Case(
            ifs=[
                exp.If(this=found, true=exp.true()),
                exp.If(this=exp.Not(this=_has_row(rows())), true=exp.false()),
                exp.If(this=exp.Or(this=is_null(value()), expression=_has_row(rows(), is_null)), true=exp.Null()),
            ],
            default=exp.false(),
        )
    )


def _has_row(rows: exp.Expr, condition: Callable[[exp.Expr], exp.Expr] | None = None) -> exp.Expr:
    """Returns whether a one-column query has a row, or one that fulfils a condition of its value."""
    member = exp.to_identifier("member", quoted=True)
    alias = exp.TableAlias(this=exp.to_identifier("members", quoted=True), columns=[member])
    query = rows.this if isinstance(rows, exp.Subquery) else rows
    found = exp.select("1").from_(exp.Subquery(this=query, alias=alias))
    if condition is not None:
        found = found.where(condition(exp.Column(this=member.copy())))
    return exp.Exists(this=found)
