"""Options that differ on both sides of a branch: a merge leaves them as they are in the lake, and a review lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ducklake_lab.catalog.options import OptionRow
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState

#: Options of one catalog, which no other one takes; and the beginning of those that this project keeps for itself.
_OF_CATALOG = frozenset(("created_by", "data_path", "encrypted", "version"))
_OWN = "ducklake_lab_"


@dataclass(frozen=True, slots=True)
class LeftOption:
    """An option with different values in a lake and on its branch. Options have no history: either side may have set it.

    Attributes:
        key: its name.
        entry: the schema or table that it is set for; None for the lake.
        ours: its value in the lake; None where it is not set.
        theirs: its value on the branch.
    """

    key: str
    entry: str | None
    ours: str | None
    theirs: str | None

    def to_dict(self) -> dict[str, str | None]:
        """The option as values that JSON has."""
        return {"option": self.key, "entry": self.entry, "lake": self.ours, "branch": self.theirs}

    def __str__(self) -> str:
        of = f" of {self.entry}" if self.entry is not None else ""
        ours, theirs = ("not set" if value is None else value for value in (self.ours, self.theirs))
        return f"option {self.key}{of}: {theirs} on the branch, {ours} in the lake"


def left_options(
    theirs: Sequence[OptionRow], tip: CatalogState, ours: Sequence[OptionRow], base: CatalogState, first_id: int
) -> tuple[LeftOption, ...]:
    """Return the options that differ.

    Args:
        theirs, tip: options and entries of the branch.
        ours, base: those of the lake.
        first_id: the first id of entries that the branch gave out; of the lake's later entries it has none.
    """
    on_branch, in_lake = _by_place(theirs), _by_place(ours)
    found = []
    for place in on_branch.keys() | in_lake.keys():
        scope, scope_id, key = place
        is_new = scope_id is not None and scope_id >= first_id
        their, our = on_branch.get(place), None if is_new else in_lake.get(place)
        if their == our:
            continue
        entry = _entry(tip, scope, scope_id)
        if entry is None and not is_new:
            entry = _entry(base, scope, scope_id)
        if scope is None or entry is not None:
            found.append(LeftOption(key, entry, our, their))
    return tuple(sorted(found, key=lambda one: (one.entry or "", one.key)))


def _by_place(rows: Sequence[OptionRow]) -> Mapping[tuple[str | None, int | None, str], str]:
    return {
        (scope, scope_id, key): value
        for scope, scope_id, key, value in rows
        if key not in _OF_CATALOG and not key.startswith(_OWN)
    }


def _entry(state: CatalogState, scope: str | None, scope_id: int | None) -> str | None:
    """Return the name of a schema or table that an option is set for; None where it is gone."""
    if scope_id is None:
        return None
    if scope == "schema":
        return path_title(state.schemas[scope_id].name) if scope_id in state.schemas else None
    return state.table_names().get(scope_id)
