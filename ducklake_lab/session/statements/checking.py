"""Checks expectations for a session: before its commits, and for the statement CHECK."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import BindError, CatalogError, UnsupportedFeatureError
from ducklake_lab.expectations import kept
from ducklake_lab.expectations.finding import find_target
from ducklake_lab.expectations.outcomes import FIRST_ROWS, Outcome
from ducklake_lab.expectations.settling import Answer, settle
from ducklake_lab.expectations.states import SinceRows, StagedTable, TableRows
from ducklake_lab.expectations.whole import WholeCheck, check_since
from ducklake_lab.model.entries import Table
from ducklake_lab.model.expectations import Expectation, expectations_of
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.names.stored_definitions import resolved
from ducklake_lab.session.rows.named_rows import LakeTable
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import parse_query, plan_query
from ducklake_lab.sql.parse.expectations import table_function
from ducklake_lab.sql.plan import QueryPlan, StoredView
from ducklake_lab.sql.planning.planner import without_pivots
from ducklake_lab.transaction.transaction import Transaction

_TEXTS = ("table", "expectation", "definition", "on_violation", "outcome")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("violations", pa.int64()),
        ("first_rows", pa.string()),
        ("snapshot", pa.int64()),
    ]
)


_HISTORY = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS[:3]),
        ("snapshot", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("violations", pa.int64()),
    ]
)


#: A table with the outcomes of its expectations.
Checked = tuple[Table, list[Outcome]]


class Checking:
    """Checks expectations with the engines and the names of a session."""

    def __init__(self, transactions: Transactions, sources: Sources, engine: SparkEngine) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._sources = sources
        self._engine = engine

    def settle(self, transaction: Transaction) -> None:
        """Checks what a transaction changes; see `settling.settle`."""
        settle(transaction, self._engine, self._ask_in)

    def check(self, entry: NamedEntry, since: At = None) -> Result:
        """Returns the outcome of each expectation of a table: whole, or of the rows since a snapshot.

        Counts of a whole table at the newest snapshot are kept, and the outcomes have the earlier ones. Columns: table, expectation, definition,
        on_violation, outcome (passed, warned or failed), violations, first_rows, snapshot.
        """
        checked = [(entry.table(), self._outcomes(entry, since))]
        return self._result(entry.lake, entry.state, checked, since)

    def check_all(self, since: At = None) -> Result:
        """Returns the outcomes of all tables of the current lake that have expectations."""
        lake = self._lakes.get()
        state = self._lakes.state(lake)
        checked = []
        for table in state.tables.expecting():
            entry = NamedEntry(lake, state, state.schema_of(table).name, table.name)
            checked.append((table, self._outcomes(entry, since)))
        return self._result(lake, state, checked, since)

    def history(self, entry: NamedEntry | None) -> Result:
        """Returns the kept results of checks, of one table or of all of the current lake: a row for each expectation and check.

        Columns: table, expectation, definition, snapshot, time, violations.
        """
        lake = entry.lake if entry is not None else self._lakes.get()
        state = entry.state if entry is not None else self._lakes.state(lake)
        with lake.connect() as connection:
            options = lake.options(connection)
        rows = []
        for table in [entry.table()] if entry is not None else state.tables.expecting():
            for expectation in expectations_of(table):
                target = find_target(state, expectation) if expectation.kind == "references" else None
                shown = expectation.shown(table, state.qualified_name(target) if target is not None else None)
                names = {"table": state.qualified_name(table), "expectation": expectation.name, "definition": shown}
                rows += [
                    {**names, "snapshot": point.snapshot_id, "time": point.time, "violations": point.count}
                    for point in kept.read(options, kept.key_of(table, expectation))
                ]
        return Result(InMemory(pa.Table.from_pylist(rows, schema=_HISTORY)), engine=self._engine)

    def came(self, lake: Lake, before: CatalogState, after: CatalogState, changed: Collection[str]) -> list[Outcome]:
        """Returns the outcomes of the expectations of changed tables of a branch between two of its states; see `check_since`."""

        def ask(table: Table, expectation: Expectation) -> Answer:
            with self._lakes.in_place(lake):
                return self._ask(NamedEntry(lake, after, after.schema_of(table).name, table.name), table, expectation)

        return check_since(lake, before, after, changed, self._engine, ask)

    def _outcomes(self, entry: NamedEntry, since: At) -> list[Outcome]:
        lake, state = entry.lake, entry.state
        table = entry.table()
        rows = self._rows(entry, table)
        if since is not None:
            before = self._lakes.state(lake, since)
            earlier = before.tables.get(table.table_id)
            if earlier is not None:
                rows = SinceRows(lake, state, table, rows.staged, rows.committed, before)
        return WholeCheck(
            rows,
            self._engine,
            lambda other: self._rows(entry, other),
            lambda one, expectation: self._ask(entry, one, expectation),
        ).run()

    def _result(self, lake: Lake, state: CatalogState, checked: Sequence[Checked], since: At) -> Result:
        info = RunInfo()
        transaction = self._lakes.transaction
        is_open = transaction is not None and transaction.state is state and transaction.has_changes
        info.note(lake.title, state.snapshot.snapshot_id, uncommitted=is_open)
        outcomes = [outcome for _, of_table in checked for outcome in of_table]
        if since is None and outcomes and not is_open:
            outcomes = self._kept(lake, state, checked, info)
        result = Result(InMemory(_table(outcomes, state.snapshot.snapshot_id)), info=info, engine=self._engine)
        result.outcomes = tuple(outcomes)
        if outcomes:
            result.grid = "none"  # the counts over time stand below the rows
        return result

    def _kept(self, lake: Lake, state: CatalogState, checked: Sequence[Checked], info: RunInfo) -> list[Outcome]:
        """Keeps the counts of whole tables, and returns the outcomes with those over time.

        Nothing is kept while a transaction is open, nor in a lake that is attached read-only or as of a snapshot.
        """
        with lake.connect() as connection:
            options = lake.options(connection)
        now = datetime.now(UTC)
        shown: list[Outcome] = []
        changed: dict[str, str | None] = {}
        for table, outcomes in checked:
            followed, to_set = kept.follow(options, table, outcomes, state.snapshot.snapshot_id, now)
            shown += followed
            changed |= to_set
        if changed and not lake.read_only and not self._lakes.in_transaction:
            try:
                with self._transactions.writing(lake) as transaction:
                    for key, text in changed.items():
                        transaction.set_option(kept.SCOPE, key, text)
            except CatalogError as error:
                # whoever may only read still gets the answer
                info.remarks.append(f"the counts are not kept: {error}")
        return shown

    def check_query(self, entry: NamedEntry, sql: str) -> None:
        """Checks the query of a new expectation.

        Raises:
            BindError: a name in it does not exist.
            UnsupportedFeatureError: it reads something other than tables of the lake.
        """
        self._plan(entry, sql, "The query of an expectation")

    def _rows(self, entry: NamedEntry, table: Table) -> TableRows:
        transaction = self._lakes.transaction
        if transaction is not None and entry.state is transaction.state:
            staged = StagedTable.of(transaction, table)
            return TableRows(entry.lake, entry.state, table, staged.staged, staged.committed)
        return TableRows(entry.lake, entry.state, table)

    def _ask_in(self, transaction: Transaction, table: Table, expectation: Expectation) -> Answer:
        schema = transaction.state.schema_of(table).name
        entry = NamedEntry(transaction.lake, transaction.state, schema, table.name)
        if self._lakes.transaction is transaction:
            return self._ask(entry, table, expectation)
        with self._lakes.in_place(transaction.lake, transaction):
            return self._ask(entry, table, expectation)

    def _ask(self, entry: NamedEntry, table: Table, expectation: Expectation) -> Answer:
        what = f"The expectation {expectation.name} of {table.name}"
        sql = resolved(expectation.sql, entry.lake.alias)
        plan = self._plan(entry, f"SELECT count(*) AS violations FROM ({sql}) AS bad", what)
        count = self._sources.run(plan).fetchall()[0][0]
        tables = [source.rows.table.table_id for source in plan.sources if isinstance(source.rows, LakeTable)]
        if not count:
            return Answer(0, pa.table({}), tables)
        first = self._plan(entry, f"SELECT * FROM ({sql}) AS bad LIMIT {FIRST_ROWS}", what)
        return Answer(count, self._sources.run(first).rows().head(FIRST_ROWS), tables)

    def _plan(self, entry: NamedEntry, sql: str, what: str) -> QueryPlan:
        """Plans a stored query, which may be anybody's: it reads tables of its lake and nothing else."""
        query = parse_query(sql)
        called = table_function(query)
        if called is not None:
            raise UnsupportedFeatureError(f"{what} calls {called}(); it may read tables and views of the lake alone.")
        plan = plan_query(without_pivots(query), self._sources.names, (entry.lake.alias, entry.schema))
        for source in plan.sources:
            if not isinstance(source.rows, LakeTable) or source.rows.lake is not entry.lake:
                raise UnsupportedFeatureError(
                    f"{what} reads more than tables of {entry.lake.alias}; that is not supported."
                )
        for definition, _ in plan.definitions:
            if not isinstance(definition, StoredView) or table_function(parse_query(definition.sql)) is not None:
                raise UnsupportedFeatureError(
                    f"{what} uses {definition.name}, which may read more than tables of the lake."
                )
        if self._sources.columns(plan) is None:
            raise BindError(f"{what} cannot be bound; run the query alone to see why.")
        return plan


def _table(outcomes: Sequence[Outcome], snapshot_id: int) -> pa.Table:
    rows = [
        {
            "table": outcome.table,
            "expectation": outcome.expectation.name,
            "definition": outcome.shown,
            "on_violation": outcome.expectation.on,
            "outcome": _word(outcome),
            "violations": outcome.count,
            "first_rows": outcome.first_text() or None,
            "snapshot": snapshot_id,
        }
        for outcome in outcomes
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _word(outcome: Outcome) -> str:
    if outcome.passed:
        return "passed"
    return "warned" if outcome.expectation.on == "warn" else "failed"
