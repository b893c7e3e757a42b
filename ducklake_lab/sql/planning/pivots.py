"""PIVOT and UNPIVOT in FROM, written out for Spark: aggregates with FILTER, and rows of lists.

In process DuckDB has the text as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.bind.column_names import output_name
from ducklake_lab.sql.dialect import DuckLakeSql

_CELL, _NAME, _VALUE = "_ducklake_cell", "n", "v"


def written_out(tree: exp.Query) -> exp.Query | None:
    """A copy of a parsed query without PIVOT and UNPIVOT; None where it has none.

    Raises:
        UnsupportedFeatureError: the values of one are not known before the query runs.
    """
    if tree.find(exp.Pivot) is None:
        return None
    copy = tree.copy()
    for node in [node for node in copy.find_all(exp.Expr, bfs=False) if node.args.get("pivots")][::-1]:
        pivots = node.args["pivots"]
        node.set("pivots", None)
        joins = node.args.get("joins")
        node.set("joins", None)
        source = node.copy()
        for pivot in pivots:
            source = exp.Subquery(this=_of_clause(pivot, source), alias=_alias(pivot))
        source.set("joins", joins)
        node.replace(source)
    for node in list(copy.find_all(exp.Pivot)):
        _replace_statement(node)
    return copy


def _of_clause(pivot: exp.Pivot, source: exp.Expr) -> exp.Select:
    """`FROM source PIVOT (…)`, or UNPIVOT."""
    if pivot.args.get("default_on_null"):
        raise _refused("DEFAULT ON NULL")
    if pivot.args.get("unpivot"):
        (field,) = pivot.args.get("fields") or [None]
        if not isinstance(field, exp.In) or len(pivot.expressions) != 1:
            raise _refused("UNPIVOT into several columns")
        value = pivot.expressions[0]
        return _unpivot(source, field.expressions, field.this.name, value.name, bool(pivot.args.get("include_nulls")))
    fields = [(field.this, _values(field)) for field in pivot.args.get("fields") or []]
    return _pivot(source, fields, pivot.expressions, pivot.args.get("group"))


def _replace_statement(pivot: exp.Pivot) -> None:
    """`PIVOT source ON …` as a subquery."""
    source = pivot.this
    if pivot.args.get("unpivot"):
        into = pivot.args.get("into")
        name, value = "name", "value"
        if into is not None:
            name, value = into.this.name, into.expressions[0].name if into.expressions else value
        query = _unpivot(source, pivot.expressions, name, value, bool(pivot.args.get("include_nulls")))
    else:
        fields = [(one.this, _values(one)) for one in pivot.expressions if isinstance(one, exp.In)]
        if len(fields) < len(pivot.expressions):
            raise _refused("PIVOT without IN (…), which says what its columns are,")
        using = pivot.args.get("using") or [exp.Anonymous(this="count", expressions=[exp.Star()])]
        query = _pivot(source, fields, using, pivot.args.get("group"))
    pivot.replace(query)


def _pivot(
    source: exp.Expr,
    fields: Sequence[tuple[exp.Expr, Sequence[tuple[exp.Expr, str]]]],
    aggregates: Sequence[exp.Expr],
    group: exp.Expr | None,
) -> exp.Select:
    used = [column for part in (*(field for field, _ in fields), *aggregates) for column in _columns(part)]
    keys: list[exp.Expr] = [key.copy() for key in group.expressions] if group is not None else [_others(used)]
    items: list[exp.Expr] = list(keys)
    for chosen in product(*(values for _, values in fields)):
        for item in aggregates:
            condition = exp.and_(
                *(
                    exp.NullSafeEQ(this=_text(field.copy()), expression=_text(value.copy()))
                    for (field, _), (value, _) in zip(fields, chosen, strict=True)
                ),
                copy=False,
            )
            name = "_".join(name for _, name in chosen)
            if len(aggregates) > 1 or isinstance(item, exp.Alias):
                name += f"_{output_name(item)}"
            value = exp.Filter(this=item.unalias().copy(), expression=exp.Where(this=condition))
            items.append(exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True)))
    query = exp.select(*items, copy=False).from_(source.copy(), copy=False)
    query.set("group", exp.Group(all=True))
    return query


def _unpivot(source: exp.Expr, written: Sequence[exp.Expr], name: str, value: str, include_nulls: bool) -> exp.Select:
    cells: list[exp.Expr] = []
    columns: list[exp.Column] = []
    for item in written:
        column = item.this if isinstance(item, exp.PivotAlias | exp.Alias) else item
        if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star):
            raise _refused(f"UNPIVOT of {column.sql(dialect=DuckLakeSql)}")
        shown = item.args["alias"].name if isinstance(item, exp.PivotAlias | exp.Alias) else column.name
        columns.append(column)
        parts = ((_NAME, exp.Literal.string(shown)), (_VALUE, column.copy()))
        cells.append(
            exp.Anonymous(
                this="struct_pack",
                expressions=[
                    exp.PropertyEQ(this=exp.to_identifier(key, quoted=True), expression=part) for key, part in parts
                ],
            )
        )
    unnested = exp.Anonymous(this="unnest", expressions=[exp.Array(expressions=cells)])
    inner = exp.select(exp.Star(), copy=False).from_(source.copy(), copy=False)
    inner.append("expressions", exp.Alias(this=unnested, alias=exp.to_identifier(_CELL, quoted=True)))
    cell = exp.column(exp.to_identifier(_CELL, quoted=True))

    def part(key: str) -> exp.Dot:
        return exp.Dot(this=cell.copy(), expression=exp.to_identifier(key, quoted=True))

    items = [
        _others([*columns, cell]),
        exp.Alias(this=part(_NAME), alias=exp.to_identifier(name, quoted=True)),
        exp.Alias(this=part(_VALUE), alias=exp.to_identifier(value, quoted=True)),
    ]
    query = exp.select(*items, copy=False).from_(exp.Subquery(this=inner), copy=False)
    return (
        query
        if include_nulls
        else query.where(exp.Not(this=exp.Is(this=part(_VALUE), expression=exp.Null())), copy=False)
    )


def _values(field: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """(value, name) of what a column is compared with."""
    if not isinstance(field, exp.In) or not field.expressions:
        raise _refused("PIVOT over values that are not listed")
    found: list[tuple[exp.Expr, str]] = []
    for item in field.expressions:
        value = item.this if isinstance(item, exp.PivotAlias | exp.Alias) else item
        if isinstance(value, exp.Column) and not value.table:
            value = exp.Literal.string(value.name)  # DuckDB takes a name for a text there
        bare = value.this if isinstance(value, exp.Neg) else value
        if not isinstance(bare, exp.Literal | exp.Boolean | exp.Null):
            raise _refused(f"PIVOT by {value.sql(dialect=DuckLakeSql)}")
        shown = item.args["alias"].name if isinstance(item, exp.PivotAlias | exp.Alias) else _shown(value)
        found.append((value, shown))
    return found


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
    """All columns except some."""
    names = dict.fromkeys(column.name.casefold() for column in used)
    return exp.Star(except_=[exp.to_identifier(name, quoted=True) for name in names])


def _alias(pivot: exp.Pivot) -> exp.Expr | None:
    alias = pivot.args.get("alias")
    return alias.copy() if isinstance(alias, exp.TableAlias) else None


def _refused(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{what} is not supported on Spark.")
