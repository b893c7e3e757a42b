"""Writes the query for the keys of a result that changes of its sources affect, and the query for the rows of keys.

The rules are those of bags. A row of a join is in the one of two results and not in the other only if one of its parts
changed, and the other parts are in that state: each changed source is joined with the others in both states. Outer joins
have a second query for the rows that are padded with NULL. Rows of GROUP BY, DISTINCT and windows depend on the rows with
their keys alone. A key too many costs time, a missing one would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.sql.bind.printing import duckdb_sql
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.refresh.blocks import (
    Block,
    NotProven,
    bare,
    block_of,
    check_repeats,
    names_of,
    tables_in,
)
from ducklake_lab.sql.refresh.items import (
    items_of,
    name_of,
    names_in,
    names_in_using,
    place_in,
    places_used,
    used_by,
)

#: Ends of the names of a table in its states, and of its changed rows, until the text of a query is made.
OLD, NEW, DELTA = "__old", "__new", "__delta"


@dataclass(frozen=True, slots=True)
class SourceTexts:
    """SQL of a table in FROM, without an alias.

    Attributes:
        changed: rows that changed, old and new ones; None where no row changed.
    """

    new: str
    old: str
    changed: str | None


@dataclass(frozen=True, slots=True)
class RefreshQueries:
    """Queries that refresh a result.

    Attributes:
        keys: the positions of the columns by which rows are replaced.
        affected: returns the values of these columns, k0, k1, …, whose rows may have changed.
        rows: returns the query for the rows of some keys, given the SQL of a table of keys, and whether a key has NULLs.
    """

    keys: tuple[int, ...]
    affected: str
    rows: Callable[[str, Sequence[bool]], str]


def refresh_queries(
    tree: exp.Expr, texts: dict[str, SourceTexts], types: Sequence[str], eligible: Collection[int]
) -> RefreshQueries:
    """Returns the queries that refresh the result of a prepared query.

    Args:
        texts: tables of the query, by the names that the tree has for them.
        types: DuckDB's types of the result's columns.
        eligible: positions of columns whose equal values are the same.

    Raises:
        NotProven: no rule says which rows a change affects.
    """
    return _Refresh(tree, texts, types).queries(eligible)


class _Refresh:
    def __init__(self, tree: exp.Expr, texts: dict[str, SourceTexts], types: Sequence[str]) -> None:
        self._tree, self._texts, self._types = tree, texts, types
        self._changed = frozenset(name for name, text in texts.items() if text.changed is not None)
        self._blocks: dict[int, Block] = {}
        taken = {name.name.casefold() for name in tree.find_all(exp.Identifier)}
        self._open_choice = NotProven("a choice among rows that is left open")
        self._keys, self._affected = (_free(name, taken) for name in ("keys", "affected"))

    def queries(self, eligible: Collection[int]) -> RefreshQueries:
        possible = [place for place in self._key_places(self._tree) if place in eligible]
        direct = [place for place in possible if self._is_direct(self._tree, place)]
        if not possible:
            raise NotProven("no column that says which of its rows a change affects")
        places = self._of_choices(self._tree, direct or possible)
        if not places:
            raise self._open_choice
        parts = self._changes(self._tree, places)
        if not parts:
            raise AssertionError("no source changed")
        shown = ", ".join(f"CAST(c{i} AS {self._types[place]}) AS k{i}" for i, place in enumerate(places))
        union = " UNION ALL ".join(self._text(_operand(part)) for part in parts)
        names = ", ".join(f"c{i}" for i in range(len(places)))
        affected = f"SELECT DISTINCT {shown} FROM ({union}) AS changes({names})"

        def rows(keys: str, nullable: Sequence[bool]) -> str:
            query = self._restricted(self._tree, places, nullable, cast=False)
            return self._text(query).replace(quote_identifier(self._keys), keys)

        return RefreshQueries(tuple(places), affected, rows)

    # Keys

    def _block(self, select: exp.Select) -> Block:
        found = self._blocks.get(id(select))
        if found is None:
            found = self._blocks[id(select)] = block_of(select)
        return found

    def _key_places(self, query: exp.Expr) -> list[int]:
        """Returns the columns of a result by which its rows can be restricted."""
        query = bare(query)
        if isinstance(query, exp.SetOperation):
            right = self._key_places(query.expression)
            return [place for place in self._key_places(query.this) if place in right]
        assert isinstance(query, exp.Select)
        keys = self._block(query).keys
        return [i for i, item in enumerate(query.expressions) if item.unalias() in keys]

    def _is_direct(self, query: exp.Expr, place: int) -> bool:
        """Returns whether the changes of a column follow from the changed rows of tables alone."""
        query = bare(query)
        if isinstance(query, exp.SetOperation):
            return self._is_direct(query.this, place) and self._is_direct(query.expression, place)
        assert isinstance(query, exp.Select)
        value = query.expressions[place].unalias()
        if value not in self._block(query).keys:
            return False
        items = {name_of(item): item for item in items_of(query)}
        for part in value.find_all(exp.Column):
            item = items.get(part.table)
            if isinstance(item, exp.Subquery):
                spot = place_in(item, part.name)
                if spot is None or not self._is_direct(item.this, spot):
                    return False
        return True

    def _of_choices(self, query: exp.Expr, places: Sequence[int]) -> list[int]:
        """Returns the columns that are equal in all rows which one open choice among rows decides; these go together."""
        query = bare(query)
        if isinstance(query, exp.SetOperation):
            right = self._of_choices(query.expression, places)
            return [place for place in self._of_choices(query.this, places) if place in right]
        assert isinstance(query, exp.Select)
        block, values = self._block(query), [item.unalias() for item in query.expressions]
        kept = list(places)
        try:
            check_repeats(query, values, block.keys, digits=False)
        except NotProven as reason:
            self._open_choice = reason
            kept = [place for place in kept if values[place] in block.keys]
        used, using = used_by(query, block, values)
        for item in items_of(query):
            if not isinstance(item, exp.Subquery):
                continue
            try:
                self._check_repeats(item.this, places_used(item, used, using), digits=False)
            except NotProven as reason:
                self._open_choice = reason
                inner = self._of_choices(item.this, places_used(item, used, using))
                own = name_of(item)
                kept = [
                    place
                    for place in kept
                    if all(
                        c.table == own and place_in(item, c.name) in inner for c in values[place].find_all(exp.Column)
                    )
                ]
        return kept

    # Changes

    def _reads_changed(self, node: exp.Expr) -> bool:
        return any(table.name in self._changed for table in tables_in(node))

    def _changes(self, query: exp.Expr, places: Sequence[int]) -> list[exp.Expr]:
        """Returns queries for some columns of all rows that are in only one of both results, and perhaps of others."""
        query = bare(query)
        if not self._reads_changed(query):
            return []
        if isinstance(query, exp.SetOperation):
            return [*self._changes(query.this, places), *self._changes(query.expression, places)]
        assert isinstance(query, exp.Select)
        block = self._block(query)
        wanted = [query.expressions[place].unalias() for place in places]
        if all(value in block.keys for value in wanted):
            return self._branches(query, wanted)
        self._check_repeats(query, places)
        keys = self._branches(query, block.keys) if block.keys else None
        if keys == []:
            return []
        images: list[exp.Expr] = []
        for version in (OLD, NEW):
            image = self._version(query, version)
            image.set("expressions", [alias(value.copy(), f"c{i}") for i, value in enumerate(wanted)])
            if image.args.get("distinct") is not None and image.args["distinct"].args.get("on") is None:
                image.set("distinct", None)
            if keys is not None:
                table = exp.Subquery(
                    this=_union([key.copy() for key in keys]), alias=exp.TableAlias(this=quoted(self._affected))
                )
                condition = [
                    exp.NullSafeEQ(this=_wrapped(key.copy()), expression=column(self._affected, f"c{i}"))
                    for i, key in enumerate(block.keys)
                ]
                image.append("joins", exp.Join(this=table, kind="SEMI", on=_and(condition)))
            images.append(image)
        return images

    def _branches(self, select: exp.Select, wanted: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Returns queries for expressions over the changed rows of FROM."""
        items = items_of(select)
        found: list[exp.Expr] = []
        for i, item in enumerate(items):
            if not self._reads_changed(item):
                continue
            others = any(self._reads_changed(other) for j, other in enumerate(items) if j != i)
            for version in (OLD, NEW) if others else (NEW,):
                found += self._branch(select, i, version, wanted)
        return found

    def _branch(self, select: exp.Select, spot: int, version: str, wanted: Sequence[exp.Expr]) -> list[exp.Expr]:
        items, joins = items_of(select), select.args.get("joins") or []
        where = select.args.get("where")
        conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
        used = [*wanted, *conditions, *([where.this] if where is not None else [])]
        using = names_in_using(joins)
        self._check_sources([item for j, item in enumerate(items) if j != spot], used, using)
        placed = [
            self._delta(item, used, using) if j == spot else self._version(item, version)
            for j, item in enumerate(items)
        ]
        variants: list[tuple[list[exp.Expr], frozenset[str]]] = [([], frozenset())]
        for j, join in enumerate(joins, 1):
            grown: list[tuple[list[exp.Expr], frozenset[str]]] = []
            left, right = {name_of(item) for item in items[:j]}, {name_of(items[j])}
            main, padded = _kinds(join, is_left=spot < j, is_right=spot == j)
            for before, nulls in variants:
                grown.append(([*before, _joined(join, placed[j], main, nulls)], nulls))
                if padded:
                    inner = _joined(join, placed[j], ("", ""), nulls)
                    grown.append(([*before, inner], nulls | (left if spot < j else right)))
            variants = grown
        queries: list[exp.Expr] = []
        for built, nulls in variants:
            shown = [alias(_with_nulls(value, nulls), f"c{i}") for i, value in enumerate(wanted)]
            query = exp.Select(expressions=shown)
            query.set("from_", exp.From(this=placed[0].copy()))
            query.set("joins", [join.copy() for join in built])
            if where is not None:
                query.set("where", exp.Where(this=_with_nulls(where.this, nulls)))
            queries.append(query)
        return queries

    def _delta(self, item: exp.Expr, used: Iterable[exp.Expr], using: Collection[str]) -> exp.Expr:
        """Returns the changed rows of an item of FROM under its name."""
        if isinstance(item, exp.Table):
            return self._version(item, DELTA)
        assert isinstance(item, exp.Subquery)
        own, names = name_of(item), names_in(item)
        places = places_used(item, used, using) or [0]
        changes = self._changes(item.this, places)
        if not changes:
            raise NotProven("a part of which no change is known")
        columns = [quoted(names[place]) for place in places]
        return exp.Subquery(this=_union(changes), alias=exp.TableAlias(this=quoted(own), columns=columns))

    def _check_repeats(self, query: exp.Expr, places: Sequence[int], *, digits: bool = True) -> None:
        """Refuses columns of a query that a second computation over the same rows may give otherwise.

        Args:
            digits: whether last digits matter.

        Raises:
            NotProven: there is such a column, or rows depend on one.
        """
        query = bare(query)
        if isinstance(query, exp.SetOperation):
            every = isinstance(query, exp.Union)
            for side in (query.this, query.expression):
                self._check_repeats(side, places if every else range(len(names_of(side))), digits=digits)
            return
        assert isinstance(query, exp.Select)
        block = self._block(query)
        wanted = [query.expressions[place].unalias() for place in places]
        check_repeats(query, wanted, block.keys, digits=digits)
        self._check_sources(items_of(query), *used_by(query, block, wanted), digits=digits)

    def _check_sources(
        self, items: Sequence[exp.Expr], used: Sequence[exp.Expr], using: Collection[str], *, digits: bool = True
    ) -> None:
        """Refuses items of FROM whose used columns a second computation may give otherwise."""
        for item in items:
            if isinstance(item, exp.Subquery):
                self._check_repeats(item.this, places_used(item, used, using), digits=digits)

    def _version(self, node: exp.Expr, version: str) -> exp.Expr:
        """Returns a copy that reads all tables in one state."""
        node = node.copy()
        for table in list(tables_in(node)):
            if table.name in self._texts:
                table.set("this", quoted(table.name + version))
        return node

    # Rows of keys

    def _restricted(self, query: exp.Expr, places: Sequence[int], nullable: Sequence[bool], *, cast: bool) -> exp.Expr:
        query = bare(query)
        if isinstance(query, exp.SetOperation):
            sides = [self._restricted(side, places, nullable, cast=True) for side in (query.this, query.expression)]
            whole = query.copy()
            for name, side in zip(("this", "expression"), sides, strict=True):
                whole.set(name, exp.Subquery(this=side))
            return whole
        assert isinstance(query, exp.Select)
        values = [query.expressions[place].unalias() for place in places]
        conditions: list[exp.Expr] = []
        for i, (place, value, may_be_null) in enumerate(zip(places, values, nullable, strict=True)):
            own: exp.Expr = value.copy()
            kind = kind_of(value) if cast else None
            if cast and (kind is None or kind.sql() != self._types[place]):
                own = exp.Cast(this=own, to=exp.DataType.build(self._types[place], dialect="duckdb"))
            key = column(self._keys, f"k{i}")
            same = exp.NullSafeEQ if may_be_null else exp.EQ
            conditions.append(same(this=_wrapped(own), expression=key))
        found = self._version(query, NEW)
        table = exp.Table(this=quoted(self._keys), alias=exp.TableAlias(this=quoted(self._keys)))
        found.append("joins", exp.Join(this=table, kind="SEMI", on=_and(conditions)))
        return found

    # Text

    def _text(self, query: exp.Expr) -> str:
        return put_texts(duckdb_sql(query), self._texts)


def put_texts(text: str, texts: Mapping[str, SourceTexts]) -> str:
    """Returns the text of a query with the SQL of its tables."""
    places = {
        quote_identifier(view + version): replacement
        for view, source in texts.items()
        for version, replacement in ((OLD, source.old), (NEW, source.new), (DELTA, source.changed))
        if replacement is not None
    }
    return re.sub("|".join(map(re.escape, places)), lambda match: places[match[0]], text)


def _free(name: str, taken: Collection[str]) -> str:
    """Returns a name that a query has nowhere."""
    name = f"__ducklake_{name}"
    while name in taken:
        name += "_"
    return name


def _kinds(join: exp.Join, *, is_left: bool, is_right: bool) -> tuple[tuple[str, str], bool]:
    """Returns the side and kind of a join whose changed side is joined, and whether rows padded with NULL follow."""
    side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    if is_left and side == "RIGHT":
        return ("", ""), True
    if is_left and side == "FULL":
        return ("LEFT", ""), True
    if is_right and side == "LEFT":
        return ("", ""), True
    if is_right and side == "FULL":
        return ("RIGHT", ""), True
    if is_right and kind in ("SEMI", "ANTI"):
        return ("", ""), False
    return (side, kind), False


def _joined(join: exp.Join, item: exp.Expr, kind: tuple[str, str], nulls: frozenset[str]) -> exp.Expr:
    joined = exp.Join(this=item.copy(), side=kind[0] or None, kind=kind[1] or None)
    if join.args.get("on") is not None:
        joined.set("on", _with_nulls(join.args["on"], nulls))
    if join.args.get("using"):
        if nulls:
            raise NotProven("USING after an outer join")
        joined.set("using", [name.copy() for name in join.args["using"]])
    if not any(joined.args.get(part) for part in ("on", "using", "kind")):
        joined.set("kind", "CROSS")
    return joined


def _with_nulls(node: exp.Expr, nulls: frozenset[str]) -> exp.Expr:
    """Returns a copy in which the columns of some items are NULL, in their types."""
    if not nulls:
        return node.copy()

    def padded(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and part.table in nulls:
            return exp.Case(ifs=[exp.If(this=exp.false(), true=part.copy())])
        return part

    return node.copy().transform(padded)


def _union(queries: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(
        lambda left, right: exp.Union(this=left, expression=right, distinct=False),
        [_operand(query) for query in queries],
    )


def _operand(query: exp.Expr) -> exp.Expr:
    """Returns a query as one side of UNION ALL: in parentheses, if it has clauses that would follow the whole."""
    is_plain = isinstance(query, exp.Select) and not any(map(query.args.get, ("with_", "order", "limit", "offset")))
    return query if is_plain else exp.Subquery(this=query)


def _and(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(lambda left, right: exp.And(this=left, expression=right), conditions)


def _wrapped(value: exp.Expr) -> exp.Expr:
    return value if isinstance(value, exp.Column | exp.Cast) else exp.Paren(this=value)


def alias(value: exp.Expr, name: str) -> exp.Expr:
    """Returns an expression under a name."""
    return exp.Alias(this=value, alias=quoted(name))


def column(table: str, name: str) -> exp.Expr:
    """Returns a column of a table."""
    return exp.column(quoted(name), table=quoted(table))


def quoted(name: str) -> exp.Identifier:
    """Returns a name in quotes."""
    return exp.to_identifier(name, quoted=True)
