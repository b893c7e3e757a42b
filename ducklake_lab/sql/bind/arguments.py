"""Columns in arguments of macros, which tables of the body may capture.

DuckDB puts an argument into the body as text and binds it there. For a scalar macro in SELECT, HAVING, QUALIFY or ORDER BY, columns get
the names of their tables before: `m(a)` becomes `m(t.a)`, which a table t of the body captures. In other clauses, and for table
macros, any table of the body with such a column captures it. We follow where the name is qualified or the macro is one of tables.
Elsewhere a capture is an accident, so the call is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from ducklake_lab.errors import CapturedNameError
from ducklake_lab.sql.notes import Relation, notes
from ducklake_lab.sql.scope import Scope, ancestors, in_scope

#: Parts of a SELECT whose columns get the names of their tables.
_QUALIFIED = ("expressions", "having", "qualify", "order", "distinct")


def note_names(
    argument: exp.Expr,
    written: exp.Expr,
    scope: Scope,
    aliases: Collection[str],
    *,
    is_qualified: bool,
    of_rows: bool,
) -> None:
    """Notes the name that a macro's body gets for each column of a bound argument.

    Args:
        written: a copy of the argument before it was bound.
        aliases: names of the SELECT list, folded.
        scope: the scope of the call.
        is_qualified: columns of the scope get the names of their tables; see `has_qualified_names`.
        of_rows: the macro is one of tables.
    """
    first = [names[0] for column in written.find_all(exp.Column) if (names := _names(column))]
    heads = {part.name.casefold() for part in first}
    notes(argument).aliases += tuple(
        part for part in first if part.name.casefold() in aliases and in_scope([part.name], [part], scope) is None
    )
    for column in argument.find_all(exp.Column):
        noted, relation = notes(column), notes(column).relation
        if relation is None or noted.argument is not None or not _is_around(relation, scope):
            continue
        is_bare = column.name.casefold() in heads
        if not is_bare and relation.name.casefold() not in heads:
            continue  # of a name of the SELECT list
        # an argument with both `a` and `t.a` does not say which of its columns is which
        is_written = of_rows and is_bare and relation.name.casefold() not in heads
        table = None if is_written else exp.to_identifier(relation.name, quoted=True)
        noted.argument = exp.column(exp.to_identifier(column.name, quoted=True), table)
        gets_table = is_qualified and not of_rows and any(relation is one for one in scope.relations)
        noted.is_bare = is_bare and not is_written and not gets_table


def has_qualified_names(call: exp.Expr, changed: exp.Expr | None) -> bool:
    """Returns whether a call stands where columns get the names of their tables.

    Args:
        changed: the query that a statement that changes rows is bound as, whose SELECT list nobody wrote.
    """
    node = call
    while node.parent is not None and not isinstance(node.parent, exp.Query):
        node = node.parent
    return node.parent is None or (node.arg_key in _QUALIFIED and node.parent is not changed)


def captured(argument: exp.Expr, scope: Scope) -> Iterator[tuple[exp.Column, exp.Expr]]:
    """Yields columns of an argument that tables of the body capture, and what to bind in their place.

    Args:
        argument: an argument that replaces a parameter, or another expression.
        scope: the scope where it stands.

    Raises:
        CapturedNameError: DuckDB takes a column of the body by accident, or in a query in the argument.
    """
    if not notes(argument).is_argument:
        return
    lambdas = [above for above in ancestors(argument) if isinstance(above, exp.Lambda)]
    parameters = {parameter.name.casefold() for one in lambdas for parameter in one.expressions}
    for alias in notes(argument).aliases:
        if alias.name.casefold() in parameters or _is_of_body([alias], None, scope):
            raise CapturedNameError(
                f'DuckDB takes the argument "{alias.name}" for a name in the body; write its expression.'
            )
    for column in list(argument.find_all(exp.Column)):
        noted = notes(column)
        if noted.argument is None or noted.relation is None:
            continue
        parts = _names(noted.argument)
        name = parts[-1]
        if _is_of_body(parts, noted.relation, scope):
            if argument.find(exp.Query) is not None:
                shown = ".".join(part.name for part in parts)
                raise CapturedNameError(
                    f'The body has a column "{shown}" of its own; give the one in the argument another name.'
                )
            yield column, noted.argument.copy()
        elif noted.is_bare and _is_of_body([name], noted.relation, scope):
            qualified = f"{noted.relation.name}.{name.name}"
            raise CapturedNameError(
                f'DuckDB takes the argument "{name.name}" for the column of a table in the body; write {qualified}.'
            )


def _is_of_body(parts: list[exp.Identifier], own: Relation | None, scope: Scope) -> bool:
    for level in scope.around():
        if any(relation is own for relation in level.relations):
            return False
        if any(_has(relation, [part.name for part in parts]) for relation in level.relations):
            return True
    return False


def _has(relation: Relation, names: list[str]) -> bool:
    """Returns whether a table has a column of that name, or a field of a struct."""
    if len(names) > 1 and relation.matches(names[:1]):
        return relation.find(names[1]) is not None
    column = relation.find(names[0])
    if column is None or len(names) == 1 or column.type is None:
        return column is not None and len(names) == 1
    return any(name.casefold() == names[1].casefold() for name, _ in column.type.children)


def _names(column: exp.Column) -> list[exp.Identifier]:
    return [part for part in column.parts if isinstance(part, exp.Identifier)]


def _is_around(relation: Relation, scope: Scope) -> bool:
    return any(relation is one for level in scope.around() for one in level.relations)
