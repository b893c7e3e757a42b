"""Runs parsed statements: each kind goes to the part that knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.types import DataType, from_arrow
from ducklake_lab.session.ddl import Ddl, build_columns
from ducklake_lab.session.dml import Dml
from ducklake_lab.session.engine import SparkEngine
from ducklake_lab.session.functions import FeedCall
from ducklake_lab.session.lakes import Lakes, Place
from ducklake_lab.session.result import Result, RunInfo, count_result, nothing
from ducklake_lab.session.sources import Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import plan_delete, plan_insert, plan_query, plan_update
from ducklake_lab.transaction.transaction import Transaction

Attach = Callable[[op.Attach], None]


class Statements:
    """Dispatches operations of one session."""

    def __init__(
        self,
        lakes: Lakes,
        sources: Sources,
        engine: SparkEngine,
        attach: Attach,
    ) -> None:
        self._lakes = lakes
        self._sources = sources
        self._ddl = Ddl(lakes)
        self._dml = Dml(lakes, sources, engine)
        self._attach = attach
        self._engine = engine

    def run(self, operation: op.Operation, engine: str = "spark") -> Result:
        """Runs one operation; gives its result."""
        if not isinstance(operation, op.Rollback | op.Commit):
            self._lakes.check_usable()
        match operation:
            case op.Query():
                return self._sources.run(plan_query(operation, self._sources), engine)
            case op.Insert():
                return self._insert(operation)
            case op.Update():
                return self._update(operation)
            case op.Delete():
                return self._delete(operation)
            case op.Truncate():
                return self._truncate(operation)
            case op.CreateTable():
                return self._create_table(operation)
            case op.DropTable():
                self._ddl.drop_table(self._sources.place(operation.name), if_exists=operation.if_exists)
            case op.CreateSchema():
                self._ddl.create_schema(operation)
            case op.DropSchema():
                self._ddl.drop_schema(operation)
            case op.AddColumn() | op.DropColumn() | op.RenameColumn() | op.RenameTable():
                self._ddl.alter(self._sources.place(operation.table), operation)
            case op.SetPartitionedBy() | op.ResetPartitionedBy():
                self._ddl.alter(self._sources.place(operation.table), operation)
            case op.Begin():
                self._lakes.begin()
            case op.Commit():
                snapshot = self._lakes.commit()
                return nothing(RunInfo(snapshot_id=snapshot.snapshot_id if snapshot is not None else None))
            case op.Rollback():
                self._lakes.rollback()
            case op.Attach():
                self._attach(operation)
            case op.Detach():
                self._detach(operation)
            case op.Use():
                self._lakes.use(operation.parts)
            case op.Call():
                return self._call(operation)
            case op.ShowTables():
                return self._show_tables(operation)
            case op.Describe():
                return self._describe(operation)
            case _:
                raise UnsupportedFeatureError(f"{type(operation).__name__.upper()} is not supported yet.")
        return nothing()

    # Rows

    def _insert(self, statement: op.Insert) -> Result:
        place = self._sources.place(statement.table)
        with self._lakes.writing(place.lake) as transaction:
            table = self._sources.place(statement.table).table()
            count = self._dml.insert(table, plan_insert(statement, table.columns, self._sources))
        return count_result(count, _made_by(transaction))

    def _update(self, statement: op.Update) -> Result:
        place = self._sources.place(statement.table)
        with self._lakes.writing(place.lake) as transaction:
            table = self._sources.place(statement.table).table()
            count = self._dml.update(table, plan_update(statement, table.columns, self._sources))
        return count_result(count, _made_by(transaction))

    def _delete(self, statement: op.Delete) -> Result:
        place = self._sources.place(statement.table)
        with self._lakes.writing(place.lake) as transaction:
            table = self._sources.place(statement.table).table()
            count = self._dml.delete(table, plan_delete(statement, self._sources))
        return count_result(count, _made_by(transaction))

    def _truncate(self, statement: op.Truncate) -> Result:
        place = self._sources.place(statement.table)
        with self._lakes.writing(place.lake) as transaction:
            target = self._sources.place(statement.table)
            count = self._dml.truncate(target, target.table())
        return count_result(count, _made_by(transaction))

    # CREATE TABLE

    def _create_table(self, statement: op.CreateTable) -> Result:
        place = self._sources.place(statement.name)
        if place.find() is not None:
            if statement.if_not_exists:
                return nothing()
            if not statement.replace:
                raise EntryExistsError(
                    f"There is a table {place.schema}.{place.name} already; use CREATE OR REPLACE or IF NOT EXISTS."
                )
        count = None
        with self._lakes.writing(place.lake) as transaction:
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
        result = self._sources.run(plan_query(query, self._sources))
        if result.in_process:
            rows = result.arrow()
            types = [from_arrow(field.type) for field in rows.schema]
        else:
            from ducklake_lab.spark.types import from_spark

            types = [from_spark(field.dataType) for field in result.spark().schema.fields]
        definitions = [op.ColumnDef(name, kind) for name, kind in zip(result.columns, types, strict=True)]
        table = self._create(place, build_columns(definitions), statement)
        if not statement.with_data:
            return 0
        if result.in_process:
            return self._dml.append_arrow(table, result.arrow())
        return self._dml.append_frame(table, result.spark())

    # Lakes

    def _detach(self, statement: op.Detach) -> None:
        if statement.if_exists and self._lakes.find(statement.alias) is None:
            return
        self._lakes.remove(self._lakes.get(statement.alias))

    def _call(self, statement: op.Call) -> Result:
        name = statement.function
        if name.name.casefold().removeprefix("ducklake_") == "set_commit_message":
            return self._set_commit_message(statement)
        args = [self._sources.value(argument) for argument in statement.args]
        kwargs = {key: self._sources.value(argument) for key, argument in statement.kwargs.items()}
        functions = self._sources.functions
        if functions.columns(name.catalog, name.schema, name.name, args, kwargs) is None:
            raise UnsupportedFeatureError(f"CALL {name} is not supported yet.")
        found = functions.evaluate(name.catalog, name.schema, name.name, args, kwargs)
        if isinstance(found, FeedCall):
            raise UnsupportedFeatureError(f"CALL {name} is not supported; use FROM {name}(…).")
        return Result(arrow=found, engine=self._engine)

    def _set_commit_message(self, statement: op.Call) -> Result:
        transaction = self._lakes.transaction
        values = [self._sources.value(argument) for argument in statement.args]
        if statement.function.schema is None and statement.function.catalog is None:
            values = values[1:]
        if not self._lakes.in_transaction:
            raise UnsupportedFeatureError("set_commit_message speaks of the open transaction; BEGIN one first.")
        author, message = (*values, None, None)[:2]
        extra = self._sources.value(statement.kwargs.get("extra_info"))
        if transaction is None:
            lake = self._lakes.get(statement.function.schema or statement.function.catalog)
            with self._lakes.writing(lake) as transaction:
                pass
        transaction.author, transaction.message, transaction.extra_info = author, message, extra
        return nothing()

    def _show_tables(self, statement: op.ShowTables) -> Result:
        names = []
        for lake in self._lakes:
            state = self._lakes.state(lake)
            for table in state.tables.values():
                schema = state.schema_of(table).name
                names.append((lake.alias, schema, table.name, table))
        if statement.all_schemas:
            rows = sorted(names, key=lambda row: row[:3])
            return Result(
                arrow=pa.table(
                    {
                        "database": [row[0] for row in rows],
                        "schema": [row[1] for row in rows],
                        "name": [row[2] for row in rows],
                        "column_names": [[column.name for column in row[3].columns] for row in rows],
                        "column_types": [[column.data_type.sql() for column in row[3].columns] for row in rows],
                    }
                )
            )
        where = self._shown(statement.source)
        shown = sorted(name for alias, schema, name, _ in names if (alias, schema) == where)
        return Result(arrow=pa.table({"name": pa.array(shown, pa.string())}))

    def _shown(self, source: tuple[str, ...] | None) -> tuple[str, str]:
        if source is None:
            return self._lakes.get().alias, self._lakes.current_schema
        if len(source) == 2:
            lake = self._lakes.get(source[0])
            return lake.alias, self._lakes.state(lake).schema(source[1]).name
        other = self._lakes.find(source[0])
        if other is not None:
            return other.alias, "main"
        lake = self._lakes.get()
        return lake.alias, self._lakes.state(lake).schema(source[0]).name

    def _describe(self, statement: op.Describe) -> Result:
        if statement.table is not None:
            table = self._sources.place(statement.table).table()
            rows = [
                (c.name, c.data_type, c.nulls_allowed, None if c.default_value in (None, "NULL") else c.default_value)
                for c in table.columns
            ]
        else:
            assert statement.query is not None  # exactly one is set
            result = self._sources.run(plan_query(statement.query, self._sources))
            rows = [(n, DataType(t), True, None) for n, t in zip(result.columns, result.types, strict=True)]
        nulls = pa.nulls(len(rows), pa.string())
        return Result(
            arrow=pa.table(
                {
                    "column_name": [row[0] for row in rows],
                    "column_type": [str(row[1]) for row in rows],
                    "null": ["YES" if row[2] else "NO" for row in rows],
                    "key": nulls,
                    "default": pa.array([row[3] for row in rows], pa.string()),
                    "extra": nulls,
                }
            )
        )


def _made_by(transaction: Transaction) -> RunInfo:
    """What is told of a statement that wrote: the snapshot it made, or the one an open transaction builds on."""
    return RunInfo((transaction.snapshot or transaction.base.snapshot).snapshot_id)
