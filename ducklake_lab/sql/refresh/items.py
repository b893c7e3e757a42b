"""Items of FROM in a prepared SELECT, and the columns of them that expressions name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlglot import exp

from ducklake_lab.sql.refresh.blocks import Block, NotProven, bare, names_of


def items_of(select: exp.Select) -> list[exp.Expr]:
    """Returns the items of FROM, tables and queries.

    Raises:
        NotProven: there is another one, such as a function.
    """
    items = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    for item in items:
        known = isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)
        if not known and not (isinstance(item, exp.Subquery) and isinstance(bare(item), exp.Query)):
            raise NotProven(f"{item.key} in FROM")
    return items


def name_of(item: exp.Expr) -> str:
    """Returns the name of an item."""
    return item.alias_or_name


def names_in(item: exp.Subquery) -> list[str]:
    """Returns the names that a query in FROM has for its columns."""
    names = names_of(item.this)
    named = item.args.get("alias")
    given = [one.name for one in named.columns] if named is not None else []
    return [*given, *names[len(given) :]]


def place_in(item: exp.Subquery, name: str) -> int | None:
    """Returns the position of a column of a query in FROM."""
    folded = name.casefold()
    return next((i for i, own in enumerate(names_in(item)) if own.casefold() == folded), None)


def places_used(item: exp.Subquery, used: Iterable[exp.Expr], using: Collection[str]) -> list[int]:
    """Returns the columns of a query in FROM that expressions or USING name."""
    own = name_of(item)
    wanted = {c.name.casefold() for part in used for c in part.find_all(exp.Column) if c.table in (own, "")}
    return [i for i, name in enumerate(names_in(item)) if name.casefold() in wanted or name.casefold() in using]


def used_by(select: exp.Select, block: Block, wanted: Sequence[exp.Expr]) -> tuple[list[exp.Expr], set[str]]:
    """Returns the expressions over FROM that some values depend on, and the names in USING."""
    clauses = [select.args[name].this for name in ("where", "having", "qualify") if select.args.get(name) is not None]
    joins = select.args.get("joins") or []
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    keys = () if block.by_row else block.keys
    windows = select.args.get("windows") or []
    return [*wanted, *keys, *clauses, *conditions, *windows], names_in_using(joins)


def names_in_using(joins: Iterable[exp.Join]) -> set[str]:
    """Returns the folded names in USING."""
    return {name.name.casefold() for join in joins for name in join.args.get("using") or []}
