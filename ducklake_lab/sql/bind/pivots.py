"""PIVOT and UNPIVOT in FROM, written out: aggregates with FILTER, and rows of lists.

So Spark runs them, and both engines where views and macros hold them. In all other queries DuckDB has the text as it was
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod

from sqlglot import exp

from ducklake_lab.errors import BindError, SqlError, UnsupportedFeatureError
from ducklake_lab.sql.bind.item_names import output_name
from ducklake_lab.sql.bind.unpivots import CELL, NAME, VALUE, parts_of
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.pivot_syntax import Unpivoted
from ducklake_lab.sql.scope import ancestors

#: Columns that a PIVOT makes, at most: a lake's view may list any number of values.
_MOST_COLUMNS = 2000
#: Returns the rows of a query with one text column.
Texts = Callable[[exp.Query], Sequence[str]]
#: Default of DuckDB's setting `pivot_limit`.
PIVOT_LIMIT = 100_000


def written_out(tree: exp.Query, texts: Texts, limit: int = PIVOT_LIMIT) -> exp.Query | None:
    """A copy of a parsed query without PIVOT and UNPIVOT; None where it has none.

    Args:
        texts: finds the values of a PIVOT that lists none.
        limit: the number of combinations of values from which DuckDB refuses a PIVOT.

    Raises:
        SqlError: a PIVOT has that many.
        UnsupportedFeatureError: one has a form that is not written out here.
    """
    if tree.find(exp.Pivot) is None:
        return None
    copy = tree.copy()
    for item in [item for select in copy.find_all(exp.Select) for item in select.expressions]:
        if not isinstance(item, exp.Alias) and item.find(exp.Pivot) is not None:
            notes(item).written_name = output_name(item)  # of the text as it is written
    for node in [node for node in copy.find_all(exp.Expr, bfs=False) if node.args.get("pivots")][::-1]:
        pivots = node.args["pivots"]
        node.set("pivots", None)
        joins = node.args.get("joins")
        node.set("joins", None)
        source = node.copy()
        for pivot in pivots:
            source = exp.Subquery(this=_of_clause(pivot, source, limit), alias=_alias(pivot))
        source.set("joins", joins)
        node.replace(source)
    for node in list(copy.find_all(exp.Pivot)):
        _replace_statement(node, texts, limit)
    return copy


def stored(tree: exp.Expr) -> exp.Expr:
    """The query of a view or macro without PIVOT and UNPIVOT.

    Raises:
        UnsupportedFeatureError: one has a form that is not written out here, or lists no values.
    """
    return (written_out(tree, _no_texts) if isinstance(tree, exp.Query) else None) or tree


def _no_texts(_query: exp.Query) -> Sequence[str]:
    raise _refused("PIVOT without IN (…)")


def _of_clause(pivot: exp.Pivot, source: exp.Expr, limit: int) -> exp.Select:
    """`FROM source PIVOT (…)`, or UNPIVOT."""
    if pivot.args.get("default_on_null"):
        raise _refused("DEFAULT ON NULL")
    if pivot.args.get("unpivot"):
        (field,) = pivot.args.get("fields") or [None]
        if not isinstance(field, exp.In) or len(pivot.expressions) != 1:
            raise _refused("UNPIVOT of several names")
        values = [value.name for value in parts_of(pivot.expressions[0])]
        return _unpivot(source, field.expressions, field.this.name, values, bool(pivot.args.get("include_nulls")))
    fields = [(field.this, _values(field)) for field in pivot.args.get("fields") or []]
    return _pivot(source, fields, pivot.expressions, pivot.args.get("group"), limit)


def _replace_statement(pivot: exp.Pivot, texts: Texts, limit: int) -> None:
    """`PIVOT source ON …` as a subquery."""
    source = pivot.this
    if not pivot.expressions:
        raise _refused("PIVOT without ON")
    if pivot.args.get("unpivot"):
        into = pivot.args.get("into")
        name, values = "name", ["value"]
        if into is not None:
            name, values = into.this.name, [one.name for one in into.expressions] or values
        query = _unpivot(source, pivot.expressions, name, values, bool(pivot.args.get("include_nulls")))
    else:
        fields = [
            (one.this, _values(one)) if isinstance(one, exp.In) else (one, _found(pivot, one, texts, limit))
            for one in pivot.expressions
        ]
        using = pivot.args.get("using") or [exp.Anonymous(this="count", expressions=[exp.Star()])]
        query = _pivot(source, fields, using, pivot.args.get("group"), limit)
    query.set("with_", pivot.args.get("with_"))
    pivot.replace(query)


def _pivot(
    source: exp.Expr,
    fields: Sequence[tuple[exp.Expr, Sequence[tuple[exp.Expr, str]]]],
    aggregates: Sequence[exp.Expr],
    group: exp.Expr | None,
    limit: int,
) -> exp.Select:
    if prod(len(values) for _, values in fields) >= limit:
        raise SqlError(f"PIVOT finds {limit:,} values or more; SET pivot_limit = n allows less than n.")
    for field, _ in fields:
        if isinstance(field.unalias().unnest(), exp.Literal):
            raise BindError(f"PIVOT by the constant {field.sql(dialect=DuckLakeSql)}; name a column.")
    for item in aggregates:
        _check_aggregate(item)
    used = [column for part in (*(field for field, _ in fields), *aggregates) for column in _columns(part)]
    keys: list[exp.Expr] = [key.copy() for key in group.expressions] if group is not None else [_others(used)]
    items: list[exp.Expr] = list(keys)
    if prod(len(values) for _, values in fields) * len(aggregates) > _MOST_COLUMNS:
        raise _refused(f"PIVOT into more than {_MOST_COLUMNS:,} columns")
    for chosen in product(*(values for _, values in fields)):
        for item in aggregates:
            condition = exp.and_(
                *(
                    exp.NullSafeEQ(this=_text(field.copy()), expression=_text(value.copy()))
                    for (field, _), (value, _) in zip(fields, chosen, strict=True)
                ),
                copy=False,
            )
            name = reduce(lambda before, name: f"{before}_{name}" if before else name, (name for _, name in chosen))
            if len(aggregates) > 1 or isinstance(item, exp.Alias):
                name += f"_{output_name(item)}"
            if not name:
                raise _refused("PIVOT by an empty text, which names no column,")
            value = exp.Filter(this=item.unalias().copy(), expression=exp.Where(this=condition))
            items.append(exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True)))
    query = exp.select(*items, copy=False).from_(source.copy(), copy=False)
    query.set("group", exp.Group(all=True))
    return query


def _check_aggregate(item: exp.Expr) -> None:
    """Raises BindError for what no aggregate of a PIVOT has."""
    if any(column.table for column in _columns(item)):
        raise BindError(f"PIVOT takes no table before columns: {item.sql(dialect=DuckLakeSql)}.")
    if item.find(exp.Query, exp.Window) is not None:
        raise BindError(f"PIVOT takes no query and no window function: {item.sql(dialect=DuckLakeSql)}.")


def _unpivot(
    source: exp.Expr, written: Sequence[exp.Expr], name: str, values: Sequence[str], include_nulls: bool
) -> exp.Select:
    fields = [f"{VALUE}{number}" for number in range(len(values))]
    item = Unpivoted(expressions=[one.copy() for one in written], width=len(values))
    inner = exp.select(item, copy=False).from_(source.copy(), copy=False)
    cell = exp.column(exp.to_identifier(CELL, quoted=True))

    def part(key: str) -> exp.Dot:
        return exp.Dot(this=cell.copy(), expression=exp.to_identifier(key, quoted=True))

    items = [
        _others([cell]),
        exp.Alias(this=part(NAME), alias=exp.to_identifier(name, quoted=True)),
        *(
            exp.Alias(this=part(field), alias=exp.to_identifier(value, quoted=True))
            for field, value in zip(fields, values, strict=True)
        ),
    ]
    query = exp.select(*items, copy=False).from_(exp.Subquery(this=inner), copy=False)
    if include_nulls:
        return query
    not_null = (exp.Not(this=exp.Is(this=part(field), expression=exp.Null())) for field in fields)
    return query.where(*not_null, copy=False)


def _found(pivot: exp.Pivot, field: exp.Expr, texts: Texts, limit: int) -> list[tuple[exp.Expr, str]]:
    """(value, name) of the values that an expression has, by a query for them; DuckDB sorts them as texts."""
    if isinstance(field, exp.Tuple) or field.find(exp.Query, exp.AggFunc):
        raise _refused(f"PIVOT by {field.sql(dialect=DuckLakeSql)} without IN (…)")
    query = exp.select(exp.Alias(this=_text(field.unalias().copy()), alias=exp.to_identifier("v")), copy=False)
    not_null = exp.Not(this=exp.Is(this=field.unalias().copy(), expression=exp.Null()))
    query = query.distinct().from_(pivot.this.copy(), copy=False).where(not_null, copy=False)
    query.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(1))]))
    query = query.limit(limit, copy=False)
    root = pivot.root()
    for above in (pivot, *ancestors(pivot)):
        if isinstance(above, exp.With) or (above is not root and above.args.get("with_")):
            raise _refused("PIVOT without IN (…) inside of WITH")
    if root.args.get("with_"):
        query.set("with_", root.args["with_"].copy())
    values: list[tuple[exp.Expr, str]] = [(exp.Literal.string(value), value) for value in texts(query)]
    if not values:
        raise _refused("PIVOT without IN (…) over a column without values")
    return values


def _values(field: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """Returns (value, name) for each listed value of a column."""
    if not isinstance(field, exp.In) or not field.expressions:
        raise _refused("PIVOT over values that are not listed")
    values: list[tuple[exp.Expr, str]] = []
    for item in field.expressions:
        value = item.this if isinstance(item, exp.PivotAlias | exp.Alias) else item
        if isinstance(value, exp.Column) and not value.table:
            value = exp.Literal.string(value.name)  # DuckDB reads a name there as text
        bare = value.this if isinstance(value, exp.Neg) else value
        if not isinstance(bare, exp.Literal | exp.Boolean | exp.Null):
            raise _refused(f"PIVOT by {value.sql(dialect=DuckLakeSql)}")
        shown = item.args["alias"].name if isinstance(item, exp.PivotAlias | exp.Alias) else _shown(value)
        values.append((value, shown))
    _check_once([value for value, _ in values])
    return values


def _check_once(values: Sequence[exp.Expr]) -> None:
    """Raises BindError for a value that a PIVOT lists twice."""
    seen: set[exp.Expr] = set()
    for value in values:
        if value in seen:
            raise BindError(f"PIVOT lists the value {value.sql(dialect=DuckLakeSql)} twice; name it once.")
        seen.add(value)
    if any(isinstance(value, exp.Boolean) for value in values) and any(value.is_number for value in values):
        raise _refused("PIVOT by numbers and truth values")  # DuckDB takes 1 and true for one value


def _shown(value: exp.Expr) -> str:
    return (
        value.name
        if isinstance(value, exp.Literal)
        else value.sql(dialect=DuckLakeSql).replace("TRUE", "true").replace("FALSE", "false")
    )


def _text(node: exp.Expr) -> exp.Cast:
    return exp.Cast(this=node, to=exp.DataType.build("VARCHAR", dialect="duckdb"))


def _columns(node: exp.Expr) -> Iterator[exp.Column]:
    return (column for column in node.find_all(exp.Column) if not isinstance(column.this, exp.Star))


def _others(used: Sequence[exp.Column]) -> exp.Star:
    """Returns a star without some columns."""
    names = dict.fromkeys(column.name.casefold() for column in used)
    return exp.Star(except_=[exp.to_identifier(name, quoted=True) for name in names])


def _alias(pivot: exp.Pivot) -> exp.Expr | None:
    alias = pivot.args.get("alias")
    return alias.copy() if isinstance(alias, exp.TableAlias) else None


def _refused(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{what} is not supported on Spark, and in views and macros of lakes.")
