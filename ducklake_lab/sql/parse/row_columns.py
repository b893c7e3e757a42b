"""Names of columns in an expression on one row."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

#: A name of a column in an expression, and the folded parameters of the lambdas around it.
NamedColumn = tuple[exp.Expr, frozenset[str]]
#: Schemas of functions, which qualify them as a column does.
_OF_FUNCTIONS = frozenset(("main", "system", "pg_catalog"))


def columns_in(node: exp.Expr, parameters: frozenset[str] = frozenset()) -> Iterator[NamedColumn]:
    """Yields the names of columns in an expression on one row; of `s.field` and `c.function()` the first part.

    Args:
        parameters: of the lambdas around the expression, folded.
    """
    if isinstance(node, exp.Lambda):
        yield from columns_in(node.this, parameters | _names(node.expressions))
        return
    if isinstance(node, exp.Comprehension):
        yield from columns_in(node.args["iterator"], parameters)
        inner = parameters | _names([node.expression, node.args.get("position")])
        for part in (node.this, node.args.get("condition")):
            if part is not None:
                yield from columns_in(part, inner)
        return
    if isinstance(node, exp.Column):
        if node.parts[0].name.casefold() not in parameters:
            yield node.parts[0], parameters
        return
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier):
        if node.this.name.casefold() not in parameters | _OF_FUNCTIONS:
            yield node.this, parameters
    for child in node.iter_expressions():
        yield from columns_in(child, parameters)


def _names(parts: list[exp.Expr | None]) -> frozenset[str]:
    return frozenset(
        name.name.casefold() for part in parts if part is not None for name in part.find_all(exp.Identifier)
    )
