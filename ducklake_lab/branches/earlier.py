"""Changes of entries that came with an earlier merge of a branch: the lake has these under other ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ducklake_lab.model.entries import Macro, Table, View
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState

Entry = Table | View | Macro


def changes_of_earlier(
    base: CatalogState, tip: CatalogState, ours: CatalogState, touched: Collection[int], is_ours: Callable[[int], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the names of such entries that the branch changed or dropped since, each with its change in words.

    One that the lake has dropped too, or that another one of the branch stands for by now, has not changed.

    Args:
        base: the branch's entries when it was merged last.
        tip: its entries.
        ours: the lake's.
        touched: ids of tables whose rows or columns may have changed.
        is_ours: whether the lake had an entry under an id before the branch began.
    """
    entries: list[Entry] = [*base.views.values(), *base.macros.values()]
    entries += [base.tables[table_id] for table_id in base.tables if not is_ours(table_id)]
    for entry in entries:
        key = id_of(entry)
        if is_ours(key):
            continue
        title, later = base.qualified_name(entry), _by_id(tip, entry)
        if later is None:
            if entry_of_name(base, entry, tip) is None and entry_of_name(base, entry, ours) is not None:
                yield title, "was dropped"
        elif (isinstance(entry, View) and later != entry) or (
            isinstance(entry, Table) and (key in touched or base.tables.names[key] != tip.tables.names[key])
        ):
            yield title, "was changed"
    for key, schema in base.schemas.items():
        if not is_ours(key) and tip.find_schema(schema.name) is None and ours.find_schema(schema.name) is not None:
            yield path_title(schema.name), "was dropped"


def entry_of_name(state: CatalogState, entry: Entry, other: CatalogState) -> Entry | None:
    """Return the entry of another state that has the name of one of a state."""
    schema = state.schemas[entry.schema_id].name
    if isinstance(entry, Macro):
        return other.find_macro(schema, entry.name, entry.kind)
    return other.find_table(schema, entry.name) or other.find_view(schema, entry.name)


def id_of(entry: Entry) -> int:
    """Return the id of a table, view or macro."""
    match entry:
        case Table():
            return entry.table_id
        case View():
            return entry.view_id
        case Macro():
            return entry.macro_id


def _by_id(state: CatalogState, entry: Entry) -> Entry | None:
    match entry:
        case Table():
            return state.tables.get(entry.table_id)
        case View():
            return state.views.get(entry.view_id)
        case Macro():
            return state.macros.get(entry.macro_id)
