"""Statements on live tables. A refresh reads all sources at one snapshot, and commits rows and definition together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.catalog import attachments
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb import canonical
from ducklake_lab.engine.changes import Feed
from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import (
    EntryExistsError,
    TransactionError,
    UnsupportedFeatureError,
    UsageError,
)
from ducklake_lab.live.definition import Definition, read_definition
from ducklake_lab.live.history import since
from ducklake_lab.live.order import in_order
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_identifier, quoted_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.visible_counts import live_rows
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.session.names.stored_definitions import portable
from ducklake_lab.session.rows.result import Result, RunInfo, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.ddl import Ddl, build_columns
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.statements.live_changes import Keys, replace_rows
from ducklake_lab.session.statements.live_look import LiveLook, Look, Mode, fits, tables_of, types_of
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.refresh.signed import SIGN, added_rows, merged_rows
from ducklake_lab.sql.refresh.sums import merged
from ducklake_lab.sql.types import type_or_none
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh of a live table did.

    Attributes:
        table: the table's name.
        mode: "incremental", "full", or "nothing" where its sources had not changed.
        reason: the reason for the mode.
        rows_read: the changed rows of its sources, old and new ones; for a full refresh all their rows.
        rows_changed: the deleted and new rows of the live table.
        seconds: the elapsed time.
        snapshot: the snapshot that the rows stand at: those of the query at that snapshot.
    """

    table: str
    mode: Mode
    reason: str
    rows_read: int
    rows_changed: int
    seconds: float
    snapshot: int


class LiveTables:
    """Creates, refreshes, explains, lists and drops live tables."""

    def __init__(self, transactions: Transactions, sources: Sources, engine: SparkEngine, ddl: Ddl) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._sources = sources
        self._engine = engine
        self._ddl = ddl
        self._dml = Dml(transactions.lakes, sources, engine)
        self._look = LiveLook(transactions.lakes, sources)

    def run(self, statement: op.LiveStatement) -> Result:
        """Runs a statement."""
        match statement:
            case op.CreateLiveTable():
                return self.create(statement)
            case op.Refresh():
                return self._result(self.refresh(statement.name))
            case op.ExplainRefresh():
                return self.explain(statement.name)
            case op.DropLiveTable():
                self.drop(statement)
                return nothing()

    # CREATE and DROP

    def create(self, statement: op.CreateLiveTable) -> Result:
        """Creates a live table with the rows of its query, in one commit."""
        entry = self._sources.names.entry(statement.name)
        existing = entry.find()
        if existing is not None:
            title = entry.state.qualified_name(existing)
            if statement.if_not_exists:
                return nothing()
            if not statement.replace:
                raise EntryExistsError(
                    f"There is a table {title} already; use CREATE OR REPLACE LIVE TABLE, or IF NOT EXISTS."
                )
            if not existing.is_live:
                raise EntryExistsError(f"{title} is no live table, and is not replaced by one; DROP TABLE it first.")
        self._check_alone("CREATE LIVE TABLE")
        lake = entry.lake
        text = portable(canonical.query_text(statement.sql), lake.alias)
        definition = Definition(text, self._lakes.schema_in_use(lake))
        done = until_committed(self._transactions, lambda: self._created(entry, definition), reads=True)
        return self._result([done])

    def _created(self, entry: NamedEntry, definition: Definition) -> Refreshed:
        started = time.monotonic()
        with self._transactions.writing(entry.lake) as transaction:
            base = transaction.state
            existing = base.find_table(entry.schema, entry.name)
            with self._lakes.standing_in(entry.lake, definition.schema):
                _, plan = self._look.planned(entry.lake, definition)
                tables, _ = tables_of(plan, entry.lake)
                if existing is not None and existing.table_id in tables:
                    raise UsageError(f"{base.qualified_name(existing)} would read itself; read its sources instead.")
                now = self._look.now(definition, base, plan, tables)
                count = self._remade(transaction, entry, plan, now)
        title = f"{entry.schema}.{entry.name}"
        read = self._rows_in(entry.lake, base, tables.values())
        return Refreshed(title, "full", "it is new", read, count, time.monotonic() - started, now.snapshot)

    def _remade(self, transaction: Transaction, entry: NamedEntry, plan: QueryPlan, definition: Definition) -> int:
        """Creates the table of a definition, in place of one that has its name; returns the number of rows."""
        result = self._sources.run(plan, purpose="change")
        columns = [
            op.ColumnDef(name, _column_type(name, kind))
            for name, kind in zip(result.columns, result.types, strict=True)
        ]
        old = transaction.state.find_table(entry.schema, entry.name)
        kept = self._ddl.create_table(entry, build_columns(columns), replace_existing=True, is_live=True)
        if old is not None and old.comment is not None:
            kept = replace(kept, comment=old.comment)
            transaction.replace_table(kept)
        transaction.is_one_statement = True
        count = self._dml.append(kept, result.rows())
        transaction.set_tag(kept, attachments.LIVE, definition.text())
        return count

    def drop(self, statement: op.DropLiveTable) -> None:
        entry = self._sources.names.entry(statement.name)
        if statement.if_exists and entry.find() is None:
            return
        table = entry.table()
        if not table.is_live:
            raise UsageError(f"{entry.state.qualified_name(table)} is no live table; use DROP TABLE.")

        def run() -> None:
            with self._transactions.writing(entry.lake) as transaction:
                transaction.drop_table(transaction.state.table(entry.schema, entry.name))

        until_committed(self._transactions, run, reads=False)

    # REFRESH

    def refresh(self, name: op.TableName | None) -> list[Refreshed]:
        """Refreshes a live table, or all of the current lake, sources before those that read them; a commit for each."""
        self._check_alone("REFRESH")
        if name is not None:
            entry = self._sources.names.entry(name)
            entry.table()
            return [self._refreshed(entry)]
        lake = self._lakes.get()
        return [self._refreshed(NamedEntry(lake, state, *names)) for state, names in self._all(lake)]

    def _all(self, lake: Lake) -> Iterator[tuple[CatalogState, tuple[str, str]]]:
        """Yields the schema and name of each live table of a lake, after those that it reads."""
        state = self._lakes.state(lake)
        for table, _ in self._definitions(lake, state):
            newest = self._lakes.state(lake)
            if table.table_id in newest.tables:
                own = newest.tables[table.table_id]
                yield newest, (newest.schema_of(own).name, own.name)

    def _definitions(self, lake: Lake, state: CatalogState) -> list[tuple[Table, Definition]]:
        with lake.connect() as connection:
            tags = attachments.table_tags(connection, state.snapshot.snapshot_id, attachments.LIVE)
        found = []
        for (table_id, key), text in tags.items():
            if key == attachments.LIVE and table_id in state.tables:
                table = state.tables[table_id]
                found.append((table, read_definition(text, state.qualified_name(table))))
        return in_order(found)

    def _refreshed(self, entry: NamedEntry) -> Refreshed:
        return until_committed(self._transactions, lambda: self._refresh(entry), reads=True)

    def _refresh(self, entry: NamedEntry) -> Refreshed:
        started = time.monotonic()
        lake = entry.lake
        with self._transactions.writing(lake) as transaction:
            state = transaction.state
            table = state.table(entry.schema, entry.name)
            definition, begun = self._look.definition(lake, state, table)
            transaction.tag(table, attachments.LIVE)  # its commit needs the definition as it is here
            look = self._look.look(lake, state, table, definition, begun)
            if look.mode == "nothing":
                return self._done(state, table, look, 0, 0, started)
            transaction.is_one_statement = True
            with self._lakes.standing_in(lake, definition.schema), self._registered():
                staged = self._staged(transaction, entry, table, look) if look.mode == "incremental" else None
                if isinstance(staged, str) or staged is None:
                    look = look if staged is None else replace(look, mode="full", reason=staged)
                    staged = self._recomputed(transaction, entry, table, look)
            read, count = staged
            if table.table_id in transaction.state.tables:
                transaction.set_tag(table, attachments.LIVE, look.definition.text())
            if transaction.message is None:
                transaction.message = f"refresh of {state.qualified_name(table)}, {look.mode}"
        return self._done(state, table, look, read, count, started)

    def _done(self, state: CatalogState, table: Table, look: Look, read: int, count: int, started: float) -> Refreshed:
        seconds = time.monotonic() - started
        snapshot = state.snapshot.snapshot_id
        return Refreshed(state.qualified_name(table), look.mode, look.reason, read, count, seconds, snapshot)

    def _staged(self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look) -> tuple[int, int] | str:
        """Stages an incremental refresh; returns the numbers of read and changed rows, or why all is recomputed."""
        changed, read = {}, 0
        for view, (source, plan) in look.changes.items():
            sides: list[Rows] = [
                Feed(name, plan, False, self._engine.placing) for name in ("table_insertions", "table_deletions")
            ]
            if self._engine.placing.place(facts_of_rows(sides, "change")).is_here:
                sides = [InMemory(side.arrow()) for side in sides]
                read += sum(side.arrow().num_rows for side in sides)
            else:
                read += sum(_rows_of(side) for side in (plan.inserted, plan.removed))
            names = [self._register(side, source.name) for side in sides]
            added, removed = map(quote_identifier, names)
            changed[view] = f"(SELECT *, 1 AS {SIGN} FROM {added} UNION ALL SELECT *, -1 AS {SIGN} FROM {removed})"
        if not changed:
            return read, 0
        match look.adds:
            case "sums":
                staged = self._add_sums(transaction, entry, table, look, changed)
            case "rows":
                staged = self._add_rows(transaction, entry, table, look, changed)
            case _:
                staged = self._replace_keys(transaction, entry, table, look, changed)
        return staged if isinstance(staged, str) else (read, staged)

    def _replace_keys(
        self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look, changed: Mapping[str, str]
    ) -> int | str:
        queries = self._look.queries(entry.lake, transaction.state, table, look, changed)
        found = self._few(queries.affected)
        if isinstance(found, str) or found.num_rows == 0:
            return found if isinstance(found, str) else 0
        keys = self._keys(found, [table.columns[place].name for place in queries.keys])
        return self._replaced(transaction, entry, table, self._query(queries.rows(keys.view, keys.nullable)), keys)

    def _add_sums(
        self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look, changed: Mapping[str, str]
    ) -> int | str:
        sums = self._look.sums(entry.lake, transaction.state, table, look, changed)
        found = self._few(sums.query)
        if isinstance(found, str) or found.num_rows == 0:
            return found if isinstance(found, str) else 0
        keys = self._keys(found, [table.columns[place].name for place in sums.keys])
        path, names = self._path(entry.lake, transaction.state, table), _quoted_names(table)
        text, below = merged(sums, path, names, types_of(table), keys.view)
        if self._query(below).fetchall() != [(0,)]:
            return "its counts are not those of its query"
        return self._replaced(transaction, entry, table, self._query(text), keys)

    def _add_rows(
        self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look, changed: Mapping[str, str]
    ) -> int | str:
        signed = self._look.signed(entry.lake, transaction.state, table, look, changed)
        found = self._few(signed.query)
        if isinstance(found, str) or found.num_rows == 0:
            return found if isinstance(found, str) else 0
        keys, names = self._keys(found, [column.name for column in table.columns]), _quoted_names(table)
        least, most = (int(pc.call_function(name, [found.column("n")]).as_py()) for name in ("min", "max"))
        if least > 0:
            return self._dml.append(table, self._query(added_rows(names, keys.view, self._numbers(most))).rows())
        path = self._path(entry.lake, transaction.state, table)
        ((least, most),) = self._query(merged_rows(path, names, keys.view, "")[1]).fetchall()
        if least < 0:
            return "it lacks rows that its query had"
        text, _ = merged_rows(path, names, keys.view, self._numbers(most))
        return self._replaced(transaction, entry, table, self._query(text), keys)

    def _numbers(self, most: int) -> str:
        """Returns the name of rows with the numbers from 1."""
        numbers = pa.table({"i": pa.array(range(1, most + 1), pa.int64())})
        return quote_identifier(self._register(InMemory(numbers), "numbers"))

    def _keys(self, found: pa.Table, columns: Sequence[str]) -> Keys:
        """Returns keys of rows to replace: the first columns of some rows."""
        nullable = [found.column(i).null_count > 0 for i in range(len(columns))]
        return Keys(columns, quote_identifier(self._register(InMemory(found), "keys")), nullable)

    def _replaced(self, transaction: Transaction, entry: NamedEntry, table: Table, rows: Result, keys: Keys) -> int:
        path = self._path(entry.lake, transaction.state, table)
        return replace_rows(self._dml, self._sources, transaction, table, path, rows.rows(), keys)

    def _query(self, text: str) -> Result:
        return self._sources.query(parse_query(text))

    def _few(self, text: str) -> pa.Table | str:
        """Returns the rows of a query with a row per key, or the reason why they are not fetched."""
        result, most = self._query(text), self._engine.placing.limits.source_rows
        if result.in_process:
            return result.carried()
        keys = result.head(most + 1)
        return keys if keys.num_rows <= most else f"changes affect more than {most:,} keys"

    def _recomputed(self, transaction: Transaction, entry: NamedEntry, table: Table, look: Look) -> tuple[int, int]:
        """Stages a full refresh; returns the numbers of read and changed rows."""
        lake, state = entry.lake, transaction.state
        read = self._rows_in(lake, state, look.tables.values())
        result = self._sources.run(look.plan, purpose="change")
        if not fits(table, list(zip(result.columns, result.types, strict=True))):
            own = NamedEntry(lake, state, state.schema_of(table).name, table.name)
            return read, self._remade(transaction, own, look.plan, look.definition)
        path = self._path(lake, state, table)
        few = self._rows_in(lake, state, [table]) <= self._engine.placing.limits.changed_rows
        if few and result.in_process:
            return read, replace_rows(self._dml, self._sources, transaction, table, path, result.rows(), None)
        gone = self._dml.truncate(NamedEntry(lake, state, entry.schema, table.name), table)
        return read, gone + self._dml.append(table, result.rows())

    @staticmethod
    def _path(lake: Lake, state: CatalogState, table: Table) -> str:
        return quoted_path(lake.alias, state.schema_of(table).name, table.name)

    def _rows_in(self, lake: Lake, state: CatalogState, tables: Iterable[Table]) -> int:
        """Returns the number of rows of tables, from the catalog."""
        return sum(_rows_of(self._sources.scans.plan(lake, state, table)) for table in tables)

    # Rows by name

    @contextmanager
    def _registered(self) -> Iterator[None]:
        """Forgets the rows that are registered in the block."""
        registered = self._sources.names.registered
        before = set(registered)
        try:
            yield
        finally:
            for name in registered.keys() - before:
                del registered[name]

    def _register(self, rows: Rows, shown: str) -> str:
        return self._sources.names.register(rows, shown)

    # EXPLAIN and the list

    def explain(self, name: op.TableName | None) -> Result:
        """Returns a row per source of a live table: how a refresh would read it. Reads no rows, and changes nothing."""
        if name is not None:
            entry = self._sources.names.entry(name)
            found = [(entry.lake, entry.state, entry.table())]
        else:
            lake = self._lakes.get()
            state = self._lakes.state(lake)
            found = [(lake, state, table) for table, _ in self._definitions(lake, state)]
        rows: list[tuple[object, ...]] = []
        info = RunInfo()
        for lake, state, table in found:
            definition, begun = self._look.definition(lake, state, table)
            look = self._look.look(lake, state, table, definition, begun)
            info.note(lake.title, state.snapshot.snapshot_id)
            rows += self._explained(lake, state, table, definition, look)
        shapes = [
            ("table", "varchar"), ("mode", "varchar"), ("reason", "varchar"), ("source", "varchar"), ("read", "varchar"),
            ("files", "int64"), ("bytes", "int64"),
        ]  # fmt: skip
        return Result(_table(shapes, rows), info=info, engine=self._engine)

    def _explained(
        self, lake: Lake, state: CatalogState, table: Table, definition: Definition, look: Look
    ) -> Iterator[tuple[object, ...]]:
        title = state.qualified_name(table)
        if look.mode == "nothing":
            yield (title, look.mode, look.reason, None, None, 0, 0)
            return
        if look.mode == "full":
            for source in look.tables.values():
                plan = self._sources.scans.plan(lake, state, source)
                size = plan.bytes_read
                yield (title, look.mode, look.reason, state.qualified_name(source), "all rows", len(plan.files), size)
            if not look.tables:
                yield (title, look.mode, look.reason, None, "all rows", None, None)
            return
        others = "rows that they join" if look.adds else "rows of affected keys"
        first, last = definition.snapshot + 1, state.snapshot.snapshot_id
        for source, feed in {own.table_id: (own, plan) for own, plan in look.changes.values()}.values():
            files = {file.path: file.data_file.file_size_bytes for file in feed.files}
            read = f"changes of snapshots {first} to {last}, and {others}"
            size = sum(files.values())
            yield (title, look.mode, look.reason, state.qualified_name(source), read, len(files), size)
        unchanged = look.tables.keys() - {own.table_id for own, _ in look.changes.values()}
        for table_id in sorted(unchanged):
            read = others
            yield (title, look.mode, look.reason, state.qualified_name(look.tables[table_id]), read, None, None)
        if not look.tables:
            yield (title, look.mode, look.reason, None, None, 0, 0)

    def listed(self) -> Result:
        """Returns a row per live table of the current lake: its query, sources, and the snapshots it is behind."""
        lake = self._lakes.get()
        state = self._lakes.state(lake)
        rows: list[tuple[object, ...]] = []
        for table, definition in self._definitions(lake, state):
            with lake.connect() as connection:
                found = attachments.tag_of(connection, state.snapshot.snapshot_id, table.table_id, attachments.LIVE)
                behind = self._behind(lake, state, definition)
            sources = ", ".join(sorted(definition.sources.values()))
            query = definition.sql.replace("{DUCKLAKE_CATALOG}.", "")
            refreshed = found[1] if found is not None else None
            rows.append((state.qualified_name(table), definition.snapshot, refreshed, behind, sources, query))
        shapes = [
            ("table", "varchar"), ("snapshot", "int64"), ("refreshed", "int64"), ("behind", "int64"),
            ("sources", "varchar"), ("query", "varchar"),
        ]  # fmt: skip
        info = RunInfo()
        info.note(lake.title, state.snapshot.snapshot_id)
        return Result(_table(shapes, rows), info=info, engine=self._engine)

    def _behind(self, lake: Lake, state: CatalogState, definition: Definition) -> int | None:
        """Returns the number of snapshots that changed rows of its sources since; None if some have expired."""
        with lake.connect() as connection:
            history = since(connection, definition.snapshot, state.snapshot.snapshot_id)
        if history is None:
            return None
        ids = {table.table_id for table in (state.tables[i] for i in state.tables) if table.uuid in definition.sources}
        return len({snapshot for table_id in ids for snapshot in history.of_rows(table_id)})

    def _result(self, done: Sequence[Refreshed]) -> Result:
        shapes = [
            ("table", "varchar"), ("mode", "varchar"), ("reason", "varchar"), ("rows_read", "int64"),
            ("rows_changed", "int64"), ("seconds", "float64"), ("snapshot", "int64"),
        ]  # fmt: skip
        rows = [(d.table, d.mode, d.reason, d.rows_read, d.rows_changed, d.seconds, d.snapshot) for d in done]
        return Result(_table(shapes, rows), engine=self._engine, is_query=False)

    def _check_alone(self, what: str) -> None:
        if self._lakes.in_transaction:
            raise TransactionError(
                f"{what} reads committed rows, and commits by itself; COMMIT or ROLLBACK the open transaction first."
            )
        self._transactions.check_present()


def _rows_of(plan: ScanPlan) -> int:
    return live_rows(plan.files) + (plan.inlined.rows.num_rows if plan.inlined is not None else 0)


def _quoted_names(table: Table) -> list[str]:
    return [quote_identifier(column.name) for column in table.columns]


def _column_type(name: str, kind: str) -> DataType:
    data_type = type_or_none(kind)
    if data_type is None:
        raise UnsupportedFeatureError(f'Column "{name}" has the type {kind}, which lakes do not have; cast it.')
    return data_type


def _table(shapes: Sequence[tuple[str, str]], rows: Sequence[tuple[object, ...]]) -> InMemory:
    fields = [DataType(kind).field(name) for name, kind in shapes]
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(fields)]
    return InMemory(pa.table(arrays, schema=pa.schema(fields)))
