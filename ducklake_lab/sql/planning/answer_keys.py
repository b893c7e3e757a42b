"""Columns of an answer that tell its rows apart, as far as the query's text says so."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.sql.bind.group_and_order import has_aggregate
from ducklake_lab.sql.operations import Query


@dataclass(frozen=True, slots=True)
class KeyHints:
    """Output columns that may tell the rows of an answer apart, by position.

    GROUPING SETS, for example, give several rows for one key: hints are to be checked.

    Attributes:
        grouped: those by which the query groups; () where it does not, or hides one of them.
        computed: those with aggregates and windows, which say something about a row and do not name it.
    """

    grouped: tuple[int, ...] = ()
    computed: frozenset[int] = frozenset()


def key_hints(query: Query) -> KeyHints:
    """Returns what the text of a query says about keys of its rows; nothing where it selects stars."""
    node = query.tree.unnest() if isinstance(query.tree, exp.Subquery) else query.tree
    if not isinstance(node, exp.Select):
        return KeyHints()
    outputs = node.expressions
    if any(item.find(exp.Star) for item in outputs if not has_aggregate(item)):
        return KeyHints()
    computed = frozenset(i for i, item in enumerate(outputs) if has_aggregate(item))
    group = node.args.get("group")
    return KeyHints(_grouped(group, outputs, computed) if group is not None else (), computed)


def _grouped(group: exp.Expr, outputs: list[exp.Expr], computed: frozenset[int]) -> tuple[int, ...]:
    keys = group.expressions
    if group.args.get("all") or any(isinstance(key, exp.Var) and key.name.upper() == "ALL" for key in keys):
        return tuple(i for i in range(len(outputs)) if i not in computed)
    places = [_place(key, outputs) for key in keys]
    known = [place for place in places if place is not None]
    return tuple(dict.fromkeys(known)) if len(known) == len(places) else ()


def _place(key: exp.Expr, outputs: list[exp.Expr]) -> int | None:
    """Returns the position of the output column that a key of GROUP BY is."""
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal():
        place = int(key.name) - 1
        return place if 0 <= place < len(outputs) else None
    for i, item in enumerate(outputs):
        if item.unalias() == key:
            return i
        named = item.alias_or_name.casefold()
        if isinstance(key, exp.Column) and key.name.casefold() in (named, _name(item)):
            return i
    return None


def _name(item: exp.Expr) -> str:
    inner = item.unalias()
    return inner.name.casefold() if isinstance(inner, exp.Column) else ""
