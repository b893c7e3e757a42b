"""Writes the query for what changed rows add to the counts and sums of groups, where that is exact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.sql.bind.printing import duckdb_sql
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.refresh.affected import SourceTexts, alias, put_texts
from ducklake_lab.sql.refresh.blocks import NotProven, bare, block_of
from ducklake_lab.sql.refresh.items import items_of
from ducklake_lab.sql.refresh.signed import terms

#: Expressions that are NULL only where a part is.
_STRICT = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren)


@dataclass(frozen=True, slots=True)
class Sums:
    """A query for changes of groups: their keys k0, k1, …, then the change of each output as v0, v1, …

    Attributes:
        query: the query.
        keys: positions of the outputs that are keys, in the order of the keys.
        rows: the position of count(*).
        counts: positions of other counts.
        sums: the positions of sums, each with the position of the count of its values, which is `rows` where none is NULL.
        strict: columns, as the view of the source and the name, that must hold no NULL in either state.
    """

    query: str
    keys: tuple[int, ...]
    rows: int
    counts: tuple[int, ...]
    sums: dict[int, int]
    strict: frozenset[tuple[str, str]]


def sum_query(tree: exp.Expr, texts: dict[str, SourceTexts], types: Sequence[str], eligible: Collection[int]) -> Sums:
    """Returns the query for the changes of the groups of a prepared query.

    Args:
        texts: tables of the query, by the names that the tree has for them; `changed` has the column SIGN.
        types: DuckDB's types of the result's columns.
        eligible: positions of columns whose equal values are the same.

    Raises:
        NotProven: the query is no such sum.
    """
    select = bare(tree)
    if not isinstance(select, exp.Select) or any(select.args.get(part) for part in ("having", "qualify", "distinct")):
        raise NotProven("no plain groups")
    group, block = select.args.get("group"), block_of(select)
    if group is None or tuple(dict.fromkeys(group.expressions)) != block.keys:
        raise NotProven("no plain groups")
    outputs = [item.unalias() for item in select.expressions]
    keys = [outputs.index(key) for key in block.keys if key in outputs]
    if len(keys) != len(block.keys) or not keys:
        raise NotProven("a key of its groups that its result lacks")
    if not set(keys) <= set(eligible):
        raise NotProven("a key whose equal values may differ")
    values = {i: _counted(value, types[i]) for i, value in enumerate(outputs) if value not in block.keys}
    rows = next((i for i, (kind, _) in values.items() if kind == "rows"), None)
    if rows is None:
        raise NotProven("no count(*), which says when a group ends")
    counts = {value: i for i, (kind, value) in values.items() if kind == "count" and value is not None}
    views = {item.alias_or_name: item.name for item in items_of(select)}
    strict: set[tuple[str, str]] = set()
    sums: dict[int, int] = {}
    for i, (kind, value) in values.items():
        if kind == "sum" and value is not None:
            sums[i] = counts.get(value, rows)
            strict |= set() if value in counts else _strict(value, views)
    parts = terms(select, texts, lambda sign: _shown(block.keys, values, sign))
    shown = [f"k{i}" for i in range(len(keys))]
    changes = [f"sum(v{i}) AS v{i}" for i in values]
    union = " UNION ALL ".join(put_texts(duckdb_sql(part), texts) for part in parts)
    query = f"SELECT {', '.join([*shown, *changes])} FROM ({union}) AS changes GROUP BY {', '.join(shown)}"
    return Sums(query, tuple(keys), rows, tuple(counts.values()), sums, frozenset(strict))


def _counted(value: exp.Expr, kind: str) -> tuple[str, exp.Expr | None]:
    """Returns the kind of an output that is a count or a sum, and its argument.

    Raises:
        NotProven: it is neither, or its sum may be rounded.
    """
    is_cast = isinstance(value, exp.Cast) and not isinstance(value, exp.TryCast) and kind == "BIGINT"
    call = value.this if is_cast else value
    name = call.name.casefold() if isinstance(call, exp.Anonymous) else ""
    arguments = call.expressions if isinstance(call, exp.Anonymous) else []
    starred = not arguments or (len(arguments) == 1 and isinstance(arguments[0], exp.Star))
    if name in ("count", "count_star") and starred and kind == "BIGINT":
        return "rows", None
    plain = len(arguments) == 1 and not isinstance(arguments[0], exp.Distinct | exp.Order | exp.Star)
    if plain and name == "count" and kind == "BIGINT":
        return "count", arguments[0]
    argument = kind_of(arguments[0]) if plain and name == "sum" else None
    if argument is not None and (
        (argument.name.startswith("decimal") and kind.startswith("DECIMAL") and call is value)
        or (argument.name in ("int8", "int16", "int32", "int64") and kind == "BIGINT")
    ):
        return "sum", arguments[0]
    raise NotProven("a value that is no exact sum")


def _strict(value: exp.Expr, views: dict[str, str]) -> set[tuple[str, str]]:
    """Returns the columns that an expression is NULL by, if one of them is.

    Raises:
        NotProven: it may be NULL for another reason.
    """
    if isinstance(value, exp.Column) and value.table in views:
        return {(views[value.table], value.name)}
    if isinstance(value, exp.Literal):
        return set()
    if isinstance(value, _STRICT):
        return {found for part in value.iter_expressions() for found in _strict(part, views)}
    raise NotProven("a sum of values that may be NULL, without their count")


def _shown(keys: Sequence[exp.Expr], values: dict[int, tuple[str, exp.Expr | None]], sign: exp.Expr) -> list[exp.Expr]:
    """Returns the keys of changed rows and their parts of counts and sums."""
    shown = [alias(key.copy(), f"k{i}") for i, key in enumerate(keys)]
    for i, (kind, argument) in values.items():
        part: exp.Expr = sign.copy()
        if argument is not None:
            given = exp.Paren(this=argument.copy())
            if kind == "count":
                none = exp.Is(this=given, expression=exp.Null())
                part = exp.Case(ifs=[exp.If(this=none, true=exp.Literal.number(0))], default=sign.copy())
            else:
                is_new = exp.GT(this=sign.copy(), expression=exp.Literal.number(0))
                part = exp.Case(ifs=[exp.If(this=is_new, true=given)], default=exp.Neg(this=given.copy()))
        shown.append(alias(part, f"v{i}"))
    return shown


def merged(sums: Sums, table: str, columns: Sequence[str], types: Sequence[str], changes: str) -> tuple[str, str]:
    """Returns the query for the new rows of changed groups, and one for the number of groups with less than no rows.

    Args:
        table: the SQL of the table of the result.
        columns: its quoted columns.
        changes: the SQL of the rows of `sums.query`.
    """
    same = " AND ".join(f"d.k{i} IS NOT DISTINCT FROM t.{columns[place]}" for i, place in enumerate(sums.keys))
    source = f"{changes} AS d LEFT JOIN {table} AS t ON {same}"

    def added(place: int) -> str:
        return f"(coalesce(t.{columns[place]}, 0) + coalesce(d.v{place}, 0))"

    shown = []
    for place in range(len(columns)):
        if place in sums.keys:
            value = f"d.k{sums.keys.index(place)}"
        elif place in sums.sums:
            value = f"CASE WHEN {added(sums.sums[place])} > 0 THEN {added(place)} END"
        else:
            value = added(place)
        shown.append(f"CAST({value} AS {types[place]}) AS {columns[place]}")
    left = added(sums.rows)
    return (
        f"SELECT {', '.join(shown)} FROM {source} WHERE {left} > 0",
        f"SELECT count(*) AS n FROM {source} WHERE {left} < 0",
    )
