"""Translates queries to Spark SQL: QUALIFY, DISTINCT ON, LIMIT in percent, correlated FROM items, UNNEST, range()."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import NULL
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.sql.bind.from_clause import is_comma
from ducklake_lab.sql.bind.star_expansion import has_star
from ducklake_lab.sql.notes import Output, notes
from ducklake_lab.sql.scope import ancestors
from ducklake_lab.sql.spark import unnesting
from ducklake_lab.sql.spark.comparing import named
from ducklake_lab.sql.spark.grouping_sets import at_position, group_alone, has_total, keys_of, one_group
from ducklake_lab.sql.spark.nodes import as_column, binary, call, cast, columns_of, number, text, typed_column
from ducklake_lab.sql.spark.operands import is_ordered
from ducklake_lab.sql.spark.typing import aggregate
from ducklake_lab.sql.types import to_sqlglot

Step = Callable[[exp.Expr], exp.Expr]
TypeOf = Callable[[exp.Expr], DataType | None]

_MATCH = "_ducklake_match"


def select(node: exp.Select, children: Step, type_of: TypeOf) -> exp.Expr:
    unnesting.check_clauses(node)
    distinct = node.args.get("distinct")
    keys = distinct.args.get("on") if distinct is not None else None
    if keys is not None:
        if node.args.get("qualify"):
            node, keys = _qualified(node, keys, type_of)
        _distinct_on(node, keys)
    if _percent(node):
        return children(_of_percent(node, type_of))
    if keys is None and distinct is not None:
        _sort_distinct(node, type_of)
    if (calls := unnesting.calls_in(node)) and unnesting.is_apart(node, calls):
        return children(unnesting.unnested(node, calls, type_of))
    if node.args.get("qualify"):
        return children(_nested(node, type_of))
    one_group(node)
    if has_total(node) and not notes(node).is_totalled:
        return children(_with_total(node, type_of))
    computed = [key for key in _sort_keys(node) if _is_computed(node, key)] if distinct is None else []
    queried = (
        [key for key in _sort_keys(node) if key.find(exp.Query)] if node.args.get("group") and distinct is None else []
    )
    if queried or (
        computed and (node.args.get("having") or any(at_position(node, key).find(exp.Query) for key in computed))
    ):
        # Spark finds no columns of FROM in a computed key that stands behind HAVING, or that holds a query
        return children(_around(node, type_of, lambda core: core))
    group_alone(node)
    return children(node)


def _sort_keys(node: exp.Select) -> list[exp.Expr]:
    order = node.args.get("order")
    return [item.this for item in order.expressions] if order is not None else []


def _is_computed(node: exp.Select, key: exp.Expr) -> bool:
    """Returns whether Spark sorts by something else than a column of the output, or a subquery."""
    if not isinstance(key, exp.Literal) or key.is_string:
        return key.find(exp.Query) is None
    outputs = notes(node).outputs or ()
    place = int(key.name)
    return not (0 < place <= len(outputs) and is_ordered(outputs[place - 1].type))


def order_joins(tree: exp.Expr) -> None:
    """Moves a join after a comma to the front of FROM; Spark reads `a, b RIGHT JOIN c` as `(a, b) RIGHT JOIN c`.

    The readings differ for RIGHT and FULL, and if `a` has a column of USING.

    Raises:
        UnsupportedFeatureError: the move would change another join, or a star has unknown columns.
    """
    for node in tree.find_all(exp.Select):
        groups: list[list[exp.Join]] = [[]]
        for join in node.args.get("joins") or []:
            if is_comma(join):
                groups.append([])
            groups[-1].append(join)
        found = next((group for group in groups[1:] if any(_is_outer(j) or notes(j).is_shadowed for j in group)), None)
        if found is None:
            continue
        others = [group for group in groups if group is not found]
        bound_to_place = any(_is_outer(join) or join.args.get("using") for group in others for join in group)
        if bound_to_place or any(has_star(item) for item in node.expressions):
            raise UnsupportedFeatureError(
                "Several joins between commas of FROM, one of them RIGHT, FULL or USING, are not supported on Spark."
            )
        first = exp.Join(this=node.args["from_"].this)
        node.args["from_"].set("this", found[0].this)
        node.set("joins", [*found[1:], first, *(join for group in others for join in group)])


def _is_outer(join: exp.Join) -> bool:
    return join.side.upper() in ("RIGHT", "FULL")


def _distinct_on(node: exp.Select, keys: exp.Expr) -> None:
    """Rewrites DISTINCT ON, the first row of each key in the query's order, as QUALIFY row_number() = 1."""
    order = node.args.get("order")
    ordered = []
    for item in order.expressions if order is not None else []:
        key = item.copy()
        key.set("this", at_position(node, item.this))
        ordered.append(key)
    parts = keys.expressions if isinstance(keys, exp.Tuple) else [keys]
    window = exp.Window(
        this=exp.Anonymous(this="row_number"),
        partition_by=[at_position(node, part) for part in parts],
        order=exp.Order(expressions=ordered) if ordered else None,
        over="OVER",
    )
    node.set("distinct", None)
    node.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))


def _qualified(node: exp.Select, keys: exp.Expr, type_of: TypeOf) -> tuple[exp.Select, exp.Tuple]:
    """Returns a query for the DISTINCT ON around the query for QUALIFY, and the keys as its columns."""
    parts = [at_position(node, part) for part in (keys.expressions if isinstance(keys, exp.Tuple) else [keys])]
    names = [f"_ducklake_k{place}" for place in range(len(parts))]
    inner = node.copy()
    inner.set("distinct", None)
    columns = [as_column(part, name) for part, name in zip(parts, names, strict=True)]
    outer = _nested(inner, type_of, columns)
    return outer, exp.Tuple(expressions=[typed_column(n, type_of(p)) for n, p in zip(names, parts, strict=True)])


def _sort_distinct(node: exp.Select, type_of: TypeOf) -> None:
    """Rewrites sort keys after SELECT DISTINCT to output columns; Spark allows no others there."""
    names = Counter(item.alias.casefold() for item in node.expressions)
    outputs = [item for item in node.expressions if names[item.alias.casefold()] == 1]
    for key in node.args["order"].expressions if node.args.get("order") is not None else []:
        for item in outputs:
            for part in [part for part in key.this.walk() if part == item.unalias().unnest()]:
                part.replace(typed_column(item.alias, type_of(part)))
        hidden = next((column for column in key.find_all(exp.Column) if column.table), None)
        if hidden is not None:
            raise UnsupportedFeatureError(
                f"ORDER BY {hidden.name} after SELECT DISTINCT, which does not select it, is not supported on Spark."
            )


def _nested(node: exp.Select, type_of: TypeOf, more: Sequence[exp.Expr] = ()) -> exp.Select:
    """Rewrites QUALIFY as a WHERE around the query.

    Args:
        more: further columns of the inner query.
    """
    inner = node.copy()
    inner.set("qualify", None)
    condition = node.args["qualify"].this.copy()
    if type_of(condition) != DataType("boolean"):
        condition = exp.Cast(this=condition, to=to_sqlglot(DataType("boolean")))
    match = exp.alias_(condition, _MATCH, quoted=True)
    outer = _around(inner, type_of, lambda core: core.select(*more, match, copy=False))
    outer.set("where", exp.Where(this=typed_column(_MATCH, DataType("boolean"))))
    return outer


def _percent(node: exp.Query) -> bool:
    """Returns whether a query has LIMIT n%; removes LIMIT NULL%, which has no effect."""
    limit = node.args.get("limit")
    options = limit.args.get("limit_options") if isinstance(limit, exp.Limit) else None
    if limit is None or options is None or not options.args.get("percent"):
        return False
    if isinstance(limit.expression.unnest(), exp.Null):
        node.set("limit", None)
        return False
    return True


def limited_set(node: exp.SetOperation, type_of: TypeOf) -> exp.Expr | None:
    """Returns a query around a set operation with LIMIT n%; None for others."""
    if not _percent(node):
        return None
    outputs = notes(node).outputs or ()
    names = [exp.to_identifier(f"_ducklake_u{place}", quoted=True) for place in range(len(outputs))]
    outer = exp.Select(
        expressions=[
            as_column(typed_column(name.name, output.type), output.name)
            for name, output in zip(names, outputs, strict=True)
        ]
    )
    notes(outer).outputs = outputs
    for part in ("order", "limit", "offset"):
        outer.set(part, node.args.get(part))
        node.set(part, None)
    places = {output.name.casefold(): place for place, output in enumerate(outputs, 1)}
    for item in outer.args["order"].expressions if outer.args.get("order") is not None else ():
        key = item.this
        if isinstance(key, exp.Column) and not key.table and key.name.casefold() in places:
            item.set("this", number(places[key.name.casefold()]))
        elif not isinstance(key, exp.Literal):
            raise UnsupportedFeatureError(
                "LIMIT in percent after ORDER BY of an expression over a set operation is not supported on Spark."
            )
    alias = exp.TableAlias(this=exp.to_identifier("_ducklake_set", quoted=True), columns=names)
    return outer.from_(exp.Subquery(this=node.copy(), alias=alias), copy=False)


def _of_percent(node: exp.Select, type_of: TypeOf) -> exp.Select:
    """Rewrites LIMIT n% as a condition on row numbers."""
    share = node.args["limit"].expression.unnest()
    if not isinstance(share, exp.Literal) or share.is_string or not 0 <= float(share.name) <= 100:
        raise UnsupportedFeatureError("LIMIT in percent takes a number from 0 to 100 on Spark.")
    distinct, offset = node.args.get("distinct"), node.args.get("offset")
    node.set("distinct", None)
    node.set("offset", None)
    numbers = [typed_column(f"_ducklake_{name}", DataType("int64")) for name in ("row", "rows")]
    keys: list[exp.Expr] = []

    def numbered(core: exp.Select) -> exp.Select:
        inner = [(item.alias, type_of(item)) for item in core.expressions]
        for index, item in enumerate(node.args["order"].expressions if node.args.get("order") is not None else ()):
            is_place = isinstance(item.this, exp.Literal) and not item.this.is_string
            name, kind = inner[int(item.this.name) - 1] if is_place else (f"_ducklake_o{index}", type_of(item.this))
            key = item.copy()
            key.set("this", typed_column(name, kind))
            keys.append(key)
        core.set("distinct", distinct)
        calls = (
            exp.Window(
                this=exp.Anonymous(this="row_number"),
                order=exp.Order(expressions=[key.copy() for key in keys]) if keys else None,
                over="OVER",
            ),
            exp.Window(this=exp.Anonymous(this="count", expressions=[exp.Star()]), over="OVER"),
        )
        items = [as_column(typed_column(name, kind), name) for name, kind in inner]
        items += [as_column(one, name.name) for one, name in zip(calls, numbers, strict=True)]
        alias = exp.TableAlias(this=exp.to_identifier("_ducklake_rows", quoted=True))
        return exp.select(*items, copy=False).from_(exp.Subquery(this=core, alias=alias), copy=False)

    outer = _around(node, type_of, numbered)
    place: exp.Expr = numbers[0].copy()
    if offset is not None:
        place = exp.Paren(this=exp.Sub(this=place, expression=offset.expression.copy()))
    part = exp.Div(this=_double(share.copy()), expression=_double(number(100)))
    most = exp.Mul(this=exp.Paren(this=part), expression=_double(numbers[1].copy()))
    conditions: list[exp.Expr] = [exp.LTE(this=_double(place), expression=most)]
    if offset is not None:
        conditions.append(exp.GT(this=place.copy(), expression=number(0)))
    outer.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    outer.set("limit", None)
    outer.set("order", exp.Order(expressions=[exp.Ordered(this=numbers[0].copy())]) if keys else None)
    return outer


def _double(node: exp.Expr) -> exp.Cast:
    return exp.Cast(this=node, to=to_sqlglot(DataType("float64")))


def _with_total(node: exp.Select, type_of: TypeOf) -> exp.Select:
    """Returns the query plus its total if there are no rows; Spark omits that total."""
    keys = [at_position(node, key).unnest() for key in keys_of(node.args["group"])]
    kinds = {key: type_of(key) for key in keys}

    def total(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Anonymous) and part.name.lower() in ("grouping", "grouping_id"):
            return number(2 ** len(part.expressions) - 1)
        if part in kinds and not any(aggregate(above) for above in ancestors(part)):
            kind = kinds[part]
            return exp.Cast(this=exp.Null(), to=to_sqlglot(kind)) if kind not in (None, NULL) else exp.Null()
        return part

    def both(core: exp.Select) -> exp.Expr:
        rows = core.copy()
        for part in ("group", "having", "windows"):
            rows.set(part, None)
        rows.set("expressions", [number(1)])
        alone = core.copy()
        notes(core).is_totalled = True
        alone.set("group", None)
        alone.set("where", exp.Where(this=exp.false()))
        for item in [*alone.expressions, alone.args.get("having")]:
            if item is not None:
                item.set("this", item.this.transform(total))
        alias = exp.TableAlias(this=exp.to_identifier("_ducklake_total", quoted=True))
        only = exp.select("*").from_(exp.Subquery(this=alone, alias=alias)).where(exp.Not(this=exp.Exists(this=rows)))
        either = exp.Union(this=core, expression=only, distinct=False)
        for query in (either, core, only):
            notes(query).outputs = tuple(Output(item.alias, type_of(item)) for item in core.expressions)
        return either

    return _around(node, type_of, both)


def _around(node: exp.Select, type_of: TypeOf, build: Callable[[exp.Select], exp.Expr]) -> exp.Select:
    """Returns an outer query around a changed inner one; ORDER BY, LIMIT and DISTINCT move outside."""
    items: list[exp.Expr] = []
    inner: list[exp.Expr] = []
    for index, (value, shown) in enumerate(columns_of(node, "QUALIFY or ROLLUP")):
        name = f"_ducklake_c{index}"
        inner.append(as_column(value.copy(), name))
        items.append(as_column(typed_column(name, type_of(value)), shown))
    order = node.args.get("order")
    if order is not None:
        order = order.copy()
        for index, item in enumerate(order.expressions):
            if not (isinstance(item.this, exp.Literal) and not item.this.is_string):
                name = f"_ducklake_o{index}"
                inner.append(exp.alias_(item.this.copy(), name, quoted=True))
                item.set("this", typed_column(name, type_of(item.this)))
    outer = exp.Select(expressions=items)
    notes(outer).outputs = notes(node).outputs
    for part in ("limit", "offset", "distinct", "with_"):
        if node.args.get(part):
            outer.set(part, node.args[part].copy())
    core = node.copy()
    for part in ("order", "limit", "offset", "distinct", "with_"):
        core.set(part, None)
    core.set("expressions", inner)
    alias = exp.TableAlias(this=exp.to_identifier("_ducklake_q", quoted=True))
    outer = outer.from_(exp.Subquery(this=build(core), alias=alias))
    outer.set("order", order)
    return outer


def group(node: exp.Group, translate: Step, part: Callable[[exp.Expr, str], None]) -> exp.Group:
    """Translates GROUP BY; keys in parentheses become separate keys."""
    keys = [key for one in node.expressions for key in (one.expressions if isinstance(one, exp.Tuple) else [one])]
    node.set("expressions", [key if isinstance(key, exp.Literal) else translate(key) for key in keys])
    for key in ("rollup", "cube", "grouping_sets"):
        part(node, key)
    return node


def check_recursion(node: exp.CTE) -> None:
    """Raises if a recursive query leaves out rows that it has found; Spark's recursion keeps all rows."""
    clause, query = node.parent, node.this
    if not isinstance(clause, exp.With) or not clause.args.get("recursive"):
        return
    if node.args.get("key_expressions"):
        raise UnsupportedFeatureError("WITH RECURSIVE … USING KEY is not supported on Spark; use engine='duckdb'.")
    folded = node.alias.casefold()
    if isinstance(query, exp.Union) and query.args.get("distinct"):
        if any(table.name.casefold() == folded and not table.db for table in query.expression.find_all(exp.Table)):
            raise UnsupportedFeatureError(
                "WITH RECURSIVE … UNION is not supported on Spark, whose recursion keeps all rows; "
                "use UNION ALL where no row comes twice, or engine='duckdb'."
            )


def subquery(node: exp.Subquery, children: Step) -> exp.Expr:
    lateral = notes(node).is_lateral
    result = children(node)
    if not lateral:
        return result
    alias = result.args.get("alias")
    result.set("alias", None)
    return exp.Lateral(this=result, alias=alias)


def table(node: exp.Table, translate: Step, children: Step, type_of: TypeOf) -> exp.Expr:
    if not isinstance(node.this, exp.Anonymous):
        return children(node)
    name = node.this.name.lower()
    if node.db or name not in ("range", "generate_series"):
        raise UnsupportedFeatureError(f"Table function {node.this.name} is not supported on Spark.")
    kinds = [type_of(item) for item in node.this.expressions]
    is_of_times = any(kind is not None and kind.name in ("date", *TIMESTAMPS) for kind in kinds)
    if is_of_times or notes(node).has_ordinality or node.this.find(exp.Column):
        return _of_function(node, _exploded(node, translate(node.this)), node.this)
    bounds = [translate(item) for item in node.this.expressions]
    if not 1 <= len(bounds) <= 3:
        raise UnsupportedFeatureError(f"{name} in FROM takes one to three numbers on Spark.")
    start = bounds[0] if len(bounds) > 1 else number(0)
    end = bounds[1] if len(bounds) > 1 else bounds[0]
    step = bounds[2] if len(bounds) > 2 else number(1)
    if name == "generate_series":
        # Spark's range excludes its end, like DuckDB's range; a sum of BIGINT loses no digit, and fails past the last number
        is_down = exp.If(this=exp.LT(this=step.copy(), expression=number(0)), true=number(-1))
        end = binary(exp.Add, cast(end, "BIGINT"), exp.Case(ifs=[is_down], default=number(1)))
    node.set("this", exp.Anonymous(this="range", expressions=[start, end, step]))
    return node


def unnest(node: exp.Unnest, translate: Step) -> exp.Expr:
    rows = node.expressions[0]
    return _of_function(node, _exploded(node, translate(rows)), rows)


def _exploded(node: exp.Expr, rows: exp.Expr) -> exp.Expr:
    """Returns the rows of a list, with row numbers if the function in FROM has WITH ORDINALITY."""
    if not notes(node).has_ordinality:
        return call("explode", rows)
    value, place = (exp.to_identifier(name, quoted=True) for name in ("v", "i"))
    counted = cast(binary(exp.Add, exp.Column(this=place.copy()), number(1)), "BIGINT")
    fields = (text("v"), exp.Column(this=value.copy()), text("i"), counted)
    each = exp.Lambda(this=call("named_struct", *fields), expressions=[value, place])
    return call("inline", call("transform", rows, each))


def _of_function(node: exp.Expr, made: exp.Expr, written: exp.Expr) -> exp.Expr:
    """Returns a FROM item for a function's rows; a lateral one if it uses columns to its left."""
    kind = exp.Lateral if written.find(exp.Column) is not None else exp.Table
    return kind(this=made, alias=node.args.get("alias"))


def as_list(rows: Sequence[Sequence[exp.Expr]]) -> exp.Array:
    """Returns the rows of VALUES as a list of structs."""
    return exp.Array(expressions=[named(exp.Tuple(expressions=list(row))) for row in rows])


def rows_of_list(node: exp.Values, rows: exp.Expr) -> exp.Expr:
    """Returns VALUES as an exploded list, because Spark's VALUES allows no worker functions."""
    return _of_function(node, call("inline", rows), node)
