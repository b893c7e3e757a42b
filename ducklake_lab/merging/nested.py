"""Fields of nested columns that both sides of a merge changed, where the changes commute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ducklake_lab.model.entries import Column

#: Facts of a field beside its children that each side can change by itself.
_FACTS = (
    "name",
    "order",
    "type",
    "nulls_allowed",
    "initial_default",
    "default_value",
    "default_value_type",
    "default_value_dialect",
    "comment",
)


def merged_fields(theirs: Column, base: Column, ours: Column) -> tuple[Column, ...] | None:
    """Return the children of a nested column with the changes of both sides, ours first; None where these do not commute.

    Fields that one side added come, those that one side dropped and the other left as they were go, and facts of one field may
    differ on both sides if each changed another fact. Fields are known by their ids, which are ours.
    """
    if not base.children or not theirs.type == base.type == ours.type:
        return None
    their, old, own = ({child.column_id: child for child in one.children} for one in (theirs, base, ours))
    merged: list[Column] = []
    for number, child in own.items():
        if number not in old:
            merged.append(child)
        elif number not in their:
            if child != old[number]:
                return None
        elif (both := _merged(their[number], old[number], child)) is not None:
            merged.append(both)
        else:
            return None
    last = max((child.order for child in ours.children), default=0)
    for number, child in their.items():
        if number in own:
            continue
        if number not in old:
            last += 1
            merged.append(replace(child, order=last))
        elif child != old[number]:
            return None
    names = {child.name.casefold() for child in merged}
    return tuple(merged) if merged and len(names) == len(merged) else None


def _merged(theirs: Column, base: Column, ours: Column) -> Column | None:
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    children: tuple[Column, ...] | None = ours.children
    if theirs.children not in (base.children, ours.children):
        children = theirs.children if ours.children == base.children else merged_fields(theirs, base, ours)
    if children is None:
        return None
    facts: dict[str, Any] = {}
    for name in _FACTS:
        their, old, own = (getattr(one, name) for one in (theirs, base, ours))
        if their not in (old, own) and own != old:
            return None
        facts[name] = own if their in (old, own) else their
    return replace(ours, children=children, **facts)
