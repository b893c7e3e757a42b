"""Statements on live tables. A refresh reads all sources at one snapshot, and commits rows and definition together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ducklake_lab.catalog import attachments
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb import canonical
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import DuckLakeError, EntryExistsError, RefreshError, TransactionError, UsageError
from ducklake_lab.live.definition import Definition
from ducklake_lab.model.entries import Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.session.names.stored_definitions import portable
from ducklake_lab.session.rows.result import Result, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.ddl import Ddl
from ducklake_lab.session.statements.live.listing import LiveListing, listed_rows
from ducklake_lab.session.statements.live.look import LiveLook, Look, Mode, tables_of
from ducklake_lab.session.statements.live.staging import LiveStaging
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The outcome of a refresh of a live table.

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
    """Creates, refreshes and drops live tables.

    Attributes:
        listing: explains and lists them.
    """

    def __init__(self, transactions: Transactions, sources: Sources, engine: SparkEngine, ddl: Ddl) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._sources = sources
        self._engine = engine
        self._look = LiveLook(transactions.lakes, sources)
        self._staging = LiveStaging(transactions.lakes, sources, engine, ddl, self._look)
        self.listing = LiveListing(transactions.lakes, sources, engine, self._look)

    def run(self, statement: op.LiveStatement) -> Result:
        """Runs a statement."""
        match statement:
            case op.CreateLiveTable():
                return self.create(statement)
            case op.Refresh():
                return self._result(self.refresh(statement.name))
            case op.ExplainRefresh():
                return self.listing.explain(statement.name)
            case op.DropLiveTable():
                self.drop(statement)
                return nothing()

    # CREATE and DROP

    def create(self, statement: op.CreateLiveTable) -> Result:
        """Creates a live table with the rows of its query, in one commit."""
        entry = self._sources.names.entry(statement.name, sought="new")
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
                now = self._look.now(entry.lake, definition, base, plan, tables)
                count = self._staging.made(transaction, entry, plan, now)
        title = f"{entry.schema}.{entry.name}"
        read = self._staging.rows_in(entry.lake, base, tables.values())
        return Refreshed(title, "full", "it is new", read, count, time.monotonic() - started, now.snapshot)

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
        """Refreshes a live table, or all of the current lake, sources before those that read them; a commit for each.

        Raises:
            RefreshError: some of all live tables could not be refreshed; the others are.
        """
        self._check_alone("REFRESH")
        if name is not None:
            entry = self._sources.names.entry(name)
            entry.table()
            return [self._refreshed(entry)]
        lake = self._lakes.get()
        done: list[Refreshed] = []
        failed: dict[str, DuckLakeError] = {}
        for state, names in self._all(lake):
            try:
                done.append(self._refreshed(NamedEntry(lake, state, *names)))
            except DuckLakeError as error:
                failed[".".join(names)] = error
        if failed:
            others = f"; the other {len(done)} are" if done else ""
            reasons = " ".join(f"{name}: {str(error).rstrip()}" for name, error in failed.items())
            raise RefreshError(
                f"{len(failed)} of {len(failed) + len(done)} live tables could not be refreshed{others}. {reasons}",
                failed,
                done,
            )
        return done

    def _all(self, lake: Lake) -> Iterator[tuple[CatalogState, tuple[str, str]]]:
        """Yields the schema and name of each live table of a lake, after those that it reads."""
        state = self._lakes.state(lake)
        for table, _ in self.listing.definitions(lake, state):
            newest = self._lakes.state(lake)
            if table.table_id in newest.tables:
                own = newest.tables[table.table_id]
                yield newest, (newest.schema_of(own).name, own.name)

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
            with self._lakes.standing_in(lake, definition.schema), self._staging.registered():
                staged = self._staging.changed(transaction, entry, table, look) if look.mode == "incremental" else None
                if isinstance(staged, str) or staged is None:
                    look = look if staged is None else replace(look, mode="full", reason=staged)
                    staged = self._staging.recomputed(transaction, entry, table, look)
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

    def _result(self, done: Sequence[Refreshed]) -> Result:
        shapes = [
            ("table", "varchar"), ("mode", "varchar"), ("reason", "varchar"), ("rows_read", "int64"),
            ("rows_changed", "int64"), ("seconds", "float64"), ("snapshot", "int64"),
        ]  # fmt: skip
        rows = [(d.table, d.mode, d.reason, d.rows_read, d.rows_changed, d.seconds, d.snapshot) for d in done]
        return Result(listed_rows(shapes, rows), engine=self._engine)

    def _check_alone(self, what: str) -> None:
        if self._lakes.in_transaction:
            raise TransactionError(
                f"{what} reads committed rows, and commits by itself; COMMIT or ROLLBACK the open transaction first."
            )
        self._transactions.check_present()
