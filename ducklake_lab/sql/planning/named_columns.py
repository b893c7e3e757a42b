"""Finds the names of columns in a planned query, where no other column of its tables can matter."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.sql.parse.parser import parse_query
from ducklake_lab.sql.plan import QueryPlan

#: Nodes that read columns by their written names alone. Others, such as PIVOT, may read all.
_PLAIN = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Identifier, exp.Column, exp.Alias, exp.Subquery, exp.With,
    exp.CTE, exp.Join, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
    exp.Distinct, exp.SetOperation, exp.Anonymous, exp.Filter, exp.Window, exp.WindowSpec, exp.Literal, exp.Null,
    exp.Boolean, exp.Interval, exp.IntervalSpan, exp.Var, exp.DataType, exp.DataTypeParam, exp.Cast, exp.Case, exp.If,
    exp.Paren, exp.Tuple, exp.Array, exp.Dot, exp.Bracket, exp.Slice, exp.In, exp.Between, exp.Is, exp.Not, exp.And,
    exp.Or, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT,
    exp.GTE, exp.Like, exp.ILike, exp.DPipe, exp.Exists, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip


#: Characters of the longest text that is looked at.
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Names in a query, folded.

    Attributes:
        names: all names; a column of a table with another name is not read.
        references: those that mean, or qualify, a column: a new column of such a name may change the meaning.
    """

    names: frozenset[str]
    references: frozenset[str]


def named_columns(plan: QueryPlan) -> NamedColumns | None:
    """Returns the names in the text that DuckDB runs; None where columns without a name in it may be read, as by `*`."""
    if not plan.bound or not plan.is_as_written or plan.macros or len(plan.duckdb_sql) > _LONGEST:
        return None
    try:
        tree = parse_query(plan.duckdb_sql).tree
    except DuckLakeError:
        return None
    relations: set[str] = set()
    names: set[str] = set()
    references: set[str] = set()
    for node in tree.walk():
        if isinstance(node, exp.Star):
            if not _is_count(node.parent):
                return None
        elif not isinstance(node, _PLAIN) or _is_call(node, "columns"):
            return None
        elif isinstance(node, exp.TableAlias) and node.columns:
            return None  # they rename columns by their places
        elif isinstance(node, exp.Join):
            if (node.args.get("method") or "").upper() == "NATURAL":
                return None
            references.update(name.name.casefold() for name in node.args.get("using") or ())
        elif isinstance(node, exp.Identifier):
            names.add(node.name.casefold())
        elif isinstance(node, exp.Column):
            references.update(part.name.casefold() for part in node.parts)
        if isinstance(node, exp.Table | exp.Subquery | exp.CTE):
            relations.add(node.alias_or_name.casefold())
    if any(len(c.parts) == 1 and c.name.casefold() in relations for c in tree.find_all(exp.Column)):
        return None  # the name of a table may mean its whole rows
    return NamedColumns(frozenset(names), frozenset(references))


def _is_count(node: exp.Expr | None) -> bool:
    return node is not None and _is_call(node, "count") and len(node.expressions) == 1


def _is_call(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.casefold() == name
