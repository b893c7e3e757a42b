"""Joins of a query that DuckDB prints from JSON: each stays where it was.

DuckDB prints CROSS JOIN from JSON as a comma, which binds after all joins, and a join in parentheses without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

#: A kind of join that no query names, and that DuckDB prints where it stands.
_STAND_IN = "DEPENDENT"
_PRINTED = re.compile(rf"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|\b{_STAND_IN} JOIN\b")


def name_cross_joins(parsed: Any) -> bool:
    """Rename the CROSS JOINs within other joins so that DuckDB prints them; return whether there are any.

    Args:
        parsed: a query as JSON; it is changed.
    """
    renamed = [_name_cross_joins(node, is_inner=False) for node in _roots(parsed)]
    return any(renamed)


def as_named(text: str) -> str:
    """Return a printed query with its CROSS JOINs under their own name."""
    return _PRINTED.sub(lambda match: match[1] or "CROSS JOIN", text)


def shapes(parsed: Any) -> list[object]:
    """Return which tables the joins of a query as JSON join, and in which order."""
    return [_shape(node) for node in _roots(parsed)]


def _roots(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the joins that are no part of other joins, in the order of the text."""
    if isinstance(node, list):
        for part in node:
            yield from _roots(part)
    elif isinstance(node, dict):
        if _is_join(node):
            yield node
            for part in _operands(node):
                yield from _roots(part)
        else:
            for part in node.values():
                yield from _roots(part)


def _operands(join: dict[str, Any]) -> Iterator[Any]:
    """Yield what the joins of a tree join, and their conditions."""
    for key, part in join.items():
        if key in ("left", "right") and _is_join(part):
            yield from _operands(part)
        else:
            yield part


def _is_join(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "JOIN" and "ref_type" in node


def _name_cross_joins(join: dict[str, Any], *, is_inner: bool) -> bool:
    """Rename the CROSS JOINs within other joins, and return whether there are any."""
    is_cross = join["ref_type"] == "CROSS"
    renamed = is_cross and is_inner
    if renamed:
        join["ref_type"] = _STAND_IN
    parts = [join[key] for key in ("left", "right") if _is_join(join[key])]
    return any([renamed, *(_name_cross_joins(part, is_inner=is_inner or not is_cross) for part in parts)])


def _shape(node: Any) -> object:
    """Return which tables a join joins, and in which order; a row of CROSS JOINs has no inner order."""
    if not _is_join(node):
        return tuple(str(node.get(key)) for key in ("type", "alias", "table_name"))
    left, right = _shape(node["left"]), _shape(node["right"])
    if node["ref_type"] == "CROSS" and not node["alias"]:
        return "CROSS", *_crossed(left), *_crossed(right)
    return node["join_type"], node["ref_type"], node["alias"], left, right


def _crossed(shape: object) -> tuple[object, ...]:
    return shape[1:] if isinstance(shape, tuple) and shape[0] == "CROSS" else (shape,)
