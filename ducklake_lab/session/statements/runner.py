"""Runs parsed statements; dispatches each kind to its module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pyarrow as pa

from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.in_process.literal_rows import literal_rows
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import (
    BindError,
    EntryExistsError,
    EntryNotFoundError,
    UnsupportedFeatureError,
    did_you_mean,
)
from ducklake_lab.maintenance import checkpoint
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import quote_identifier, quoted_path
from ducklake_lab.model.types import DataType
from ducklake_lab.session.functions import BlameCall, FeedCall, LifeCall
from ducklake_lab.session.names.attached_lakes import Place
from ducklake_lab.session.names.secrets import Secrets
from ducklake_lab.session.rows import logs
from ducklake_lab.session.rows.feed import feed_result, plan_call
from ducklake_lab.session.rows.result import Result, RunInfo, count_result, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.copy import Copying
from ducklake_lab.session.statements.copy_database import copy_database
from ducklake_lab.session.statements.ddl import Ddl, build_columns
from ducklake_lab.session.statements.defaults import with_defaults
from ducklake_lab.session.statements.definitions import Definitions
from ducklake_lab.session.statements.describing import Describing
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.statements.explain import explain
from ducklake_lab.session.statements.macro_checks import check_bodies
from ducklake_lab.session.statements.merge import merge
from ducklake_lab.session.statements.session_database import LocalStatements
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import (
    QueryPlan,
    parse,
    parse_query,
    plan_delete,
    plan_in_process,
    plan_insert,
    plan_merge,
    plan_query,
    plan_update,
    targets,
)
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.planning.planner import as_text, without_pivots
from ducklake_lab.sql.planning.writes import matched_by_name
from ducklake_lab.sql.types import type_or_none
from ducklake_lab.transaction.transaction import Transaction

Attach = Callable[[op.Attach], None]
#: Operations that one commit of a lake covers; maintenance functions commit several times.
_CHANGES = (
    op.Insert,
    op.InsertLiterals,
    op.Update,
    op.Delete,
    op.Merge,
    op.Truncate,
    op.CreateTable,
    op.DropTable,
    op.CreateSchema,
    op.DropSchema,
    op.Alteration,
    op.SetOptions,
    op.ResetOptions,
    op.CreateView,
    op.DropView,
    op.RenameView,
    op.CreateMacro,
    op.DropMacro,
    op.Comment,
)


class Statements:
    """Dispatches operations of one session."""

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
        self._definitions = Definitions(transactions, sources.names.place, sources.names.system.view_columns)
        self._dml = Dml(lakes, sources, engine)
        self._described = Describing(lakes, sources, database)
        self._attach = attach
        self._secrets = secrets
        self._engine = engine

    def run_statement(self, statement: op.Statement) -> Result:
        """Runs one statement of a text; returns its result."""
        operation = statement.operation
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
                return self._sources.statement(operation)
            case op.CreateView(temporary=True):
                return self._local.create_view(statement, operation)
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
                return Result(arrow=pa.table({"Success": [True]}), is_query=False)
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
                return self._insert(operation)
            case op.Update():
                return self._update(operation)
            case op.Delete():
                return self._delete(operation)
            case op.Merge():
                return self._merge(operation)
            case op.Truncate():
                return self._truncate(operation)
            case op.CreateTable():
                return self._create_table(operation)
            case op.DropTable():
                self._ddl.drop_table(self._sources.names.place(operation.name), if_exists=operation.if_exists)
            case op.CreateSchema():
                self._ddl.create_schema(operation)
            case op.DropSchema():
                self._ddl.drop_schema(operation)
            case op.AddColumn() | op.DropColumn() | op.RenameColumn() | op.RenameTable():
                self._alter(operation)
            case op.SetColumnType() | op.SetDefault() | op.SetNotNull():
                self._alter(operation)
            case op.SetPartitionedBy() | op.ResetPartitionedBy() | op.SetSortedBy():
                self._alter(operation)
            case op.SetOptions():
                values = self._sources.names.values(operation.options)
                self._ddl.set_options(self._sources.names.place(operation.table), operation, values)
            case op.ResetOptions():
                self._ddl.reset_options(self._sources.names.place(operation.table), operation)
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
            case op.ShowTables():
                return self._described.show_tables(operation)
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

    # Rows

    @contextmanager
    def _changing(self, name: op.TableName) -> Iterator[tuple[Transaction, Place]]:
        """Opens the block of a statement that changes rows; yields its transaction and the entry in it."""
        place = self._sources.names.place(name)
        with self._transactions.writing(place.lake) as transaction:
            yield transaction, replace(place, state=transaction.state)

    def _insert(self, statement: op.Insert | op.InsertLiterals) -> Result:
        with self._changing(statement.table) as (transaction, place):
            table = place.table()
            rows = self._literal_rows(statement, table) if isinstance(statement, op.InsertLiterals) else None
            if rows is not None:
                transaction.is_one_statement = not self._lakes.in_transaction
                count = self._dml.append(table, InMemory(rows))
            else:
                if isinstance(statement, op.InsertLiterals):
                    statement = _parsed(statement)
                plan = self._plan_insert(statement, table)
                transaction.is_one_statement = not self._lakes.in_transaction
                count = self._dml.append(table, self._sources.run(plan, purpose="change").rows())
        return count_result(count, _made_by(transaction))

    def append(self, name: op.TableName, rows: Rows) -> Result:
        """Appends rows of the program; matches columns by name. Runs again as `run` does."""
        # a DataFrame may read the lake
        return until_committed(self._transactions, lambda: self._append(name, rows), reads=rows.is_on_spark)

    def create(self, name: op.TableName, rows: Rows, *, replace: bool) -> Result:
        """Creates a table of rows of the program, whose types DuckDB names."""
        view = self._sources.names.register(rows)
        try:
            return self.run(op.CreateTable(name, query=parse_query(f"SELECT * FROM {view}"), replace=replace))
        finally:
            del self._sources.names.registered[view]

    def _append(self, name: op.TableName, rows: Rows) -> Result:
        names = self._sources.names
        with self._changing(name) as (transaction, place):
            table = place.table()
            columns = with_defaults(names, table)
            given = matched_by_name(name, [column for column, _ in rows.columns], columns)
            if any(c.default_value_type == "expression" and c.default_value and c not in given for c in columns):
                fitted = self._with_defaults_by_row(name, rows, table)
            else:
                is_here = self._engine.placing.place(facts_of_rows([rows], "change")).is_here
                near = rows.here() if is_here else rows.run_by(self._engine).near(self._dml.few(table))
                fitted = near.fit(columns, names.settings())
            transaction.is_one_statement = not self._lakes.in_transaction
            count = self._dml.append(table, fitted)
        return count_result(count, _made_by(transaction))

    def _with_defaults_by_row(self, name: op.TableName, rows: Rows, table: Table) -> Rows:
        view = self._sources.names.register(rows)
        try:
            insert = op.Insert(name, columns=None, query=parse_query(f"SELECT * FROM {view}").tree, by_name=True)
            return self._sources.run(self._plan_insert(insert, table), purpose="change").rows()
        finally:
            del self._sources.names.registered[view]

    def _literal_rows(self, statement: op.InsertLiterals, table: Table) -> pa.Table | None:
        """Returns the rows of an INSERT of literals; None if they must be planned."""
        columns = with_defaults(self._sources.names, table)
        if any(column.default_value_type == "expression" for column in columns):
            return None  # the default has a value for each row
        return literal_rows(statement.rows, targets(statement.head, columns), columns, self._database.time_zone())

    def _plan_insert(self, statement: op.Insert, table: Table) -> QueryPlan:
        try:
            return plan_insert(statement, with_defaults(self._sources.names, table), self._sources.names)
        except (BindError, UnsupportedFeatureError) as error:
            if statement.query is None:
                raise
            # first DuckDB computes what Spark cannot
            plan = plan_in_process(as_text(op.Query(statement.query)), self._sources.names, error)
            view = self._sources.names.register(self._sources.run(plan, purpose="change").rows().here())
            rows = parse(f"SELECT * FROM {view}")[0].operation
            assert isinstance(rows, op.Query)
            return plan_insert(
                replace(statement, query=rows.tree), with_defaults(self._sources.names, table), self._sources.names
            )

    def _update(self, statement: op.Update) -> Result:
        with self._changing(statement.table) as (transaction, place):
            transaction.is_one_statement = not self._lakes.in_transaction
            table = place.table()
            count = self._dml.update(
                table, plan_update(statement, with_defaults(self._sources.names, table), self._sources.names)
            )
        return count_result(count, _made_by(transaction))

    def _delete(self, statement: op.Delete) -> Result:
        with self._changing(statement.table) as (transaction, place):
            table = place.table()
            count = self._dml.delete(table, plan_delete(statement, self._sources.names))
        return count_result(count, _made_by(transaction))

    def _merge(self, statement: op.Merge) -> Result:
        with self._changing(statement.table) as (transaction, place):
            table = place.table()
            plan = plan_merge(statement, with_defaults(self._sources.names, table), self._sources.names)
            transaction.is_one_statement = not self._lakes.in_transaction
            count = merge(self._dml, table, plan)
        return count_result(count, _made_by(transaction))

    def _truncate(self, statement: op.Truncate) -> Result:
        with self._changing(statement.table) as (transaction, place):
            count = self._dml.truncate(place, place.table())
        return count_result(count, _made_by(transaction))

    # CREATE TABLE

    def _create_table(self, statement: op.CreateTable) -> Result:
        place = self._sources.names.place(statement.name)
        if place.find() is not None:
            if statement.if_not_exists:
                return nothing()
            if not statement.replace:
                raise EntryExistsError(
                    f"There is a table {place.schema}.{place.name} already; use CREATE OR REPLACE or IF NOT EXISTS."
                )
        count = None
        with self._transactions.writing(place.lake) as transaction:
            if statement.query is None:
                self._create(place, build_columns(statement.columns), statement)
            else:
                count = self._create_from_query(place, statement, statement.query)
        info = _made_by(transaction)
        return nothing(info) if count is None else count_result(count, info)

    def _create(self, place: Place, columns: Sequence[Column], statement: op.CreateTable) -> Table:
        return self._ddl.create_table(
            place, columns, replace_existing=statement.replace, partitioned_by=statement.partitioned_by
        )

    def _create_from_query(self, place: Place, statement: op.CreateTable, query: op.Query) -> int:
        result = self._sources.query(query, purpose="change")
        types = [self._column_type(name, kind) for name, kind in zip(result.columns, result.types, strict=True)]
        definitions = [op.ColumnDef(name, kind) for name, kind in zip(result.columns, types, strict=True)]
        table = self._create(place, build_columns(definitions), statement)
        if not statement.with_data:
            return 0
        return self._dml.append(table, result.rows())

    @staticmethod
    def _column_type(name: str, kind: str) -> DataType:
        known = type_or_none(kind)
        if known is None:
            raise UnsupportedFeatureError(f'Column "{name}" has the type {kind}, which lakes do not have; cast it.')
        return known

    def _alter(self, statement: op.Alteration) -> None:
        place = self._sources.names.place(statement.table)

        def has_nulls(column: str) -> bool:
            name = quoted_path(place.lake.alias, place.schema, place.name)
            query = parse(f"SELECT 1 FROM {name} WHERE {quote_identifier(column)} IS NULL LIMIT 1")[0].operation
            assert isinstance(query, op.Query)
            return bool(self._sources.query(query).fetchall())

        self._ddl.alter(place, statement, has_nulls)

    def _check_view(self, statement: op.CreateView) -> None:
        """Raises if the query of a new view cannot be bound; passes queries that only other clients support."""
        place = self._sources.names.place(statement.name)
        try:
            plan = plan_query(without_pivots(statement.query), self._sources.names, (place.lake.alias, place.schema))
            self._database.describe(plan.duckdb_sql, self._sources.empty(plan), plan.macros)
        except UnsupportedFeatureError:
            return
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
        args = [self._sources.names.value(argument) for argument in statement.args]
        kwargs = {key: self._sources.names.value(argument) for key, argument in statement.kwargs.items()}
        found = self._sources.names.functions.evaluate(
            name.catalog, name.schema, name.name, args, kwargs, effects="run"
        )
        if isinstance(found, BlameCall | LifeCall):
            return self._sources.blames.result(found)
        if isinstance(found, FeedCall):
            return feed_result(plan_call(self._lakes, found), self._engine)
        return Result(arrow=found, engine=self._engine)


def _parsed(statement: op.InsertLiterals) -> op.Insert:
    """Returns the statement with its rows as a syntax tree."""
    operation = parse(statement.text)[0].operation
    assert isinstance(operation, op.Insert)
    return operation


def _made_by(transaction: Transaction) -> RunInfo:
    """Returns the snapshot that a statement made, or the base snapshot of its open transaction."""
    snapshot, info = transaction.snapshot or transaction.base.snapshot, RunInfo()
    is_open = transaction.snapshot is None and transaction.has_changes
    info.note(transaction.lake.alias, snapshot.snapshot_id, uncommitted=is_open)
    return info
