"""Runs parsed statements; dispatches each kind to its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pyarrow as pa

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import (
    BindError,
    DuckLakeError,
    EntryNotFoundError,
    UnknownColumnError,
    UnsupportedFeatureError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.maintenance import checkpoint
from ducklake_lab.model.quoting import quote_identifier, quoted_path
from ducklake_lab.session.functions import BlameCall, FeedCall, LifeCall
from ducklake_lab.session.names.read_states import Use
from ducklake_lab.session.names.secrets import Secrets
from ducklake_lab.session.names.stored_definitions import portable
from ducklake_lab.session.rows import logs
from ducklake_lab.session.rows.concurrent_changes import may_have_changed
from ducklake_lab.session.rows.feed import feed_result
from ducklake_lab.session.rows.result import Result, RunInfo, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.checking import Checking
from ducklake_lab.session.statements.copy import Copying
from ducklake_lab.session.statements.copy_database import copy_database
from ducklake_lab.session.statements.ddl import Ddl
from ducklake_lab.session.statements.defaults import check_defaults
from ducklake_lab.session.statements.definitions import Definitions
from ducklake_lab.session.statements.describing import Describing
from ducklake_lab.session.statements.explain import explain
from ducklake_lab.session.statements.live.tables import LiveTables
from ducklake_lab.session.statements.macro_checks import check_bodies
from ducklake_lab.session.statements.row_statements import RowStatements
from ducklake_lab.session.statements.session_database import LocalStatements
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse, parse_query, plan_query
from ducklake_lab.sql.parse.references import words_of
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.planner import plan_in_process, without_pivots

Attach = Callable[[op.Attach], None]
#: Operations that one commit of a lake covers; maintenance functions commit several times.
_CHANGES = (op.EntryStatement, op.Insert, op.InsertLiterals, op.Update, op.Delete, op.Merge, op.Truncate)
#: Operations that note all that they read, with their use of it; others may read anything.
_USES: Mapping[type, Use] = {
    op.Query: "look",
    op.Insert: "change",
    op.InsertLiterals: "change",
    op.Update: "change each",
    op.Delete: "change each",
    op.Merge: "change",
    op.Truncate: "change each",
    op.Use: "look",
}

#: Operations whose effects a rollback leaves, and first words of others: files, secrets and lakes of the session.
_KEPT = (op.CopyTo, op.Attach, op.Detach, op.CreateSecret, op.DropSecret)
_KEPT_WORDS = frozenset(("INSTALL", "FORCE", "UPDATE_EXTENSIONS"))


def _use_of(operation: op.Operation) -> Use:
    if isinstance(operation, op.Call) and operation.function.name.casefold() == "set_commit_message":
        return "change"  # it reads no rows
    return _USES.get(type(operation))


def _check_revertible(statement: op.Statement) -> None:
    """Raises UsageError where a preview cannot take a statement's effects back, or would end with it."""
    operation = statement.operation
    if isinstance(operation, op.Begin | op.Commit | op.Rollback):
        raise UsageError("A preview ends with its transaction open; leave BEGIN, COMMIT and ROLLBACK out.")
    is_kept = isinstance(operation, op.Other) and operation.words[0] in _KEPT_WORDS
    if is_kept or isinstance(operation, _KEPT):
        raise UsageError(
            f"{words_of(statement.sql)[0]} has effects that no rollback takes back, so there is no preview of it; run it alone."
        )


class Statements:
    """Dispatches operations of one session.

    Attributes:
        live: its live tables.
    """

    def __init__(
        self,
        transactions: Transactions,
        sources: Sources,
        engine: SparkEngine,
        attach: Attach,
        database: SessionDatabase,
        secrets: Secrets,
    ) -> None:
        self._transactions = transactions
        self._lakes = lakes = transactions.lakes
        self._sources = sources
        self._database = database
        self._local = LocalStatements(transactions, sources, database, engine)
        self._copying = Copying(lakes, sources, database, engine, self.run)
        self._prepared: dict[str, str] = {}
        self._ddl = Ddl(transactions)
        self._definitions = Definitions(transactions, sources.names.entry, sources.names.system.view_columns)
        self._rows = RowStatements(transactions, sources, engine, database, self._ddl)
        self.live = LiveTables(transactions, sources, engine, self._ddl)
        self._described = Describing(sources, database)
        self.checking = Checking(transactions, sources, engine)
        transactions.checks = self.checking.settle
        transactions.finds_changes = may_have_changed
        self._attach = attach
        self._secrets = secrets
        self._engine = engine

    def run_statement(self, statement: op.Statement) -> Result:
        """Runs one statement of a text; returns its result."""
        operation = statement.operation
        if self._transactions.is_previewing:
            _check_revertible(statement)
        if not isinstance(operation, op.Rollback | op.Commit):
            self._transactions.check_usable()
        written = self._local.metadata_target(statement)
        if written is not None:
            return self._local.write_metadata(written, statement)
        match operation:
            case op.Attach() if (
                not operation.uri.startswith("ducklake:") and operation.options.get("type") != "ducklake"
            ):
                return self._local.run(statement)
            case op.Query():
                with self._lakes.reads.noting("look"):
                    return self._sources.statement(operation)
            case op.CreateView(temporary=True):
                return self._local.create_view(statement, operation)
            case _ if isinstance(operation, op.LiveStatement):
                return self.live.run(operation)
            case op.Explain():
                return explain(operation.operation, self._sources, analyze=operation.analyze)
            case op.Other():
                return self._local.run_other(statement, operation)
            case op.CopyTo():
                return self._copying.to_file(operation)
            case op.CopyFrom() if not self._sources.names.owns(operation.table):
                return self._copying.from_file(operation)
            case op.CopyDatabase():
                return copy_database(self._transactions, self._database, operation, statement.sql, self.run_statement)
            case op.CreateSecret():
                self._secrets.create(operation, {k: self._sources.names.value(v) for k, v in operation.options.items()})
                return Result(InMemory(pa.table({"Success": [True]})), is_query=False)
            case op.DropSecret():
                self._secrets.drop(operation)
                return nothing()
            case op.Call(function=op.TableName(schema=None)) if operation.function.name.casefold() in logs.FUNCTIONS:
                logs.set_up_log(operation.function.name.casefold(), statement.sql, self._lakes.options, self._database)
                return nothing()
            case op.Prepare():
                self._prepared[operation.name.casefold()] = operation.text
                return nothing()
            case op.Execute():
                return self._execute(operation)
            case op.Deallocate():
                self._prepared_text(operation.name)
                del self._prepared[operation.name.casefold()]
                return nothing()
            case _ if self._local.owns(statement):
                return self._local.run(statement)
        return self.run(operation)

    def run(self, operation: op.Operation) -> Result:
        """Runs one operation on a lake; returns its result. A change that conflicts with another commit runs again."""
        check_defaults(self._database, operation)
        use = _use_of(operation)
        if use is None:
            return self._run_again(operation)
        with self._lakes.reads.noting(use):
            return self._run_again(operation)

    def _run_again(self, operation: op.Operation) -> Result:
        if isinstance(operation, _CHANGES):
            reads = not isinstance(operation, op.InsertLiterals)
            return until_committed(self._transactions, lambda: self._run(operation), reads=reads)
        return self._run(operation)

    def _run(self, operation: op.Operation) -> Result:
        if not isinstance(operation, op.Rollback | op.Commit):
            self._transactions.check_usable()
        match operation:
            case op.Query():
                return self._sources.query(operation)
            case op.Insert() | op.InsertLiterals():
                return self._rows.insert(operation)
            case op.Update():
                return self._rows.update(operation)
            case op.Delete():
                return self._rows.delete(operation)
            case op.Merge():
                return self._rows.merge(operation)
            case op.Truncate():
                return self._rows.truncate(operation)
            case op.CreateTable():
                return self._rows.create_table(operation)
            case op.DropTable():
                self._ddl.drop_table(self._sources.names.entry(operation.name), if_exists=operation.if_exists)
            case op.CreateSchema():
                self._ddl.create_schema(operation)
            case op.DropSchema():
                self._ddl.drop_schema(operation)
            case op.SetOptions():
                values = self._sources.names.values(operation.options)
                self._ddl.set_options(self._sources.names.entry(operation.table), operation, values)
            case op.ResetOptions():
                self._ddl.reset_options(self._sources.names.entry(operation.table), operation)
            case _ if isinstance(operation, op.Alteration):
                self._alter(operation)
            case op.CreateView():
                self._definitions.create_view(operation, lambda: self._check_view(operation))
            case op.DropView():
                self._definitions.drop_view(operation)
            case op.RenameView():
                self._definitions.rename_view(operation)
            case op.CreateMacro():
                self._definitions.create_macro(operation, partial(check_bodies, self._sources, operation))
            case op.DropMacro():
                self._definitions.drop_macro(operation)
            case op.Comment():
                self._definitions.comment(operation)
            case op.Begin():
                self._transactions.begin()
            case op.Commit():
                alias, snapshot = self._transactions.written, self._transactions.commit()
                return nothing(RunInfo([(alias, snapshot.snapshot_id)] if alias and snapshot is not None else []))
            case op.Rollback():
                self._transactions.rollback()
            case op.Attach():
                self._attach(operation)
            case op.Detach():
                self._detach(operation)
            case op.Use():
                self._use(operation)
            case op.Checkpoint():
                self._checkpoint(operation)
            case op.Call():
                return self._call(operation)
            case op.Check():
                return self.checking.check(self._sources.names.entry(operation.table), operation.since)
            case op.Listing():
                return self._described.show(operation)
            case op.Describe():
                return self._described.describe(operation)
            case _:
                raise UnsupportedFeatureError(f"{type(operation).__name__.upper()} is not supported yet.")
        return nothing()

    # USE, prepared statements

    def _use(self, statement: op.Use) -> None:
        parts = statement.parts
        if self._lakes.find(parts[0]) is None and self._database.is_attached(parts[0]):
            self._lakes.leave()
            self._database.use(parts)
        elif len(parts) == 1 and self._lakes.at_home and self._database.has_schema(parts[0]):
            self._database.use(("memory", *parts))
        else:
            self._lakes.use(parts)

    def _execute(self, statement: op.Execute) -> Result:
        params: dict[str, object] = {
            str(number): self._sources.names.value(value) for number, value in enumerate(statement.args, 1)
        }
        params.update({name: self._sources.names.value(value) for name, value in statement.kwargs.items()})
        result = nothing()
        for inner in parse(self._prepared_text(statement.name), params, keep_refused=True):
            result = self.run_statement(inner)
        return result

    def _prepared_text(self, name: str) -> str:
        text = self._prepared.get(name.casefold())
        if text is None:
            raise EntryNotFoundError(f'There is no prepared statement "{name}".{did_you_mean(name, self._prepared)}')
        return text

    # Rows of the program

    def append(self, name: op.TableName, rows: Rows) -> Result:
        """Appends rows of the program; matches columns by name. Runs again as `run` does."""
        # a DataFrame may read the lake
        with nullcontext() if rows.is_on_spark else self._lakes.reads.noting("change"):
            return self._append(name, rows)

    def _append(self, name: op.TableName, rows: Rows) -> Result:
        return until_committed(self._transactions, lambda: self._rows.append(name, rows), reads=rows.is_on_spark)

    def create(self, name: op.TableName, rows: Rows, *, replace: bool) -> Result:
        """Creates a table of rows of the program, whose types DuckDB names."""
        view = self._sources.names.register(rows)
        try:
            return self.run(op.CreateTable(name, query=parse_query(f"SELECT * FROM {view}"), replace=replace))
        finally:
            del self._sources.names.registered[view]

    # Definitions

    def _alter(self, statement: op.Alteration) -> None:
        entry = self._sources.names.entry(statement.table)
        if isinstance(statement, op.Expect) and statement.kind == "query":
            self.checking.check_query(entry, statement.sql)
            statement = replace(statement, sql=portable(statement.sql, entry.lake.alias))

        def has_nulls(column: str) -> bool:
            name = quoted_path(entry.lake.alias, entry.schema, entry.name)
            query = parse(f"SELECT 1 FROM {name} WHERE {quote_identifier(column)} IS NULL LIMIT 1")[0].operation
            assert isinstance(query, op.Query)
            return bool(self._sources.query(query).fetchall())

        self._ddl.alter(entry, statement, has_nulls)

    def _check_view(self, statement: op.CreateView) -> None:
        """Raises if the query of a new view cannot be bound; passes queries that only other clients support."""
        entry, names = self._sources.names.entry(statement.name, sought="new"), self._sources.names
        place = (entry.lake.alias, entry.schema)

        def check(plan: QueryPlan) -> QueryPlan:
            self._database.describe(plan.duckdb_sql, self._sources.loader.empty(plan), plan.macros)
            return plan

        try:
            plan = check(plan_query(without_pivots(statement.query), names, place))
        except UnsupportedFeatureError:
            return
        except UnknownColumnError as error:
            try:
                plan = check(plan_in_process(statement.sql, names, error, lake_schema=place))
            except DuckLakeError:
                raise error from None
        if plan.columns is not None and len(statement.columns) > len(plan.columns):
            raise BindError(
                f"{statement.name.name} names {len(statement.columns)} columns, but its query has {len(plan.columns)}."
            )

    # Lakes

    def _detach(self, statement: op.Detach) -> None:
        # a lake is useless without its catalog database
        lake = self._lakes.find(statement.alias) or self._lakes.metadata_of(statement.alias)
        if lake is None and self._database.is_attached(statement.alias):
            self._database.run(f"DETACH {quote_identifier(statement.alias)}")
        elif lake is not None or not statement.if_exists:
            self._lakes.remove(lake or self._lakes.get(statement.alias))

    def _checkpoint(self, statement: op.Checkpoint) -> None:
        lake = self._lakes.get(statement.lake)
        with self._transactions.aside():
            for step in checkpoint.STEPS:
                self._sources.names.functions.evaluate(lake.alias, None, step, [], {}, effects="run")

    def _call(self, statement: op.Call) -> Result:
        name = statement.function
        if name.schema is None and not self._sources.names.functions.knows(None, None, name.name):
            self._local.refuse_call(name.name)
        args = [self._sources.names.value(argument) for argument in statement.args]
        kwargs = {key: self._sources.names.value(argument) for key, argument in statement.kwargs.items()}
        answer = self._sources.names.functions.evaluate(
            name.catalog, name.schema, name.name, args, kwargs, effects="run"
        )
        if isinstance(answer, BlameCall | LifeCall):
            return self._sources.blames.result(answer)
        if isinstance(answer, FeedCall):
            return feed_result(self._lakes, answer, self._engine)
        return Result(InMemory(answer), engine=self._engine)
