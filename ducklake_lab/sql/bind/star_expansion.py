"""Stars: `*`, `t.*` and COLUMNS(…) written out as the columns they stand for."""

from __future__ import annotations

import re

from sqlglot import exp

from ducklake_lab.errors import BindError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.sql.scope import Relation, Scope, bind_error


def expand(item: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """A projection as the projections it stands for: `*`, `t.*` and COLUMNS(…) are written out."""
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Star):
        columns = scope.star()
        if columns is None:
            return [item]
        if not scope.relations:
            raise BindError("SELECT * needs a FROM clause.")
        return _starred(inner, columns, scope)
    if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
        relation = _qualified_star(inner, scope)
        if relation.columns is None:
            return [item]
        return _starred(inner.this, [relation.column(output) for output in relation.columns], scope)
    calls = [call for call in item.find_all(exp.Anonymous) if call.name.lower() == "columns"]
    if not calls:
        return [item]
    columns = scope.star()
    if columns is None:
        raise UnsupportedFeatureError("COLUMNS(…) over columns that are not known is not supported.")
    return _columns_call(item, calls, columns, scope)


def _starred(star: exp.Expr, columns: list[exp.Column], scope: Scope) -> list[exp.Expr]:
    by_name = {column.name.casefold(): column for column in columns}

    def known(node: exp.Expr) -> str:
        if node.name.casefold() not in by_name:
            tables = " nor ".join(relation.name for relation in scope.relations)
            identifier = node.this if isinstance(node.this, exp.Identifier) else node
            raise bind_error(f'{tables} has no column "{node.name}"', identifier, did_you_mean(node.name, by_name))
        return node.name.casefold()

    excluded = {known(node) for node in star.args.get("except_") or []}
    replaced = {known(node.args["alias"]): node for node in star.args.get("replace") or []}
    new_names = {known(node.this): node.alias for node in star.args.get("rename") or []}
    result: list[exp.Expr] = []
    for column in columns:
        folded = column.name.casefold()
        if folded in excluded:
            continue
        if folded in replaced:
            result.append(exp.alias_(replaced[folded].this.copy(), column.name, quoted=True))
        elif folded in new_names:
            result.append(exp.alias_(column, new_names[folded], quoted=True))
        else:
            result.append(column)
    return result


def _columns_call(
    item: exp.Expr, calls: list[exp.Anonymous], columns: list[exp.Column], scope: Scope
) -> list[exp.Expr]:
    chosen: list[exp.Column] | None = None
    for call in calls:
        argument = call.expressions[0] if len(call.expressions) == 1 else None
        if isinstance(argument, exp.Star):
            some = [column for column in _starred(argument, columns, scope) if isinstance(column, exp.Column)]
        elif isinstance(argument, exp.Literal) and argument.is_string:
            pattern = re.compile(argument.name)
            some = [column for column in columns if pattern.search(column.name)]
        elif isinstance(argument, exp.Array):
            wanted = [element.name.casefold() for element in argument.expressions]
            some = [column for name in wanted for column in columns if column.name.casefold() == name]
        else:
            raise UnsupportedFeatureError("COLUMNS with anything but *, a pattern or a list is not supported yet.")
        if chosen is not None and [c.name for c in some] != [c.name for c in chosen]:
            raise BindError("All COLUMNS(…) in one expression must choose the same columns.")
        chosen = some
    if not chosen:
        raise BindError("COLUMNS(…) matches no column.")
    result: list[exp.Expr] = []
    for column in chosen:
        copy = item.copy()
        for call in [c for c in copy.find_all(exp.Anonymous) if c.name.lower() == "columns"]:
            if call is copy:
                copy = column.copy()
            else:
                call.replace(column.copy())
        # DuckDB names each copy by its column, even where an expression is around it.
        result.append(copy if isinstance(copy, exp.Alias) else exp.alias_(copy, column.name, quoted=True))
    return result


def has_star(node: exp.Expr) -> bool:
    """Whether a projection is a star that could not be written out."""
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star))


def _qualified_star(column: exp.Column, scope: Scope) -> Relation:
    parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
    names = [part.name for part in parts]
    for relation in scope.relations:
        if relation.matches(names):
            return relation
    raise bind_error(
        f'Nothing in FROM is called "{".".join(names)}"',
        parts[0],
        did_you_mean(names[-1], [relation.name for relation in scope.relations]),
    )
