"""Loads single sources of a query plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import pyarrow as pa

from ducklake_lab.catalog.identity import read_of
from ducklake_lab.catalog.metadata import read_metadata
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.in_process.engine import Declared, Readable
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.model.staged import LOCATION_COLUMNS, VIRTUAL_COLUMNS
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.session.functions import BlameCall, FeedCall, LifeCall
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.system_tables import declared_columns
from ducklake_lab.session.rows import logs
from ducklake_lab.session.rows.blame import Blames
from ducklake_lab.session.rows.feed import plan_call
from ducklake_lab.session.rows.named_rows import HandedInRows, LakeTable, MetadataTable, SystemListing
from ducklake_lab.session.rows.resolver import NameResolver
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.session.rows.table_scans import TableScans
from ducklake_lab.sql.plan import QueryPlan, Source

#: Whether a function with effects runs, returns no rows, or raises.
Effects = Literal["run", "skip", "refuse"]


class SourceLoader:
    """Loads the rows that a source names.

    Args:
        scans: plans the reads of tables.
        run: runs the plan of a listing.
    """

    def __init__(
        self,
        lakes: Lakes,
        engine: SparkEngine,
        database: SessionDatabase,
        names: NameResolver,
        scans: TableScans,
        blames: Blames,
        run: Callable[[QueryPlan], Result],
    ) -> None:
        self._lakes = lakes
        self._engine = engine
        self._database = database
        self._names = names
        self._blames = blames
        self._run = run
        self._scans = scans

    def state(self, rows: LakeTable) -> CatalogState:
        """Returns the entries of the lake in the state that the plan reads."""
        return self._lakes.state(rows.lake, rows.at)

    def load(self, source: Source, info: RunInfo, *, effects: Effects = "refuse", is_noted: bool = True) -> Rows:
        """Loads a source; a table of a lake is planned, but not read.

        Args:
            effects: the treatment of a function with effects, see `Functions.evaluate`.
            is_noted: note the read of a table for the commit of the open transaction.
        """
        reads = self._lakes.reads
        if source.kind == "function":
            name = source.name
            reads.note_unknown()
            if name.schema is None and self._names.system.is_function(name.name):
                return InMemory(self._names.system.rows(name.name))
            if self._names.is_log(name, source.args):
                return InMemory(self._database.run(logs.PARSED).table)
            args = [self._names.value(a) for a in source.args]
            answer = self._names.functions.evaluate(
                name.catalog, name.schema, name.name, args, self._names.values(source.kwargs), effects=effects
            )
            if isinstance(answer, BlameCall | LifeCall):
                return InMemory(self._blames.result(answer).carried())
            if not isinstance(answer, FeedCall):
                return InMemory(answer)
            return plan_call(self._lakes, answer, self._engine.placing, info, virtual=source.virtual)
        match source.rows:
            case HandedInRows(rows=rows):
                if rows.is_on_spark:
                    reads.note_unknown()  # it may read a lake
                return rows
            case MetadataTable(lake=lake, name=listed):
                reads.note_unknown()
                with lake.connect() as connection:
                    return InMemory(read_metadata(lake.database, connection, listed))
            case SystemListing(plan=plan):
                reads.note_unknown()
                return InMemory(self._run(plan).arrow())
            case LakeTable() as lake_table:
                state = self.state(lake_table)
                scan = self._scans.of_source(lake_table.lake, state, lake_table.table.table_id, source)
                is_fixed = self._lakes.is_fixed(lake_table.lake, lake_table.at)
                is_uncommitted = reads.is_uncommitted(state)
                if is_noted:
                    self.note(lake_table, source)
                read = read_of(
                    lake_table.lake, state, scan.plan.table, is_fixed=is_fixed, is_uncommitted=is_uncommitted
                )
                info.read(lake_table.lake, read)
                info.add(scan.plan)
                return scan
        raise AssertionError(source)  # the planner names no other rows

    def note(self, read: LakeTable, source: Source) -> None:
        """Notes a read of a table for the commit of the open transaction."""
        table = self.state(read).tables[read.table.table_id]
        self._lakes.reads.note(read.lake, table, source.predicate, is_target=source.virtual)

    def empty(self, plan: QueryPlan) -> dict[str, pa.Table]:
        """Returns the sources of a plan as empty tables."""
        tables = {}
        for source in plan.sources:
            if source.kind != "local":
                columns = self._columns(source)
                fields = [kind.field(name) for name, kind in columns]
                if source.virtual:
                    fields += [kind.field(name) for name, kind in VIRTUAL_COLUMNS.items()]
                if source.located:
                    fields += [kind.field(name) for name, kind in LOCATION_COLUMNS.items()]
                tables[source.view] = pa.schema(fields).empty_table()
        return tables

    def declared(self, plan: QueryPlan) -> dict[str, Readable]:
        """Returns the sources of a plan as empty tables; tables of lakes have constraints and defaults."""
        tables: dict[str, Readable] = {**self.empty(plan)}
        for source in plan.sources:
            if isinstance(source.rows, LakeTable) and not (source.virtual or source.located):
                tables[source.view] = Declared(declared_columns(source.rows.table))
        return tables

    def _columns(self, source: Source) -> Sequence[tuple[str, DataType]]:
        if source.rows is not None:
            return source.rows.columns
        return self._names.function(source.name, source.args, source.kwargs) or ()
