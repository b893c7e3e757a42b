"""Rows that a grouped query makes one row of: the text of a query that gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.errors import SqlError
from ducklake_lab.sql.bind.group_and_order import has_aggregate
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.operations import Query
from ducklake_lab.sql.parse.parser import parse_query
from ducklake_lab.sql.planning.answer_keys import key_hints
from ducklake_lab.sql.planning.planner import as_text

#: Parts of a SELECT that say which rows it groups, and those that make rows of the groups.
_OF_ROWS = frozenset(("kind", "with_", "from_", "joins", "laterals", "where", "expressions", "operation_modifiers"))
_OF_GROUPS = frozenset(("group", "having", "order", "limit", "offset"))


@dataclass(frozen=True, slots=True)
class GroupRows:
    """A query whose rows stand for groups of rows.

    Attributes:
        keys: the expressions by which it groups, by the positions of their columns; none where all rows are one group.
        has_ids: its rows may have row ids: FROM is one name.
        query: the query.
    """

    keys: Mapping[int, str]
    has_ids: bool
    query: Query

    def text(self, groups: Sequence[Sequence[str]], *, ids: bool) -> str:
        """Returns a query for the rows of some groups.

        Args:
            groups: the values of the keys of each, as SQL.
            ids: with row ids, as the first column.
        """
        tree = parse_query(as_text(self.query)).tree.copy()
        for part in _OF_GROUPS:
            tree.set(part, None)
        listed = "rowid, *" if ids else "*"
        either = " OR ".join(f"({_equal(self.keys.values(), values)})" for values in groups)
        shape = parse_query(f"SELECT {listed} WHERE {either}" if self.keys else f"SELECT {listed}").tree
        tree.set("expressions", shape.args["expressions"])
        where, condition = tree.args.get("where"), shape.args.get("where")
        if where is not None and condition is not None:
            both = exp.And(this=exp.Paren(this=where.this), expression=exp.Paren(this=condition.this))
            condition = exp.Where(this=both)
        tree.set("where", condition or where)
        return tree.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)


def _equal(keys: Iterable[str], values: Iterable[str]) -> str:
    return " AND ".join(f"({key}) IS NOT DISTINCT FROM {value}" for key, value in zip(keys, values, strict=True))


def group_rows(query: Query) -> GroupRows | None:
    """Returns what a query groups; None where its text does not say which rows make one of its rows."""
    try:
        tree = parse_query(as_text(query)).tree
    except SqlError:
        return None
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return None
    if any(value for part, value in tree.args.items() if part not in _OF_ROWS | _OF_GROUPS):
        return None
    outputs, group = tree.expressions, tree.args.get("group")
    if tree.find(exp.TableSample) or any(item.find(exp.Window) for item in outputs):
        return None
    hints = key_hints(query)
    if group is None:
        if len(hints.computed) < len(outputs):
            return None
        places: Sequence[int] = ()
    else:
        if any(value for part, value in group.args.items() if part not in ("expressions", "all")):
            return None  # GROUPING SETS give one row of several groups
        if not hints.grouped:
            return None
        places = hints.grouped
    if any(has_aggregate(outputs[place]) for place in places):
        return None
    keys = {
        place: outputs[place].unalias().sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)
        for place in places
    }
    source = tree.args["from_"].this
    has_ids = isinstance(source, exp.Table) and not any(tree.args.get(part) for part in ("joins", "laterals", "with_"))
    return GroupRows(keys, has_ids and not source.args.get("joins"), query)
