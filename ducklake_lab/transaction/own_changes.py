"""Changes of a transaction, derived once from the states before and after it and from its staged rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ducklake_lab.model.changes import Change
from ducklake_lab.model.entries import LOCAL_ID_START, Table, View
from ducklake_lab.model.staged import StagedData
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class OwnChange:
    """One change; entries that the transaction made have their local ids.

    Attributes:
        noted: whether `changes_made` names it.
        excludes: whether a change of another commit may exclude it.
        compacts: whether it writes files anew and changes no row.
    """

    change: Change
    noted: bool = True
    excludes: bool = True
    compacts: bool = False


def own_changes(transaction: Transaction) -> tuple[OwnChange, ...]:
    """The changes of a transaction; those of one kind in the order in which the reference notes them."""
    of_rows = [change for table_id, staged in sorted(transaction.data.items()) for change in _of_rows(table_id, staged)]
    if transaction.state.differs_from(transaction.base):
        of_rows = [*_dropped(transaction), *_created(transaction), *of_rows]
    return (*of_rows, *_tagged(transaction, of_rows))


def _tagged(transaction: Transaction, changes: Iterable[OwnChange]) -> Iterator[OwnChange]:
    """Yield tables whose tags alone change: `changes_made` says that they are altered."""
    named = {own.change.value for own in changes if own.noted}
    for table_id in sorted({table_id for table_id, _ in transaction.new_tags}):
        if table_id < LOCAL_ID_START and table_id in transaction.state.tables and table_id not in named:
            yield OwnChange(Change("altered_table", table_id))


def _dropped(transaction: Transaction) -> Iterator[OwnChange]:
    base, state = transaction.base, transaction.state
    dropped: dict[str, set[int]] = {
        "dropped_schema": base.schemas.keys() - state.schemas.keys(),
        "dropped_table": base.tables.keys() - state.tables.keys(),
        "dropped_view": base.views.keys() - state.views.keys(),
    }
    for kind, ids in dropped.items():
        yield from (OwnChange(Change(kind, number)) for number in sorted(ids))
    for macro_id in sorted(base.macros.keys() - state.macros.keys()):
        yield OwnChange(Change(f"dropped_{base.macros[macro_id].kind}_macro", macro_id))


def _created(transaction: Transaction) -> Iterator[OwnChange]:
    base, state = transaction.base, transaction.state
    for schema in state.schemas.values():
        if schema.schema_id not in base.schemas:
            yield OwnChange(Change("created_schema", schema.parts))
    for entry in written_entries(transaction):
        if isinstance(entry, Table):
            yield from _of_table(transaction, entry)
        else:
            yield from _of_view(transaction, entry)
    for macro in state.macros.values():
        if macro.macro_id not in base.macros:
            name = (*state.schema_of(macro).parts, macro.name)
            yield OwnChange(Change(f"created_{macro.kind}_macro", name))


def written_entries(transaction: Transaction) -> list[Table | View]:
    """The tables and views that the catalog knows, then new ones by their schemas, in the order in which they were made."""
    entries: list[Table | View] = [*transaction.state.tables.made(), *transaction.state.views.values()]
    committed = [entry for entry in entries if entry_id(entry) < LOCAL_ID_START]
    new = [entry for entry in entries if entry_id(entry) >= LOCAL_ID_START]
    return [*committed, *sorted(new, key=lambda entry: (entry.schema_id, entry_id(entry)))]


def entry_id(entry: Table | View) -> int:
    """The id of a table or view."""
    return entry.table_id if isinstance(entry, Table) else entry.view_id


def _of_table(transaction: Transaction, table: Table) -> Iterator[OwnChange]:
    before = transaction.base.tables.get(table.table_id)
    altered = Change("altered_table", table.table_id)
    if before is None or (before.name, before.schema_id) != (table.name, table.schema_id):
        yield from _named("created_table", transaction, table)
    if before is None:
        yield OwnChange(altered, noted=table.table_id in transaction.altered, excludes=False)
    elif before != table:
        # a rename alone is noted as a name that is taken, and excludes what an alteration excludes
        yield OwnChange(altered, noted=replace(before, name=table.name, schema_id=table.schema_id) != table)


def _of_view(transaction: Transaction, view: View) -> Iterator[OwnChange]:
    before = transaction.base.views.get(view.view_id)
    altered = Change("altered_view", view.view_id)
    if before is None or before.name != view.name:
        yield from _named("created_view", transaction, view)
    if before is None:
        yield OwnChange(altered, noted=view.view_id in transaction.altered, excludes=False)
    elif before != view:
        yield OwnChange(altered, noted=_comments(before) != _comments(view))


def _comments(view: View) -> tuple[str | None, Mapping[str, str | None]]:
    return view.comment, view.column_comments


def _named(kind: str, transaction: Transaction, entry: Table | View) -> Iterator[OwnChange]:
    """The names that an entry had in the transaction; it keeps the last."""
    for name in transaction.former_names.get(entry_id(entry), ()):
        yield OwnChange(Change(kind, name), excludes=False)
    yield OwnChange(Change(kind, (*transaction.state.schema_of(entry).parts, entry.name)))


def _of_rows(table_id: int, staged: StagedData) -> Iterator[OwnChange]:
    # nobody else knows a table that the transaction made
    excludes = table_id < LOCAL_ID_START
    deletes = staged.deletes.values()
    noted = {
        "inserted_into_table": bool(staged.files),
        "inlined_insert": bool(staged.rows),
        "deleted_from_table": bool(staged.dropped_files) or any(written.path is not None for written in deletes),
        "inlined_delete": bool(staged.deleted_row_ids) or any(written.positions for written in deletes),
        "inline_flush": bool(staged.flushed),
    }
    for kind, is_noted in noted.items():
        if is_noted:
            yield OwnChange(Change(kind, table_id), excludes=excludes)
    if not staged.flushed and (staged.flushed_tables or staged.flushed_deletes is not None):
        # inlined rows that are all deleted leave the catalog, and no file comes
        yield OwnChange(Change("inline_flush", table_id), noted=False, excludes=excludes)
    for kind in dict.fromkeys(compaction.kind for compaction in staged.compactions.values()):
        yield OwnChange(Change(kind, table_id), excludes=excludes, compacts=True)
