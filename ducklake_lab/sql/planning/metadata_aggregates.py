"""Recognises queries that the catalog can answer: counts, minima and maxima of a whole table.

Such a query runs over a digest of the table: a few rows with the same minima and maxima. Each digest row has the
number of table rows that it represents. See scan/metadata_aggregates.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Relation, notes
from ducklake_lab.sql.plan import Digest, Source

#: Column of a digest with the row count; as a prefix, column with the count of a column's values.
ROWS = "_ducklake_rows"

#: Allowed parts of the SELECT.
_PARTS = ("kind", "expressions", "from_", "operation_modifiers")
#: Nodes allowed around an aggregate.
_PLAIN = (exp.Alias, exp.Paren, exp.Cast, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Boolean, exp.Null)
_LEAVES = (exp.Identifier, exp.DataType, exp.DataTypeParam)


def digest_of(tree: exp.Expr, sources: Sequence[Source]) -> Digest | None:
    """Returns the digest query of a bound query over one table; None if it needs the rows."""
    if len(sources) != 1 or sources[0].kind != "table" or sources[0].virtual or sources[0].is_shared:
        return None
    if not isinstance(tree, exp.Select):
        return None
    if any(value for part, value in tree.args.items() if part not in _PARTS):
        return None
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(source, exp.Table) or source.args.get("joins"):
        return None
    if any(isinstance(item.unalias(), exp.Column) for item in tree.expressions):
        return None
    columns: dict[str, None] = {}
    counted: dict[str, None] = {}
    copy = tree.copy()
    for item in copy.expressions:
        if not _rewrite(item, sources[0], columns, counted):
            return None
    if copy.find(exp.Anonymous) is None:
        return None
    text = copy.sql(dialect=DuckLakeSql, identify=True, normalize_functions=False, comments=False)
    return Digest(sources[0].view, text, tuple(columns), tuple(counted))


def _rewrite(node: exp.Expr, source: Source, columns: dict[str, None], counted: dict[str, None]) -> bool:
    """Replaces counts by sums of counts and notes the needed columns; returns False if rows are needed."""
    if isinstance(node, exp.Anonymous):
        name, args = node.name.casefold(), node.expressions
        if name == "count" and (not args or isinstance(args[0], exp.Star)):
            node.replace(_total(ROWS))
            return True
        column = args[0] if len(args) == 1 else None
        if name not in ("count", "min", "max") or not isinstance(column, exp.Column) or column.name in VIRTUAL_COLUMNS:
            return False
        relation = notes(column).relation
        if not isinstance(relation, Relation) or relation.source is not source:
            return False
        if name == "count":
            counted[column.name] = None
            node.replace(_total(ROWS + column.name))
        else:
            columns[column.name] = None
        return True
    if isinstance(node, _LEAVES):
        return True
    return isinstance(node, _PLAIN) and all(
        _rewrite(child, source, columns, counted) for child in list(node.iter_expressions())
    )


def _total(column: str) -> exp.Expr:
    total = exp.Anonymous(this="sum", expressions=[exp.column(exp.to_identifier(column, quoted=True))])
    or_zero = exp.Anonymous(this="coalesce", expressions=[total, exp.Literal.number(0)])
    return exp.Cast(this=or_zero, to=exp.DataType.build("BIGINT"))
