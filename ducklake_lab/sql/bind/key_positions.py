"""Positions in the SELECT list that keys of GROUP BY, DISTINCT ON and ORDER BY name: integers, and columns of set operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ducklake_lab.errors import BindError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.binding import Binding
from ducklake_lab.sql.bind.star_expansion import has_star
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.notes import Outputs, notes
from ducklake_lab.sql.types import to_sqlglot

#: Nodes that are literals to DuckDB; `true` and `DATE '…'` are casts.
_LITERALS = (exp.Literal, exp.Null, exp.ByteString, exp.RawString)


def read_places(binder: Binding, node: exp.Select, keys: Sequence[exp.Expr], clause: str) -> list[exp.Expr]:
    """Reads integers among keys as positions in the SELECT list, whose stars are expanded; returns the keys that order."""
    width = None if any(has_star(item) for item in node.expressions) else len(node.expressions)
    return [read for key in keys if (read := read_place(binder, key, width, clause)) is not None]


def read_place(binder: Binding, key: exp.Expr, width: int | None, clause: str) -> exp.Expr | None:
    """Reads an integer as a position, and returns the key; afterwards each key that is a bare literal is one.

    Other literals are values of GROUP BY, and None elsewhere if a setting allows them. Only literals count: `1 + 1` is
    a value too.

    Raises:
        BindError: the SELECT list has no such position, or ORDER BY or DISTINCT ON has another literal.
    """
    bare = key.unnest()
    literal = bare.this.unnest() if isinstance(bare, exp.Neg | exp.Collate) else bare
    is_number = isinstance(literal, exp.Literal) and not literal.is_string
    if not isinstance(literal, _LITERALS) or (literal is not bare and is_number != isinstance(bare, exp.Neg)):
        return key
    shown = f"{clause} {bare.sql(dialect='duckdb')}"
    read: exp.Expr = key
    if not literal.is_int:
        if clause != "GROUP BY":
            if dict(binder.resolver.settings()).get("order_by_non_integer_literal") == "true":
                return None
            raise BindError(f"{shown} is a constant, which orders nothing; leave it out.")
        read = exp.Cast(this=bare.copy(), to=to_sqlglot(kind_of(bare) or DataType("int32")))
    elif literal is not bare or (width is not None and not 0 < int(literal.name) <= width):
        raise BindError(f"{shown} names no column" + (f": the SELECT list has {width}." if width is not None else "."))
    elif key is not literal:
        read = literal.copy()
    return read if read is key else key.replace(read)


def read_order(binder: Binding, node: exp.Expr, width: int | None) -> bool:
    """Reads the positions in ORDER BY, which has no other literals afterwards; returns whether a key is left."""
    order = node.args["order"]
    kept = [item for item in order.expressions if read_place(binder, item.this, width, "ORDER BY") is not None]
    order.set("expressions", kept)
    if not kept:
        node.set("order", None)
    return bool(kept)


def written_position(key: exp.Expr) -> int | None:
    """Returns the position in `#1` of ORDER BY."""
    return int(key.name) if isinstance(key, exp.PositionalColumn) else None


def output_position(node: exp.Expr, outputs: Outputs) -> int | None:
    """Returns the position of the first output column of a set operation with a bare name."""
    if outputs is None or not isinstance(node, exp.Column) or node.table:
        return written_position(node)
    folded = node.name.casefold()
    return next((index for index, output in enumerate(outputs, 1) if output.name.casefold() == folded), None)


def position_in_sides(node: exp.Expr, query: exp.Expr) -> int | None:
    """Returns the position of a column whose bare name occurs only in a later side of a set operation."""
    for side, places in _sides(query):
        position = output_position(node, notes(side).outputs) or position_in_sides(node, side)
        if position is not None:
            return places[position - 1]
    return None


def position_of_value(key: exp.Expr, query: exp.Expr) -> int | None:
    """Returns the position of the column that a side of a set operation computes as a key; None without one.

    Raises:
        BindError: the sides compute it at several positions.
    """
    positions = _positions_of_value(key, query)
    if len(positions) > 1:
        raise BindError(
            f"ORDER BY {key.sql(dialect='duckdb')} is ambiguous: the sides compute it at several positions. "
            "Use the number of a column."
        )
    return next(iter(positions), None)


def _positions_of_value(key: exp.Expr, query: exp.Expr) -> set[int]:
    query = query.unnest()
    if isinstance(query, exp.Select):
        items = query.expressions if notes(query).outputs is not None else ()
        return {position for position, item in enumerate(items, 1) if _is_computed_as(key, item.unalias())}
    return {places[position - 1] for side, places in _sides(query) for position in _positions_of_value(key, side)}


def _sides(query: exp.Expr) -> Iterator[tuple[exp.Expr, Sequence[int]]]:
    """Yields the sides of a set operation whose columns are known, with the position of each column in the whole."""
    query = query.unnest()
    if not isinstance(query, exp.SetOperation):
        return
    names: list[str] = []
    for side in (query.this, query.expression):
        if (outputs := notes(side).outputs) is None:
            continue
        own = [output.name.casefold() for output in outputs]
        if query.args.get("by_name"):
            names += [name for name in own if name not in names]
            yield side, [names.index(name) + 1 for name in own]
        else:
            yield side, range(1, len(own) + 1)


def _is_computed_as(key: object, value: object) -> bool:
    """Returns whether a key as written means a bound value, so that one name may have a table and the other none."""
    if isinstance(key, list) and isinstance(value, list):
        return len(key) == len(value) and all(map(_is_computed_as, key, value))
    if isinstance(key, str) and isinstance(value, str):
        return key.casefold() == value.casefold()
    if not isinstance(key, exp.Expr) or not isinstance(value, exp.Expr):
        return key == value or not (key or value)
    key, value = key.unnest(), value.unnest()
    if isinstance(key, exp.Column) and isinstance(value, exp.Column):
        relation, tables = notes(value).relation, [part.name for part in key.parts[:-1]]
        same = key.name.casefold() == value.name.casefold()
        return same and (not tables or (relation is not None and relation.matches(tables)))
    if type(key) is not type(value) or isinstance(key, exp.Query):
        return False
    if isinstance(key, exp.Literal):
        return key == value
    return all(_is_computed_as(key.args.get(name), value.args.get(name)) for name in {**key.args, **value.args})
