"""Reads literals among the keys of GROUP BY, DISTINCT ON and ORDER BY: integers are positions in the SELECT list."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.errors import BindError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind.binding import Binding
from ducklake_lab.sql.bind.star_expansion import has_star
from ducklake_lab.sql.kinds import kind_of
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
