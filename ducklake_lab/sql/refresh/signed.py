"""Writes queries for changed rows with a sign, where each row that a result gains or loses is known.

The rows of an inner join are a product: its change is the sum, over the changed sources, of the rows that each of them
gained less those that it lost, joined with the sources before it as they are and with those after it as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.sql.bind.printing import duckdb_sql
from ducklake_lab.sql.refresh.affected import DELTA, NEW, OLD, SourceTexts, alias, column, put_texts, quoted
from ducklake_lab.sql.refresh.blocks import NotProven, bare, block_of
from ducklake_lab.sql.refresh.items import items_of

#: Column of changed rows: 1 for a new one, -1 for an old one.
SIGN = "_ducklake_sign"


@dataclass(frozen=True, slots=True)
class SignedRows:
    """A query for the rows that a result gains and loses: k0, k1, …, and `n`, by how many there are more or less of each."""

    query: str


def signed_rows(tree: exp.Expr, texts: Mapping[str, SourceTexts], types: Sequence[str]) -> SignedRows:
    """Returns the query for the rows that the result of a prepared query gains and loses.

    Args:
        texts: tables of the query, by the names that the tree has for them; `changed` has the column SIGN.
        types: DuckDB's types of the result's columns, all of such types that equal values are the same.

    Raises:
        NotProven: the query has rows that are no rows of its sources, or of their inner joins.
    """
    parts = [put_texts(duckdb_sql(part), texts) for part in _parts(tree, texts, len(types))]
    names = [f"k{i}" for i in range(len(types))]
    shown = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in zip(names, types, strict=True))
    union = f"SELECT {shown}, sign FROM ({' UNION ALL '.join(parts)}) AS terms"
    keys = ", ".join(names)
    return SignedRows(
        f"SELECT {keys}, CAST(sum(sign) AS BIGINT) AS n FROM ({union}) AS changes GROUP BY {keys} HAVING sum(sign) <> 0"
    )


def _parts(tree: exp.Expr, texts: Mapping[str, SourceTexts], width: int) -> list[exp.Expr]:
    query = bare(tree)
    if isinstance(query, exp.Union) and not query.args.get("distinct"):
        return [*_parts(query.this, texts, width), *_parts(query.expression, texts, width)]
    if not isinstance(query, exp.Select) or query.args.get("distinct") is not None or not block_of(query).by_row:
        raise NotProven("no plain rows")
    values = [item.unalias() for item in query.expressions]

    def shown(sign: exp.Expr) -> list[exp.Expr]:
        return [*(alias(value.copy(), f"k{i}") for i, value in enumerate(values)), alias(sign.copy(), "sign")]

    return terms(query, texts, shown)


def terms(
    select: exp.Select, texts: Mapping[str, SourceTexts], shown: Callable[[exp.Expr], list[exp.Expr]]
) -> list[exp.Expr]:
    """Returns a query for each changed source of a SELECT: what its changed rows add to the rows of FROM and WHERE.

    Args:
        shown: returns the columns of the queries, given the sign of a row.

    Raises:
        NotProven: FROM has other items than tables, or other joins than inner ones.
    """
    items, joins = items_of(select), select.args.get("joins") or []
    plain = all(isinstance(item, exp.Table) and item.name in texts for item in items)
    if not plain or any(join.args.get("side") or (join.args.get("kind") or "") not in _INNER for join in joins):
        raise NotProven("another join than of tables with matches")
    changed = [texts[item.name].changed is not None for item in items]
    queries: list[exp.Expr] = []
    for spot, is_changed in enumerate(changed):
        if not is_changed:
            continue
        placed = []
        for j, item in enumerate(items):
            version = DELTA if j == spot else OLD if j > spot and changed[j] else NEW
            table = item.copy()
            table.set("this", quoted(table.name + version))
            placed.append(table)
        query = exp.Select(expressions=shown(column(items[spot].alias_or_name, SIGN)))
        query.set("from_", exp.From(this=placed[0]))
        copies = [join.copy() for join in joins]
        for join, table in zip(copies, placed[1:], strict=True):
            join.set("this", table)
        query.set("joins", copies)
        where = select.args.get("where")
        if where is not None:
            query.set("where", where.copy())
        queries.append(query)
    return queries


_INNER = ("", "INNER", "CROSS")


def merged_rows(table: str, columns: Sequence[str], changes: str, numbers: str) -> tuple[str, str]:
    """Returns the query for the rows that a table is to have of those that change, and one for the extremes of their counts.

    Args:
        table: the SQL of the table of the result.
        columns: its quoted columns.
        changes: the SQL of the rows of `SignedRows.query`.
        numbers: the SQL of a table with the numbers `i` from 1 to the largest count.
    """
    same = " AND ".join(f"d.k{i} IS NOT DISTINCT FROM t.{name}" for i, name in enumerate(columns))
    listed = ", ".join(f"t.{name}" for name in columns)
    named = ", ".join(f"k{i}" for i in range(len(columns)))
    own = f"SELECT {listed}, count(*) FROM {table} AS t SEMI JOIN {changes} AS d ON {same} GROUP BY {listed}"
    both = " AND ".join(f"d.k{i} IS NOT DISTINCT FROM t.k{i}" for i in range(len(columns)))
    kept = ", ".join(f"d.k{i} AS k{i}" for i in range(len(columns)))
    counted = (
        f"SELECT {kept}, coalesce(t.own, 0) + d.n AS total FROM {changes} AS d "
        f"LEFT JOIN ({own}) AS t({named}, own) ON {both}"
    )
    return (
        f"SELECT {_renamed(columns)} FROM ({counted}) AS d JOIN {numbers} AS numbers ON numbers.i <= d.total",
        f"SELECT min(total) AS least, max(total) AS most FROM ({counted}) AS d",
    )


def added_rows(columns: Sequence[str], changes: str, numbers: str) -> str:
    """Returns the query for new rows, where there are no others; arguments are as in `merged_rows`."""
    return f"SELECT {_renamed(columns)} FROM {changes} AS d JOIN {numbers} AS numbers ON numbers.i <= d.n"


def _renamed(columns: Sequence[str]) -> str:
    return ", ".join(f"d.k{i} AS {name}" for i, name in enumerate(columns))
