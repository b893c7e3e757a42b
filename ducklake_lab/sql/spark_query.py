"""Queries in Spark SQL: QUALIFY, DISTINCT ON, UNION BY NAME, correlated FROM items, UNNEST, range()."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.from_clause import LATERAL
from ducklake_lab.sql.scope import OUTPUTS, RELATION, TYPE, Output
from ducklake_lab.sql.spark_nodes import binary, call, number

Step = Callable[[exp.Expr], exp.Expr]

_MATCH = "_ducklake_match"


def select(node: exp.Select, translate: Step, children: Step) -> exp.Expr:
    distinct = node.args.get("distinct")
    keys = distinct.args.get("on") if distinct is not None else None
    if keys is not None:
        if node.args.get("qualify"):
            raise UnsupportedFeatureError("DISTINCT ON together with QUALIFY is not supported on Spark.")
        _distinct_on(node, keys)
    elif distinct is not None:
        _sort_distinct(node)
    if node.args.get("qualify"):
        return children(_nested(node))
    _explode(node)
    if _is_outer(node):
        return _fenced(children(node))
    return children(node)


def _is_outer(node: exp.Select) -> bool:
    """Whether a column of its FROM is used by a subquery among its output columns."""
    source = node.args.get("from_") or node.args.get("from")
    if source is None:
        return False
    own = {item.this.alias_or_name for item in (source, *(node.args.get("joins") or ()))}
    inner = (subquery for item in node.expressions for subquery in item.find_all(exp.Subquery))
    return any(column.table in own for subquery in inner for column in subquery.find_all(exp.Column))


def _fenced(node: exp.Expr) -> exp.Expr:
    """The query with a condition that always holds, and that Spark cannot know to.

    Spark's optimizer moves output columns below a UNION, which a table of files and inlined rows is; it fails where one
    is a correlated subquery. A condition on a random number stays where it is, and keeps them above.
    """
    assert isinstance(node, exp.Select)
    always = exp.GTE(this=exp.Anonymous(this="rand"), expression=exp.Literal.number(0))
    return node.where(always, copy=False)


def _explode(node: exp.Select) -> None:
    """`SELECT unnest(l)`: Spark has one such column per SELECT, and only on its own."""
    calls = [
        call for item in node.expressions for call in item.find_all(exp.Anonymous) if call.name.lower() == "unnest"
    ]
    if not calls:
        return
    if len(calls) > 1 or not isinstance(calls[0].parent, exp.Alias) or len(calls[0].expressions) != 1:
        raise UnsupportedFeatureError("Several unnest(…), or one inside an expression, is not supported on Spark yet.")
    if node.args.get("group") or node.args.get("distinct"):
        raise UnsupportedFeatureError("unnest together with GROUP BY or DISTINCT is not supported on Spark yet.")


def _distinct_on(node: exp.Select, keys: exp.Expr) -> None:
    """The first row of each key in the query's order, written as QUALIFY row_number() = 1."""
    order = node.args.get("order")
    ordered = []
    for item in order.expressions if order is not None else []:
        key = item.copy()
        if isinstance(item.this, exp.Literal) and not item.this.is_string:
            key.set("this", node.expressions[int(item.this.name) - 1].unalias().copy())
        ordered.append(key)
    parts = keys.expressions if isinstance(keys, exp.Tuple) else [keys]
    window = exp.Window(
        this=exp.Anonymous(this="row_number"),
        partition_by=[part.copy() for part in parts],
        order=exp.Order(expressions=ordered) if ordered else None,
        over="OVER",
    )
    node.set("distinct", None)
    node.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))


def _sort_distinct(node: exp.Select) -> None:
    """Writes sort keys after SELECT DISTINCT with its output columns; Spark sees no others there."""
    names = Counter(item.alias.casefold() for item in node.expressions)
    outputs = [item for item in node.expressions if names[item.alias.casefold()] == 1]
    for key in node.args["order"].expressions if node.args.get("order") is not None else []:
        for item in outputs:
            for part in [part for part in key.this.walk() if part == item.unalias().unnest()]:
                column = exp.column(exp.to_identifier(item.alias, quoted=True))
                column.meta[TYPE] = part.meta.get(TYPE)
                part.replace(column)
        hidden = next((column for column in key.find_all(exp.Column) if column.table), None)
        if hidden is not None:
            raise UnsupportedFeatureError(
                f"ORDER BY {hidden.name} after SELECT DISTINCT, which does not select it, is not supported on Spark."
            )


def _nested(node: exp.Select) -> exp.Select:
    """QUALIFY as a WHERE around the query; ORDER BY, LIMIT and DISTINCT move outside."""
    if any(not isinstance(item, exp.Alias) for item in node.expressions):
        raise UnsupportedFeatureError("QUALIFY over columns that are not known is not supported on Spark.")
    items: list[exp.Expr] = []
    inner: list[exp.Expr] = []
    for index, item in enumerate(node.expressions):
        name = f"_ducklake_c{index}"
        inner.append(exp.alias_(item.this.copy(), name, quoted=True))
        items.append(exp.alias_(exp.column(exp.to_identifier(name, quoted=True)), item.alias, quoted=True))
    inner.append(exp.alias_(node.args["qualify"].this.copy(), _MATCH, quoted=True))
    order = node.args.get("order")
    if order is not None:
        order = order.copy()
        for index, item in enumerate(order.expressions):
            if not (isinstance(item.this, exp.Literal) and not item.this.is_string):
                name = f"_ducklake_o{index}"
                inner.append(exp.alias_(item.this.copy(), name, quoted=True))
                item.set("this", exp.column(exp.to_identifier(name, quoted=True)))
    outer = exp.Select(expressions=items)
    for part in ("limit", "offset", "distinct", "with_"):
        if node.args.get(part):
            outer.set(part, node.args[part].copy())
    core = node.copy()
    for part in ("qualify", "order", "limit", "offset", "distinct", "with_"):
        core.set(part, None)
    core.set("expressions", inner)
    outer = outer.from_(
        exp.Subquery(this=core, alias=exp.TableAlias(this=exp.to_identifier("_ducklake_q", quoted=True)))
    )
    outer.set("where", exp.Where(this=exp.column(exp.to_identifier(_MATCH, quoted=True))))
    outer.set("order", order)
    return outer


def set_operation(node: exp.SetOperation, translate: Step, children: Step) -> exp.Expr:
    if node.args.get("by_name"):
        outputs = node.meta.get(OUTPUTS)
        sides = [node.this.meta.get(OUTPUTS), node.expression.meta.get(OUTPUTS)]
        if outputs is None or None in sides:
            raise UnsupportedFeatureError("UNION BY NAME of columns that are not known is not supported on Spark.")
        node.set("this", _by_name(node.this, sides[0], outputs))
        node.set("expression", _by_name(node.expression, sides[1], outputs))
        node.set("by_name", False)
    return children(node)


def _by_name(side: exp.Expr, has: tuple[Output, ...], wanted: tuple[Output, ...]) -> exp.Select:
    known = {output.name.casefold(): output.name for output in has}
    items: list[exp.Expr] = []
    for output in wanted:
        own = known.get(output.name.casefold())
        value = exp.column(exp.to_identifier(own, quoted=True)) if own is not None else exp.Null()
        items.append(exp.alias_(value, output.name, quoted=True))
    query = side.this if isinstance(side, exp.Subquery) and not side.args.get("order") else side
    alias = exp.TableAlias(this=exp.to_identifier("_ducklake_side", quoted=True))
    return exp.select(*items).from_(exp.Subquery(this=query.copy(), alias=alias))


def subquery(node: exp.Subquery, translate: Step, children: Step) -> exp.Expr:
    lateral = node.meta.get(LATERAL)
    result = children(node)
    if not lateral:
        return result
    alias = result.args.get("alias")
    result.set("alias", None)
    return exp.Lateral(this=result, alias=alias)


def table(node: exp.Table, translate: Step, children: Step) -> exp.Expr:
    if not isinstance(node.this, exp.Anonymous):
        return children(node)
    name = node.this.name.lower()
    if node.db or name not in ("range", "generate_series"):
        raise UnsupportedFeatureError(f"Table function {node.this.name} is not supported on Spark.")
    bounds = [translate(item) for item in node.this.expressions]
    if not 1 <= len(bounds) <= 3 or any(item.find(exp.Column) for item in bounds):
        raise UnsupportedFeatureError(f"{name} in FROM needs constant numbers to run on Spark.")
    start = bounds[0] if len(bounds) > 1 else number(0)
    end = bounds[1] if len(bounds) > 1 else bounds[0]
    step = bounds[2] if len(bounds) > 2 else number(1)
    if name == "generate_series":
        # Spark's range leaves its end out, as DuckDB's range does.
        end = binary(exp.Add, end, call("sign", step.copy()) if len(bounds) > 2 else number(1))
    node.set("this", exp.Anonymous(this="range", expressions=[start, end, step]))
    return node


def unnest(node: exp.Unnest, translate: Step, children: Step) -> exp.Expr:
    rows = node.expressions[0]
    correlated = any(RELATION in column.meta for column in rows.find_all(exp.Column))
    exploded = call("explode", translate(rows))
    if correlated:
        return exp.Lateral(this=exploded, alias=node.args.get("alias"))
    return exp.Table(this=exploded, alias=node.args.get("alias"))
