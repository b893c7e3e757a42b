"""Runs statements that change rows, and CREATE TABLE; each begins its transaction here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.in_process.literal_rows import literal_rows
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import BindError, CapturedNameError, EntryExistsError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.live import check_not_live
from ducklake_lab.model.types import DataType
from ducklake_lab.session.names.attached_lakes import NamedEntry
from ducklake_lab.session.rows.result import Result, RunInfo, count_result, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.ddl import Ddl, build_columns
from ducklake_lab.session.statements.defaults import with_defaults
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.statements.merge import merge
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import (
    QueryPlan,
    parse,
    parse_query,
    plan_delete,
    plan_in_process,
    plan_insert,
    plan_merge,
    plan_update,
    targets,
)
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.planning.merge import source_of
from ducklake_lab.sql.planning.planner import as_text
from ducklake_lab.sql.planning.writes import matched_by_name
from ducklake_lab.sql.types import type_or_none
from ducklake_lab.transaction.transaction import Transaction


class RowStatements:
    """Plans and runs INSERT, UPDATE, DELETE, MERGE, TRUNCATE and CREATE TABLE of one session."""

    def __init__(
        self,
        transactions: Transactions,
        sources: Sources,
        engine: SparkEngine,
        database: SessionDatabase,
        ddl: Ddl,
    ) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._sources = sources
        self._engine = engine
        self._database = database
        self._ddl = ddl
        self._dml = Dml(transactions.lakes, sources, engine)

    @contextmanager
    def _changing(self, name: op.TableName) -> Iterator[tuple[Transaction, NamedEntry]]:
        """Opens the block of a statement that changes rows; yields its transaction and the entry in it."""
        entry = self._sources.names.entry(name)
        with self._transactions.writing(entry.lake) as transaction:
            now = replace(entry, state=transaction.state)
            table = now.find()
            if table is not None:
                check_not_live(table, now.state.qualified_name(table))
            yield transaction, now

    def insert(self, statement: op.Insert | op.InsertLiterals) -> Result:
        with self._changing(statement.table) as (transaction, entry):
            table = entry.table()
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
        return counted(count, transaction, entry)

    def append(self, name: op.TableName, rows: Rows) -> Result:
        names = self._sources.names
        with self._changing(name) as (transaction, entry):
            table = entry.table()
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
        return counted(count, transaction, entry)

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
            if statement.query is None or isinstance(error, CapturedNameError):
                raise
            # first DuckDB computes what Spark cannot
            plan = plan_in_process(as_text(op.Query(statement.query)), self._sources.names, error)
            view = self._sources.names.register(self._sources.run(plan, purpose="change").rows().here())
            rows = parse(f"SELECT * FROM {view}")[0].operation
            assert isinstance(rows, op.Query)
            return plan_insert(
                replace(statement, query=rows.tree), with_defaults(self._sources.names, table), self._sources.names
            )

    def update(self, statement: op.Update) -> Result:
        with self._changing(statement.table) as (transaction, entry):
            transaction.is_one_statement = not self._lakes.in_transaction
            table = entry.table()
            count = self._dml.update(
                table, plan_update(statement, with_defaults(self._sources.names, table), self._sources.names)
            )
        return counted(count, transaction, entry)

    def delete(self, statement: op.Delete) -> Result:
        with self._changing(statement.table) as (transaction, entry):
            table = entry.table()
            count = self._dml.delete(table, plan_delete(statement, self._sources.names))
        return counted(count, transaction, entry)

    def merge(self, statement: op.Merge) -> Result:
        with self._changing(statement.table) as (transaction, entry):
            table = entry.table()
            transaction.is_one_statement = not self._lakes.in_transaction
            with self._planned_merge(statement, table) as plan:
                count = merge(self._dml, table, plan)
        return counted(count, transaction, entry)

    @contextmanager
    def _planned_merge(self, statement: op.Merge, table: Table) -> Iterator[QueryPlan]:
        """Plans a MERGE; one for Spark with few rows in its source reads these first, so that they find the changed rows."""
        names, limits = self._sources.names, self._engine.placing.limits
        columns = with_defaults(names, table)
        plan, info = plan_merge(statement, columns, names), RunInfo()
        if self._sources.placed(plan, self._sources.load_all(plan, info, purpose="change"), info, "change").is_here:
            yield plan
            return
        source = self._sources.query(source_of(statement), purpose="change")
        rows = source.head(limits.source_rows + 1)
        if rows.num_rows > limits.source_rows:
            yield plan
            return
        view = names.register(InMemory(rows))
        try:
            yield plan_merge(statement, columns, names, registered=view)
        finally:
            del names.registered[view]

    def truncate(self, statement: op.Truncate) -> Result:
        with self._changing(statement.table) as (transaction, entry):
            count = self._dml.truncate(entry, entry.table())
        return counted(count, transaction, entry)

    def create_table(self, statement: op.CreateTable) -> Result:
        entry = self._sources.names.entry(statement.name, sought="new")
        if entry.find() is not None:
            if statement.if_not_exists:
                return nothing()
            if not statement.replace:
                raise EntryExistsError(
                    f"There is a table {entry.schema}.{entry.name} already; use CREATE OR REPLACE or IF NOT EXISTS."
                )
        count = None
        with self._transactions.writing(entry.lake) as transaction:
            if statement.query is None:
                self._create(entry, build_columns(statement.columns), statement)
            else:
                count = self._create_from_query(entry, statement, statement.query)
        info = _made_by(transaction)
        return nothing(info) if count is None else count_result(count, info)

    def _create(self, entry: NamedEntry, columns: Sequence[Column], statement: op.CreateTable) -> Table:
        return self._ddl.create_table(
            entry, columns, replace_existing=statement.replace, partitioned_by=statement.partitioned_by
        )

    def _create_from_query(self, entry: NamedEntry, statement: op.CreateTable, query: op.Query) -> int:
        result = self._sources.query(query, purpose="change")
        types = [self._column_type(name, kind) for name, kind in zip(result.columns, result.types, strict=True)]
        definitions = [op.ColumnDef(name, kind) for name, kind in zip(result.columns, types, strict=True)]
        table = self._create(entry, build_columns(definitions), statement)
        if not statement.with_data:
            return 0
        return self._dml.append(table, result.rows())

    @staticmethod
    def _column_type(name: str, kind: str) -> DataType:
        data_type = type_or_none(kind)
        if data_type is None:
            raise UnsupportedFeatureError(f'Column "{name}" has the type {kind}, which lakes do not have; cast it.')
        return data_type


def _parsed(statement: op.InsertLiterals) -> op.Insert:
    """Returns the statement with its rows as a syntax tree."""
    operation = parse(statement.text)[0].operation
    assert isinstance(operation, op.Insert)
    return operation


def counted(count: int, transaction: Transaction, entry: NamedEntry) -> Result:
    """Returns the result of a statement; rows that expectations left out of its commit are not counted."""
    has_ended = transaction.snapshot is not None or not transaction.has_changes
    if transaction.left_out and has_ended:
        left_out = transaction.left_out.get(entry.table().table_id, 0)
        count = max(count - left_out, 0)
    return count_result(count, _made_by(transaction))


def _made_by(transaction: Transaction) -> RunInfo:
    """Returns the snapshot that a statement made, or the base snapshot of its open transaction."""
    snapshot, info = transaction.snapshot or transaction.base.snapshot, RunInfo()
    is_open = transaction.snapshot is None and transaction.has_changes
    info.note(transaction.lake.title, snapshot.snapshot_id, uncommitted=is_open)
    info.remarks += [f"{outcome.count:,} {outcome.did}" for outcome in transaction.outcomes]
    return info
