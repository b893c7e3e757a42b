"""Binds GROUP BY, HAVING, QUALIFY and ORDER BY: positions, aliases of output columns, and ALL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import is_aggregate
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql.bind.aliases import alias_value
from ducklake_lab.sql.bind.binding import Binding
from ducklake_lab.sql.bind.key_positions import (
    output_position,
    position_in_sides,
    position_of_value,
    read_order,
    read_places,
    written_position,
)
from ducklake_lab.sql.bind.star_expansion import expand, has_star
from ducklake_lab.sql.notes import Outputs, Relation, notes
from ducklake_lab.sql.scope import Ctes, Scope


def bind_group(binder: Binding, node: exp.Select, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr]) -> None:
    """Binds GROUP BY; ALL becomes the positions of output columns with columns of FROM and no aggregate."""
    group = node.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        keys = [
            exp.Literal.number(place_)
            for place_, item in enumerate(node.expressions, 1)
            if not has_aggregate(item) and _has_column(item, scope)
        ]
        whole = exp.Group(expressions=keys) if keys else None
        if whole is not None:
            notes(whole).replaces_all = True
        node.set("group", whole)
        return
    _without_empty(group)
    parts = (group.args.get(part) or [] for part in ("expressions", "rollup", "cube", "grouping_sets"))
    read_places(binder, node, [key for part in parts for item in part for key in _keys_of(item)], "GROUP BY")
    for index, key in enumerate(list(group.expressions)):
        position = _alias_position(key, aliases)
        if position is not None and not any(relation.find(key.name) for relation in scope.relations):
            group.expressions[index].replace(exp.Literal.number(position))
            continue
        _bind_keys(binder, key, scope, ctes, aliases)
    for part in ("rollup", "cube", "grouping_sets"):
        for item in group.args.get(part) or []:
            _bind_keys(binder, item, scope, ctes, aliases)


def _bind_keys(binder: Binding, item: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr]) -> None:
    """Binds the keys of an item of GROUP BY; names of the SELECT list are keys, and no parts of keys."""
    for key in _keys_of(item):
        known = aliases if isinstance(key.unnest(), exp.Column) else None
        bound = binder.expression(key, scope, ctes, known)
        if bound is not key:
            key.replace(bound)


def _keys_of(item: exp.Expr) -> list[exp.Expr]:
    """Returns the keys of an item of GROUP BY: itself, or those in ROLLUP, CUBE, GROUPING SETS and parentheses."""
    if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [key for one in item.expressions for key in _keys_of(one)]
    return [item]


def _without_empty(group: exp.Group) -> None:
    """Removes `()` from GROUP BY beside keys, where it has no effect; alone it becomes a grouping set."""
    kept = [key for key in group.expressions if not _is_empty(key)]
    if len(kept) == len(group.expressions):
        return
    if not kept and not any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets")):
        kept = [exp.GroupingSets(expressions=[exp.Tuple()])]
    group.set("expressions", kept)


def _is_empty(key: exp.Expr) -> bool:
    return isinstance(key, exp.Tuple) and not key.expressions


def bind_having(binder: Binding, node: exp.Select, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr]) -> None:
    """Binds HAVING: outside of aggregates, a name means a column of the SELECT list before an ungrouped column."""
    clause = node.args.get("having")
    if clause is None:
        return
    grouped = set(_grouped(node))
    group = node.args.get("group")
    # with GROUP BY ALL, DuckDB also groups by columns that HAVING names; such names stay columns
    is_all = group is not None and notes(group).replaces_all
    for column in list(clause.find_all(exp.Column)):
        name = column.name.casefold()
        if name not in aliases or column.table or name in grouped or _is_inside(column, clause):
            continue
        if not is_all or has_aggregate(aliases[name]):
            value = alias_value(column, aliases[name])
            notes(value).is_bound = True
            column.replace(value)
    clause.set("this", binder.expression(clause.this, scope, ctes, aliases))


def bind_qualify(binder: Binding, node: exp.Select, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr]) -> None:
    """Binds QUALIFY.

    Raises:
        BindError: neither it, nor the SELECT list, nor ORDER BY has a window function.
    """
    clause = node.args.get("qualify")
    if clause is None:
        return
    clause.set("this", binder.expression(clause.this, scope, ctes, aliases))
    order = node.args.get("order")
    if not any(_has_window(part) for part in (clause, *node.expressions, *([order] if order is not None else []))):
        raise BindError("QUALIFY needs a window function, in itself or in the SELECT list. Use WHERE or HAVING.")


def _has_window(node: exp.Expr) -> bool:
    """Returns whether a window function stands outside of subqueries."""
    if isinstance(node, exp.Window):
        return True
    return not isinstance(node, exp.Query) and any(_has_window(child) for child in node.iter_expressions())


def _grouped(node: exp.Select) -> Iterator[str]:
    """Yields the names of the plain columns in GROUP BY."""
    group = node.args.get("group")
    for key in group.expressions if group is not None else ():
        value = node.expressions[int(key.name) - 1].unalias() if isinstance(key, exp.Literal) else key
        if isinstance(value, exp.Column):
            yield value.name.casefold()


def _is_inside(column: exp.Column, clause: exp.Expr) -> bool:
    """Returns whether a column is in an aggregate or a subquery of a clause."""
    parent = column.parent
    while parent is not None and parent is not clause:
        if isinstance(parent, exp.Query | exp.Window) or (
            isinstance(parent, exp.Anonymous) and is_aggregate(parent.name)
        ):
            return True
        parent = parent.parent
    return False


def bind_distinct(
    binder: Binding, node: exp.Select, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr], outputs: Outputs
) -> None:
    """Binds the keys of DISTINCT ON; as in ORDER BY, names of output columns come first."""
    distinct = node.args.get("distinct")
    if distinct is None or distinct.args.get("on") is None:
        return
    keys = distinct.args["on"]
    written = keys.expressions if isinstance(keys, exp.Tuple) else [keys.unnest()]
    expanded = [one.unalias() for key in written for one in expand(key, scope)]
    distinct.set("on", exp.Tuple(expressions=expanded))
    keys = exp.Tuple(expressions=read_places(binder, node, expanded, "DISTINCT ON"))
    if not keys.expressions:
        raise UnsupportedFeatureError("DISTINCT ON of constants alone is not supported; leave them out.")
    distinct.set("on", keys)
    for key in keys.expressions:
        position = _alias_position(key, aliases) if outputs is not None else None
        key.replace(binder.expression(key, scope, ctes, aliases) if position is None else exp.Literal.number(position))


def bind_order(
    binder: Binding, node: exp.Select, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr], outputs: Outputs
) -> None:
    """Binds ORDER BY of a SELECT; keys that are output columns become positions."""
    clause = node.args.get("order")
    if clause is None:
        return
    _expand_all(clause, outputs)
    _expand_stars(clause, scope)
    if not read_order(binder, node, None if any(map(has_star, node.expressions)) else len(node.expressions)):
        return
    for item in clause.expressions:
        if isinstance(item.this, exp.Collate) and _alias_position(item.this.this, aliases) is not None:
            # the name means the output column here too
            column = item.this.this
            value = alias_value(column, aliases[column.name.casefold()])
            notes(value).is_bound = True
            item.this.set("this", value)
        position = _alias_position(item.this, aliases) or written_position(item.this) if outputs is not None else None
        if position is not None:
            item.set("this", exp.Literal.number(position))
        else:
            value = binder.expression(item.this, scope, ctes, aliases)
            bare = value.unnest()
            shown = next((n for n, part in enumerate(node.expressions, 1) if part.unalias().unnest() == bare), None)
            # The position of an equal output column is also valid after DISTINCT.
            item.set("this", value if shown is None or outputs is None else exp.Literal.number(shown))


def into_parentheses(node: exp.Subquery) -> None:
    """Moves ORDER BY, LIMIT and OFFSET behind a query in parentheses into it: DuckDB sorts before the LIMIT inside.

    Raises:
        BindError: the query in parentheses has the clause too.
    """
    if not isinstance(node.this, exp.Query):
        return
    for part, clause in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if (value := node.args.get(part)) is None:
            continue
        if node.this.args.get(part) is not None:
            raise BindError(
                f"{clause} stands in the parentheses and behind them. Use SELECT * FROM (…) for the outer one."
            )
        node.set(part, None)
        node.this.set(part, value)


def bind_order_of_names(binder: Binding, node: exp.Expr, outputs: Outputs, parent: Scope | None, ctes: Ctes) -> None:
    """Binds ORDER BY and LIMIT of a set operation; names mean its output columns."""
    if any(node.args.get(part) for part in ("order", "limit", "offset")):
        scope = Scope(parent, [Relation("", "", outputs, title=_title(node))])
        order = node.args.get("order")
        if order is not None:
            _expand_all(order, outputs)
            read_order(binder, node, len(outputs) if outputs is not None else None)
            for item in order.expressions:
                key = item.this.unnest()
                if isinstance(key, exp.Literal):
                    continue
                position = output_position(key, outputs) or position_in_sides(key, node) or position_of_value(key, node)
                if position is not None:
                    item.set("this", exp.Literal.number(position))
                elif isinstance(key, exp.Column | exp.Collate) or outputs is None or has_star(key):
                    binder.expression(item, scope, ctes)
                else:
                    raise BindError(
                        f"ORDER BY {key.sql(dialect='duckdb')} is no column of {_title(node)}. "
                        "Select it on each side, or sort SELECT * FROM (…)."
                    )
        bind_limit(binder, node, ctes)


def bind_limit(binder: Binding, node: exp.Expr, ctes: Ctes) -> None:
    """Binds LIMIT and OFFSET, which see no columns.

    Raises:
        BindError: a set operation has a query there, as DuckDB does not take it.
    """
    for part in ("limit", "offset"):
        clause = node.args.get(part)
        if clause is None:
            continue
        if isinstance(node, exp.SetOperation) and clause.find(exp.Query) is not None:
            raise BindError(f"{part.upper()} of {_title(node)} takes no query; use SELECT * FROM (…) around it.")
        binder.expression(clause, Scope(), ctes)


def _title(node: exp.Expr) -> str:
    """Returns a set operation as errors call it."""
    operation = node.unnest()
    return f"the {operation.key.upper()}" if isinstance(operation, exp.SetOperation) else "the query in parentheses"


def _expand_all(order: exp.Expr, outputs: Outputs) -> None:
    first = order.expressions[0]
    word = first.this
    if isinstance(word, exp.Anonymous) and word.name.casefold() == "columns" and len(word.expressions) == 1:
        word = word.expressions[0]  # DuckDB reads COLUMNS(*) alone as ALL, and prints ALL in this form
    is_star = len(order.expressions) == 1 and isinstance(word, exp.Star) and not any(word.args.values())
    if not (is_star or (isinstance(word, exp.Var) and word.name.upper() == "ALL")) or outputs is None:
        return
    keys = []
    for position in range(1, len(outputs) + 1):
        key = first.copy()
        key.set("this", exp.Literal.number(position))
        keys.append(key)
    order.set("expressions", keys)


def _expand_stars(order: exp.Expr, scope: Scope) -> None:
    """Expands stars among other keys to the columns of FROM."""
    keys = []
    for item in order.expressions:
        for value in expand(item.this, scope):
            key = item.copy() if value is not item.this else item
            key.set("this", value.unalias())
            keys.append(key)
    order.set("expressions", keys)


def has_aggregate(node: exp.Expr) -> bool:
    """Returns whether an expression contains an aggregate or window function, outside of subqueries."""
    if isinstance(node, exp.Window):
        return True
    if isinstance(node, exp.Anonymous) and is_aggregate(node.name):
        return True
    if isinstance(node, exp.Subquery | exp.Select):
        return False
    return any(has_aggregate(child) for child in node.iter_expressions())


def _has_column(item: exp.Expr, scope: Scope) -> bool:
    """Returns whether an output column uses a column of FROM; without such columns there is one group."""

    def is_own(column: exp.Column) -> bool:
        relation = notes(column).relation
        if relation is None:  # a USING column, or unknown before the query runs
            return column.find_ancestor(exp.Subquery, exp.Exists) is None
        return any(relation is own for own in scope.relations)

    return any(map(is_own, item.find_all(exp.Column)))


def _alias_position(key: exp.Expr, aliases: Mapping[str, exp.Expr]) -> int | None:
    """Returns the position of the output column with a bare name as its alias; None without one."""
    value = aliases.get(key.name.casefold()) if isinstance(key, exp.Column) and not key.table else None
    return notes(value).alias_position if value is not None else None
