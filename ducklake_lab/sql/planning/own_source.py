"""Recognises queries of one function, such as `SELECT path FROM lake.cleanup_old_files() ORDER BY path`."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.sql.operations import Query

#: Parts of a SELECT that use all rows of its source.
_PARTS = frozenset(("kind", "expressions", "distinct", "from_", "group", "order", "operation_modifiers"))


def is_of_one_function(query: Query) -> bool:
    """Returns whether a query only calls a function and uses all of its rows: no WHERE, LIMIT, joins or subqueries."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or not tree.args.get("from_"):
        return False
    source = tree.args["from_"].this
    if not isinstance(source, exp.Table) or not isinstance(source.parts[-1], exp.Anonymous):
        return False
    if any(value for part, value in source.args.items() if part not in ("this", "db", "catalog", "alias")):
        return False
    if any(value for part, value in tree.args.items() if part not in _PARTS):
        return False
    around = (*tree.expressions, tree.args.get("group"), tree.args.get("order"), tree.args.get("distinct"))
    return not any(part.find(exp.Query) for part in around if isinstance(part, exp.Expr))
