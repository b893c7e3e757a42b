"""Schemas, tables, views and macros that came on a branch, and their creation in the lake it is merged into."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ducklake_lab.branches.earlier import Entry, entry_of_name, id_of
from ducklake_lab.catalog.attachments import table_tags
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.staging import stage_written, target_of
from ducklake_lab.merging.conflicts import Conflict, Reason, Rules, Unsettled, Words
from ducklake_lab.merging.tags import OWN, arriving
from ducklake_lab.merging.taking_over import take_over, whole_files
from ducklake_lab.model.entries import Macro, Schema, Table, View
from ducklake_lab.model.expectations import PREFIX
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.scan.visible_counts import live_rows
from ducklake_lab.transaction.transaction import Transaction


@dataclass(slots=True)
class Arrivals:
    """Entries that came on a branch since a state of it.

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
    replaced: list[Entry] = field(default_factory=list)

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
    entries: list[Entry] = [*tables, *views, *macros]
    left = _left_schemas(found, entries, ours, words, rules, unsettled)
    for entry in sorted(entries, key=theirs.qualified_name):
        if entry.schema_id in left:
            continue
        other = entry_of_name(theirs, entry, ours)
        if other is not None and id_of(other) not in leaving:
            if _is_same(entry, other):
                continue
            earlier = entry_of_name(theirs, entry, since)
            if earlier is None or not _is_same(earlier, other):
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


def _left_schemas(
    found: Arrivals,
    entries: Sequence[Entry],
    ours: CatalogState,
    words: Words,
    rules: Rules,
    unsettled: Unsettled,
) -> set[int]:
    """Return the ids of schemas of theirs that ours dropped, and whose entries do not come; others come again.

    Notes conflicts that no rule settles.
    """
    theirs, left = found.tip, set[int]()
    coming = {schema.name.casefold() for schema in found.schemas}
    for schema_id in sorted({entry.schema_id for entry in entries}):
        schema = theirs.schemas[schema_id]
        if ours.find_schema(schema.name) is not None or schema.name.casefold() in coming:
            continue
        title = path_title(schema.name)
        rule = rules.of(title).whole
        if rule is None:
            names = ", ".join(entry.name for entry in entries if entry.schema_id == schema_id)
            unsettled.add(Conflict(title, None, None, "", None, names, words.reason(Reason.SCHEMA_FILLED)))
        if rule != "theirs":
            left.add(schema_id)
            continue
        above: int | None = schema_id
        while above is not None and theirs.schemas[above].name.casefold() not in coming:
            found.schemas.append(theirs.schemas[above])
            coming.add(theirs.schemas[above].name.casefold())
            above = theirs.schemas[above].parent_id
    found.schemas.sort(key=lambda schema: len(schema.parts))
    return left


def names_of_arrivals(theirs: CatalogState, since: CatalogState, first_id: int) -> Iterator[str]:
    """Yield the names of what came, and of the schemas that it came to."""
    schemas = {key for key in theirs.schemas if key >= first_id}
    entries: list[View | Macro] = [*theirs.views.values(), *theirs.macros.values()]
    for entry in entries:
        if id_of(entry) >= first_id:
            schemas.add(entry.schema_id)
            yield theirs.qualified_name(entry)
    names = theirs.table_names()
    for key in theirs.tables:
        if key >= first_id and key not in since.tables:
            schemas.add(theirs.tables.names[key][0])
            yield names[key]
    yield from (path_title(theirs.schemas[key].name) for key in schemas)


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
    # expectations know a table by its UUID
    made = transaction.create_table(schema, table.name, table.columns, table.uuid)
    made = replace(
        made,
        partition=transaction.new_partition(table.partition.fields) if table.partition is not None else None,
        sort=transaction.new_sort(table.sort.keys) if table.sort is not None else None,
        comment=table.comment,
        tags=table.tags,
    )
    transaction.state = transaction.state.with_table(made)
    with lake.connect() as connection:
        plan = plan_scan(lake, connection, theirs, table)
        tags = table_tags(connection, theirs.snapshot.snapshot_id, OWN)
    for (table_id, key), value in tags.items():
        if table_id == table.table_id and not key.startswith(PREFIX):
            transaction.set_tag(made, key, arriving(key, value))
    whole = whole_files(lake, table, made, plan, first_new=0, last_shared=0)
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


def _is_same(entry: Entry, other: Entry) -> bool:
    """Whether both sides made the same view or macro."""
    match entry, other:
        case View(), View():
            return (entry.sql, entry.column_aliases, entry.comment) == (other.sql, other.column_aliases, other.comment)
        case Macro(), Macro():
            return entry.implementations == other.implementations
    return False


def _shown(entry: Entry) -> str:
    match entry:
        case Table():
            return f"table ({', '.join(column.name for column in entry.columns)})"
        case View():
            return f"view {entry.sql}"
        case Macro():
            return f"macro {'; '.join(one.sql for one in entry.implementations)}"
