"""Schemas, tables, views and macros that came on a branch, and their creation in the lake it is merged into."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.staging import stage_written, target_of
from ducklake_lab.merging.conflicts import Conflict, Reason, Rules, Unsettled, Words
from ducklake_lab.merging.taking_over import take_over, whole_files
from ducklake_lab.model.entries import Macro, Schema, Table, View
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.scan.visible_counts import live_rows
from ducklake_lab.transaction.transaction import Transaction

_Entry = Table | View | Macro


@dataclass(slots=True)
class Arrivals:
    """What came on a branch since a state of it.

    Attributes:
        lake: the branch.
        tip: its entries.
        schemas, tables, views, macros: those that the lake gets.
        replaced: entries of the lake that go for one of these.
    """

    lake: Lake
    tip: CatalogState
    schemas: list[Schema] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    macros: list[Macro] = field(default_factory=list)
    replaced: list[_Entry] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.schemas or self.tables or self.views or self.macros)


def plan_arrivals(
    lake: Lake,
    theirs: CatalogState,
    since: CatalogState,
    first_id: int,
    ours: CatalogState,
    leaving: Collection[int],
    words: Words,
    rules: Rules,
    unsettled: Unsettled,
) -> Arrivals:
    """Plan what comes; notes conflicts over names that are taken in both, and that no rule settles.

    Args:
        lake: the branch.
        theirs: its entries.
        since: its entries when it was merged last, or began.
        first_id: the first id of entries that the branch gave out.
        ours: the entries of the lake it is merged into.
        leaving: ids of the tables and views that go from there with the merge.
    """
    found = Arrivals(lake, theirs)
    found.schemas = sorted(
        (schema for key, schema in theirs.schemas.items() if key >= first_id and key not in since.schemas),
        key=lambda schema: len(schema.parts),
    )
    tables = [theirs.tables[key] for key in theirs.tables if key >= first_id and key not in since.tables]
    views = [view for key, view in theirs.views.items() if key >= first_id and key not in since.views]
    macros = [macro for key, macro in theirs.macros.items() if key >= first_id and key not in since.macros]
    entries: list[_Entry] = [*tables, *views, *macros]
    for entry in sorted(entries, key=theirs.qualified_name):
        other = _of_name(theirs, entry, ours)
        if other is not None and _id(other) not in leaving:
            if _is_same(entry, other):
                continue
            title = ours.qualified_name(other)
            rule = rules.of(title).whole
            if rule is None:
                reason = words.reason(Reason.NAME_TAKEN)
                unsettled.add(Conflict(title, None, None, None, _shown(other), _shown(entry), reason))
            if rule != "theirs":
                continue
            found.replaced.append(other)
        match entry:
            case Table():
                found.tables.append(entry)
            case View():
                found.views.append(entry)
            case Macro():
                found.macros.append(entry)
    return found


def names_of_arrivals(theirs: CatalogState, since: CatalogState, first_id: int) -> Iterator[str]:
    """Yield the names of what came."""
    entries: list[View | Macro] = [*theirs.views.values(), *theirs.macros.values()]
    for entry in entries:
        if _id(entry) >= first_id:
            yield theirs.qualified_name(entry)
    names = theirs.table_names()
    yield from (names[key] for key in theirs.tables if key >= first_id and key not in since.tables)
    yield from (path_title(schema.name) for key, schema in theirs.schemas.items() if key >= first_id)


def stage_arrivals(transaction: Transaction, arrivals: Arrivals, engines: Engines) -> None:
    """Stages what comes."""
    for schema in arrivals.schemas:
        if transaction.state.find_schema(schema.name) is None:
            transaction.create_schema(schema.name)
    for entry in arrivals.replaced:
        match entry:
            case Table():
                transaction.drop_table(entry)
            case View():
                transaction.state = transaction.state.without_view(entry.view_id)
            case Macro():
                transaction.state = transaction.state.without_macro(entry.macro_id)
    for table in arrivals.tables:
        bring_table(transaction, arrivals.lake, arrivals.tip, table, engines)
    for view in arrivals.views:
        schema = transaction.state.schema(arrivals.tip.schemas[view.schema_id].name)
        made = transaction.create_view(schema, view.name, view.sql, view.column_names)
        described = replace(made, comment=view.comment, column_comments=view.column_comments, dialect=view.dialect)
        transaction.state = transaction.state.with_view(described)
    for macro in arrivals.macros:
        schema = transaction.state.schema(arrivals.tip.schemas[macro.schema_id].name)
        transaction.create_macro(schema, macro.name, macro.kind, macro.implementations)


def bring_table(transaction: Transaction, lake: Lake, theirs: CatalogState, table: Table, engines: Engines) -> None:
    """Stages a table of a branch with its rows, under new row ids; files without deleted rows are taken over.

    Args:
        lake: the branch, whose entries are `theirs`.
    """
    schema = transaction.state.schema(theirs.schemas[table.schema_id].name)
    made = transaction.create_table(schema, table.name, table.columns)
    made = replace(
        made,
        partition=transaction.new_partition(table.partition.fields) if table.partition is not None else None,
        sort=transaction.new_sort(table.sort.keys) if table.sort is not None else None,
        comment=table.comment,
    )
    transaction.state = transaction.state.with_table(made)
    with lake.connect() as connection:
        plan = plan_scan(lake, connection, theirs, table)
    whole = whole_files(lake, table, made, plan, 0)
    take_over(transaction, made, whole)
    taken = {arrival.file.data_file.data_file_id for arrival in whole}
    rest = replace(plan, files=tuple(file for file in plan.files if file.data_file.data_file_id not in taken))
    count = live_rows(rest.files) + (rest.inlined.rows.num_rows if rest.inlined is not None else 0)
    if not count:
        return
    rows: Rows = Scan(rest)
    with ExitStack() as stack:
        if not engines.placing.place(facts_of(rest.files, purpose="change")).is_here:
            spark = stack.enter_context(engines.running())
            rows = OnSpark(rows.frame(spark), tuple(rows.columns), engines)
        stage_written(transaction, made, rows.write(target_of(transaction, made), count=count))


def _of_name(theirs: CatalogState, entry: _Entry, ours: CatalogState) -> _Entry | None:
    """The entry of the lake that has the name of one of the branch."""
    schema = theirs.schemas[entry.schema_id].name
    if isinstance(entry, Macro):
        return ours.find_macro(schema, entry.name, entry.kind)
    return ours.find_table(schema, entry.name) or ours.find_view(schema, entry.name)


def _id(entry: _Entry) -> int:
    match entry:
        case Table():
            return entry.table_id
        case View():
            return entry.view_id
        case Macro():
            return entry.macro_id


def _is_same(entry: _Entry, other: _Entry) -> bool:
    """Whether both sides made the same view or macro."""
    match entry, other:
        case View(), View():
            return (entry.sql, entry.column_aliases, entry.comment) == (other.sql, other.column_aliases, other.comment)
        case Macro(), Macro():
            return entry.implementations == other.implementations
    return False


def _shown(entry: _Entry) -> str:
    match entry:
        case Table():
            return f"table ({', '.join(column.name for column in entry.columns)})"
        case View():
            return f"view {entry.sql}"
        case Macro():
            return f"macro {'; '.join(one.sql for one in entry.implementations)}"
